"""What there is to make or to try for an environment, found from what a job or a person names. Runs nothing."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pliant.catalog.environments.builds import Builds, Work
from pliant.catalog.environments.environment import Environment, EnvironmentKind
from pliant.catalog.environments.finding import NotThere, python_of_conda, python_of_venv
from pliant.catalog.environments.requirements import Requirements, parse_requirements, read_requirements
from pliant.catalog.environments.source import Conda, Named, RequirementsFile, Source, Virtual
from pliant.core.errors import InvalidInput
from pliant.core.registry import Registry


class WorkFinder:
    """Looks at files and at the registry."""

    def __init__(self, *, registry: Registry, builds: Builds, env: Mapping[str, str]) -> None:
        self._registry = registry
        self._builds = builds
        self._env = env

    def find(self, source: Source, code: str) -> Work:
        """Return what there is to do for a job whose code lies in this folder.

        Raises:
            NotThere: there is no such environment, or not any more.
            InvalidInput: with everything that is wrong with the requirements.
        """
        match source:
            case RequirementsFile(file):
                return self._built(read_requirements(Path(code), file))
            case Virtual(path):
                return _tried(EnvironmentKind.VENV, path, python_of_venv(path))
            case Conda(which):
                return _tried(EnvironmentKind.CONDA, which, python_of_conda(which, self._env))
            case Named(name):
                if (kept := self._registry.get(Environment, name)) is None:
                    raise NotThere(f"there is no environment {name!r}; it may have been removed")
                return self.named(kept.noun)

    def registered(self, kind: EnvironmentKind, source: str) -> Work:
        """Return what there is to do for an environment that is registered now.

        Raises:
            NotThere, InvalidInput: as for `find`.
        """
        if kind is EnvironmentKind.REQUIREMENTS:
            return self._built(parse_requirements(source))
        return self.find(Virtual(source) if kind is EnvironmentKind.VENV else Conda(source), "")

    def named(self, environment: Environment) -> Work:
        """Return what there is to do for an environment that was registered; its key stays what it was.

        Raises:
            NotThere: what it was made from is not there any more.
        """
        if environment.kind is not EnvironmentKind.REQUIREMENTS:
            return replace(self.registered(environment.kind, environment.source), key=environment.key)
        requirements = None
        if not self._builds.is_laid_out(environment.key):
            try:
                requirements = parse_requirements(environment.source)
            except InvalidInput as error:
                raise NotThere(
                    f"the environment {environment.name!r} was made from files that came with a job and were removed; "
                    f"submit the job again"
                ) from error
        return Work(key=environment.key, kind=environment.kind, source=environment.source, requirements=requirements)

    def _built(self, requirements: Requirements) -> Work:
        return Work(
            key=requirements.key(*self._builds.shared.facts),
            kind=EnvironmentKind.REQUIREMENTS,
            source=requirements.source,
            requirements=requirements,
        )


def _tried(kind: EnvironmentKind, source: str, python: str) -> Work:
    key = hashlib.sha256("\0".join((kind.value, source, python)).encode()).hexdigest()
    return Work(key=key, kind=kind, source=source, python=python)
