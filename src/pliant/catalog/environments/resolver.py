"""What there is to make or to try for an environment, found from what a job or a person names.

Runs nothing, and looks at no path that a person names: a process of theirs does (`probe.py`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pliant.catalog.environments.builds import BuildRequest, Builds
from pliant.catalog.environments.interpreters import EnvironmentNotFound, find_conda, require_outside
from pliant.catalog.environments.requirements import (
    Requirements,
    are_personal,
    parse_requirements,
    read_requirements,
)
from pliant.catalog.environments.source import Conda, Named, RequirementsFile, Source, Venv
from pliant.core.environment import Environment, EnvironmentKind
from pliant.core.errors import InvalidInput
from pliant.core.registry import Registry


class EnvironmentResolver:
    """Looks at files of code folders and at the registry."""

    def __init__(self, *, registry: Registry, builds: Builds, env: Mapping[str, str]) -> None:
        self._registry = registry
        self._builds = builds
        self._env = env

    def resolve(self, source: Source, code: str, person: str) -> BuildRequest:
        """Return what there is to do for a person's job whose code lies in this folder.

        An empty name of a person stands for one that is not known yet: nothing is refused to them.

        Raises:
            EnvironmentNotFound: there is no such environment, or not any more.
            InvalidInput: with everything that is wrong with the requirements.
        """
        match source:
            case RequirementsFile(file):
                return self._build_of(read_requirements(Path(code), file), person)
            case Venv(path):
                return self._probe_of(EnvironmentKind.VENV, path, path, person)
            case Conda(which) if which.startswith("/"):
                return self._probe_of(EnvironmentKind.CONDA, which, which, person)
            case Conda(which):
                offered = self._probe_of(EnvironmentKind.CONDA, which, find_conda(which, self._env), person)
                return replace(offered, is_offered=True)
            case Named(name):
                if (kept := self._registry.get(Environment, name)) is None:
                    raise EnvironmentNotFound(f"there is no environment {name!r}; it may have been removed")
                return self.resolve_named(kept.noun, person)

    def resolve_new(self, kind: EnvironmentKind, source: str, person: str) -> BuildRequest:
        """Return what there is to do for an environment that a person registers now.

        Raises:
            EnvironmentNotFound, InvalidInput: as for `resolve`.
        """
        if kind is EnvironmentKind.REQUIREMENTS:
            return self._build_of(parse_requirements(source), person)
        return self.resolve(Venv(source) if kind is EnvironmentKind.VENV else Conda(source), "", person)

    def resolve_named(self, environment: Environment, person: str) -> BuildRequest:
        """Return what there is to do for a registered environment that a person uses.

        What is built for it has the key that it had. What somebody else made is tried for every person who uses it.

        Raises:
            EnvironmentNotFound: what it was made from is not there any more, or it is another person's alone.
        """
        if environment.kind is not EnvironmentKind.REQUIREMENTS:
            return self.resolve_new(environment.kind, environment.source, person)
        if are_personal(environment.source) and person not in ("", environment.owner):
            raise EnvironmentNotFound(
                f"the environment {environment.name!r} holds wheels of {environment.owner}'s code, and only their jobs "
                f"run with it; bring the wheels with your own code"
            )
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
            key=environment.key,
            kind=environment.kind,
            source=environment.source,
            person=person,
            requirements=requirements,
        )

    def _build_of(self, requirements: Requirements, person: str) -> BuildRequest:
        whose = (f"for {person} alone",) if requirements.wheels else ()
        return BuildRequest(
            key=requirements.key(*self._builds.base.facts, *whose),
            kind=EnvironmentKind.REQUIREMENTS,
            source=requirements.source,
            person=person,
            requirements=requirements,
        )

    def _probe_of(self, kind: EnvironmentKind, source: str, path: str, person: str) -> BuildRequest:
        require_outside(path, self._builds.closed)
        key = hashlib.sha256("\0".join((kind.value, source, path, person)).encode()).hexdigest()
        return BuildRequest(key=key, kind=kind, source=source, person=person, path=path)
