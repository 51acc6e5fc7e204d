"""What there is to make or to try for an environment, found from what a job or a person names. Runs nothing."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pliant.catalog.environments.builds import BuildRequest, Builds
from pliant.catalog.environments.interpreters import EnvironmentNotFound, find_conda_python, find_venv_python
from pliant.catalog.environments.requirements import Requirements, parse_requirements, read_requirements
from pliant.catalog.environments.source import Conda, Named, RequirementsFile, Source, Venv
from pliant.core.environment import Environment, EnvironmentKind
from pliant.core.errors import InvalidInput
from pliant.core.registry import Registry


class EnvironmentResolver:
    """Looks at files and at the registry."""

    def __init__(self, *, registry: Registry, builds: Builds, env: Mapping[str, str]) -> None:
        self._registry = registry
        self._builds = builds
        self._env = env

    def resolve(self, source: Source, code: str) -> BuildRequest:
        """Return what there is to do for a job whose code lies in this folder.

        Raises:
            EnvironmentNotFound: there is no such environment, or not any more.
            InvalidInput: with everything that is wrong with the requirements.
        """
        match source:
            case RequirementsFile(file):
                return self._build_of(read_requirements(Path(code), file))
            case Venv(path):
                return _probe_of(EnvironmentKind.VENV, path, find_venv_python(path))
            case Conda(which):
                return _probe_of(EnvironmentKind.CONDA, which, find_conda_python(which, self._env))
            case Named(name):
                if (kept := self._registry.get(Environment, name)) is None:
                    raise EnvironmentNotFound(f"there is no environment {name!r}; it may have been removed")
                return self.resolve_named(kept.noun)

    def resolve_new(self, kind: EnvironmentKind, source: str) -> BuildRequest:
        """Return what there is to do for an environment that is registered now.

        Raises:
            EnvironmentNotFound, InvalidInput: as for `resolve`.
        """
        if kind is EnvironmentKind.REQUIREMENTS:
            return self._build_of(parse_requirements(source))
        return self.resolve(Venv(source) if kind is EnvironmentKind.VENV else Conda(source), "")

    def resolve_named(self, environment: Environment) -> BuildRequest:
        """Return what there is to do for an environment that was registered; its key stays what it was.

        Raises:
            EnvironmentNotFound: what it was made from is not there any more.
        """
        if environment.kind is not EnvironmentKind.REQUIREMENTS:
            return replace(self.resolve_new(environment.kind, environment.source), key=environment.key)
        requirements = None
        if not self._builds.is_laid_out(environment.key):
            try:
                requirements = parse_requirements(environment.source)
            except InvalidInput as error:
                raise EnvironmentNotFound(
                    f"the environment {environment.name!r} was made from files that came with a job and were removed; "
                    f"submit the job again"
                ) from error
        return BuildRequest(
            key=environment.key, kind=environment.kind, source=environment.source, requirements=requirements
        )

    def _build_of(self, requirements: Requirements) -> BuildRequest:
        return BuildRequest(
            key=requirements.key(*self._builds.base.facts),
            kind=EnvironmentKind.REQUIREMENTS,
            source=requirements.source,
            requirements=requirements,
        )


def _probe_of(kind: EnvironmentKind, source: str, python: str) -> BuildRequest:
    key = hashlib.sha256("\0".join((kind.value, source, python)).encode()).hexdigest()
    return BuildRequest(key=key, kind=kind, source=source, python=python)
