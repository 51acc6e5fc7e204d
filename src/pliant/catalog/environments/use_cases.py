"""Environments as people and jobs use them: registered under names, found for jobs, shared, built anew, removed.

It implements `Preparations`, which control asks before a job is given slots. `builds` makes and tries environments;
nothing here waits for it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pliant.catalog.environments.builds import BuildRequest, Builds
from pliant.catalog.environments.environment import Build, BuildState
from pliant.catalog.environments.interpreters import EnvironmentNotFound
from pliant.catalog.environments.readings import RequirementsReadings
from pliant.catalog.environments.resolver import EnvironmentResolver
from pliant.catalog.environments.source import Named, RequirementsFile, parse_source
from pliant.catalog.sharing import (
    is_visible,
    no_such_name,
    require_owner,
    require_visible,
    visible_page,
)
from pliant.core.access import Principal, VisibleJobs
from pliant.core.environment import Environment, EnvironmentSettings, EnvironmentView
from pliant.core.errors import Conflict, InvalidInput, Problem, Unavailable
from pliant.core.input import values_of
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.ports import Clock
from pliant.core.preparation import Preparation, Prepared, Preparing, Unpreparable
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.core.shares import problems_of_shares

_NUM_SHOWN: Final = 30
"""Lines of the builder's output that a job's reason holds."""
_MAX_WAITING: Final = 10_000
"""Jobs whose work is kept in memory."""
_SHORT: Final = 12
"""Digits of a key in the name of an environment that a job has brought."""

UnknownUsers = Callable[[Collection[str]], Collection[str]]
"""Returns those of some names that no user has."""


class EnvironmentCatalog:
    """Safe to call from any thread."""

    def __init__(
        self, *, registry: Registry, clock: Clock, env: Mapping[str, str], builds: Builds, unknown_users: UnknownUsers
    ) -> None:
        """Prepare to answer.

        Args:
            registry: keeps names.
            clock: dates them.
            env: the server's own environment: it says where conda is.
            builds: makes and tries what environments stand for.
            unknown_users: returns those of some names that no user has.
        """
        self._registry = registry
        self._clock = clock
        self._builds = builds
        self._unknown_users = unknown_users
        self._resolver = EnvironmentResolver(registry=registry, builds=builds, env=env)
        self._readings = RequirementsReadings(builds.notify)
        self._work: dict[JobId, BuildRequest] = {}
        """Of jobs that wait."""
        self._keys: dict[JobId, str] = {}
        """Of the builds of all jobs that were asked for."""

    def watch(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever something that jobs may wait for is done, from any thread."""
        self._builds.watch(listener)

    # What control asks

    def problems(self, spec: JobSpec, code: str, *, visible: VisibleJobs | None = None) -> tuple[Problem, ...]:
        """Return what is wrong with the environment that a submission asks for, as far as nothing has to be run."""
        if spec.environment is None:
            return ()
        source = parse_source(spec.environment)
        if isinstance(source, Problem):
            return (source,)
        if isinstance(source, Named) and not self._is_visible(source.name, visible):
            sees = partial(is_visible, visible=visible)
            message = no_such_name(self._registry, Environment, source.name, sees)
            return (Problem(field="environment", message=message),)
        try:
            self._look(self._resolver.resolve(source, code, "" if visible is None else visible.owner))
        except EnvironmentNotFound as error:
            return (Problem(field="environment", message=str(error)),)
        except InvalidInput as error:
            return error.problems
        return ()

    def _look(self, work: BuildRequest) -> None:
        try:
            self._builds.look(work)
        except OSError as error:
            raise Unavailable(
                f"{work.source!r:.200} could not be looked at: {error.strerror}; try again later"
            ) from error

    def status(self, job: Job, code: str) -> Preparation:
        """Return how far the environment of a job is; begin with it if nobody has."""
        try:
            first = job.id not in self._keys
            work = self._work_for(job, code)
            if work is None:
                return Preparing(why="its requirements are being read")
            build = self._builds.ask(work, first=first)
        except (EnvironmentNotFound, InvalidInput) as error:
            return Unpreparable(why=f"its environment {job.spec.environment!r} cannot be used any more: {error}")
        except OSError as error:
            return Unpreparable(why=f"its environment cannot be kept: {error.strerror}; make room and submit it again")
        if build.state is BuildState.BUILDING:
            return Preparing(why=self._builds.progress(build))
        if build.state is BuildState.FAILED:
            headline = f"its environment {job.spec.environment!r} failed, and no slot was taken: {build.reason}"
            return Unpreparable(why="\n".join((headline, *build.output[-_NUM_SHOWN:])))
        self._builds.note_used(build.name)
        del self._work[job.id]
        return Prepared(python=build.python)

    def _work_for(self, job: Job, code: str) -> BuildRequest | None:
        """Return what there is to do for a job; None while it is found out."""
        if job.id not in self._work:
            work = self._resolve(job, code)
            if work is None:
                return None
            while len(self._work) >= _MAX_WAITING:
                del self._work[next(iter(self._work))]  # it was stopped, or is looked for again
            self._work[job.id] = work
            self._keys[job.id] = work.key
        return self._work[job.id]

    def _resolve(self, job: Job, code: str) -> BuildRequest | None:
        source = parse_source(job.spec.environment or "")
        if isinstance(source, Problem):
            raise InvalidInput(source)
        if not isinstance(source, RequirementsFile):
            return self._resolver.resolve(source, code, job.owner)
        work = self._readings.ask(job.id, lambda: self._resolver.resolve(source, code, job.owner))
        if work is not None:
            self._name_for(work, job.owner)
        return work

    def interpreter(self, name: str, person: str) -> str:
        """Return the Python of an environment that a person may use, for what is no job of theirs.

        Raises:
            InvalidInput: there is none, or it is not ready.
        """
        kept = self._registry.get(Environment, name)
        sees = partial(is_visible, visible=VisibleJobs(owner=person))
        if kept is None or not sees(kept.noun):
            raise InvalidInput.at("environment", no_such_name(self._registry, Environment, name, sees))
        try:
            build = self._builds.ask(self._resolver.resolve_named(kept.noun, person), first=False)
        except EnvironmentNotFound as error:
            raise InvalidInput.at("environment", str(error)) from error
        except OSError as error:
            raise Unavailable(f"there is no room for the environment: {error.strerror}; make some") from error
        if build.state is BuildState.BUILDING:
            why = self._builds.progress(build)
            raise InvalidInput.at("environment", f"{name!r} is not ready: {why}; try again when it is")
        if build.state is BuildState.FAILED:
            raise InvalidInput.at("environment", f"{name!r} failed: {build.reason}")
        self._builds.note_used(build.name)
        return build.python

    def close(self) -> None:
        """Read nothing any more."""
        self._readings.close()

    def _is_visible(self, name: str, visible: VisibleJobs | None) -> bool:
        kept = self._registry.get(Environment, name)
        return kept is not None and is_visible(kept.noun, visible)

    def _name_for(self, work: BuildRequest, owner: str) -> None:
        """Give a name to what a job has brought, so that people can look at it and remove it."""
        name = f"requirements-{work.key[:_SHORT]}-{owner}"
        if self._registry.get(Environment, name) is None:
            noun = Environment(name=name, owner=owner, kind=work.kind, source=work.source, key=work.key)
            self._registry.add(noun, at=self._clock.now())

    # What people ask

    def page(self, caller: Principal, after: str, limit: int) -> tuple[tuple[EnvironmentView, ...], str | None]:
        """Return the environments that somebody may use, in order of name, and where the next page begins."""
        page, following = visible_page(self._registry, Environment, caller, after, limit)
        return tuple(self._view(kept) for kept in page), following

    def show(self, name: str, caller: Principal) -> EnvironmentView:
        """Return one of them.

        Raises:
            NotFound: none that they may use.
        """
        return self._view(self._require_visible(name, caller))

    def log(self, name: str, caller: Principal) -> str:
        """Return what the builder printed, or what an interpreter said that was tried.

        Raises:
            NotFound: none that they may use.
        """
        return self._builds.log(self._require_visible(name, caller).noun.key)

    def add(self, asked: Environment, caller: Principal) -> EnvironmentView:
        """Register an environment of somebody's, and begin to build or to try it.

        Raises:
            InvalidInput: with everything that is wrong with it.
            Conflict: the name is taken.
            Unavailable: there is no room for it.
        """
        problems = list(problems_of_shares(asked.shared_with, caller.name, self._unknown_users))
        try:
            work = self._resolver.resolve_new(asked.kind, asked.source, caller.name)
            self._look(work)
        except EnvironmentNotFound as error:
            problems.append(Problem(field=asked.kind.value, message=str(error)))
        except InvalidInput as error:
            problems += [replace(problem, field=asked.kind.value) for problem in error.problems]
        if problems:
            raise InvalidInput(*problems)
        kept = self._registry.add(replace(asked, owner=caller.name, key=work.key), at=self._clock.now())
        _begin(lambda: self._builds.ask(work, first=True))
        return self._view(kept)

    def share(
        self, name: str, shared_with: tuple[str, ...], revision: int | None, caller: Principal
    ) -> EnvironmentView:
        """Let these people use an environment, and nobody else.

        Raises:
            NotFound, Forbidden, Stale: there is none, it is somebody else's, or was changed meanwhile.
            InvalidInput: somebody is no user.
        """
        noun = self._require_own(name, caller).noun
        if problems := problems_of_shares(shared_with, noun.owner, self._unknown_users):
            raise InvalidInput(*problems)
        changed = replace(noun, shared_with=shared_with)
        return self._view(self._registry.replace(changed, at=self._clock.now(), revision=revision))

    def rebuild(
        self, name: str, caller: Principal, jobs: Collection[Job], others: Sequence[str] = ()
    ) -> EnvironmentView:
        """Build or try an environment anew.

        Args:
            name: of the environment.
            caller: asks for it.
            jobs: those that have not ended.
            others: what else uses it, such as `the search digits`.

        Raises:
            NotFound, Forbidden: there is none, or it is somebody else's.
            Conflict: it is ready and something uses it: its files would vanish under it.
            InvalidInput: what it was made from is not there any more.
            Unavailable: there is no room for it.
        """
        kept = self._require_own(name, caller)
        build = self._builds.get(kept.noun.key)
        if build is not None and build.state is BuildState.READY:
            self._refuse_used(kept.noun, jobs, others)
        try:
            work = self._resolver.resolve_named(kept.noun, kept.noun.owner)
        except EnvironmentNotFound as error:
            raise InvalidInput.at(kept.noun.kind.value, str(error)) from error
        _begin(lambda: self._builds.again(work))
        return self._view(kept)

    def remove(
        self, name: str, revision: int | None, caller: Principal, jobs: Collection[Job], others: Sequence[str] = ()
    ) -> None:
        """Forget an environment, and what was built for it if no other one has the same.

        Args:
            name: of the environment.
            revision: only if it is at this revision.
            caller: asks for it.
            jobs: those that have not ended.
            others: what else uses it, such as `the algorithm dice`.

        Raises:
            NotFound, Forbidden, Stale: there is none, it is somebody else's, or was changed meanwhile.
            Conflict: something uses it.
        """
        noun = self._require_own(name, caller).noun
        self._refuse_used(noun, jobs, others)
        self._registry.remove(Environment, name, revision=revision)
        if not any(kept.noun.key == noun.key for kept in iterate_nouns(self._registry, Environment)):
            self._builds.forget(noun.key)

    def _refuse_used(self, noun: Environment, jobs: Collection[Job], others: Sequence[str]) -> None:
        self._keys = {job.id: self._keys[job.id] for job in jobs if job.id in self._keys}
        if users := [j.id for j in jobs if j.spec.environment == noun.name or self._keys.get(j.id) == noun.key]:
            raise Conflict(
                f"the environment {noun.name!r} is used by {', '.join(users[:8])}; stop them, or wait for their end"
            )
        if others:
            raise Conflict(
                f"the environment {noun.name!r} is used by {', '.join(others[:8])}; remove what uses it first, or "
                f"install the algorithm with another one"
            )

    def _require_visible(self, name: str, caller: Principal) -> Kept[Environment]:
        return require_visible(self._registry, Environment, caller, name)

    def _require_own(self, name: str, caller: Principal) -> Kept[Environment]:
        kept = self._require_visible(name, caller)
        require_owner(caller, kept.noun, f"the environment {name!r}")
        return kept

    def _view(self, kept: Kept[Environment]) -> EnvironmentView:
        noun, build = kept.noun, self._builds.get(kept.noun.key)
        why = "is built when a job asks for it"
        if build is not None:
            why = self._builds.progress(build) if build.state is BuildState.BUILDING else build.reason
        return EnvironmentView(
            **values_of(EnvironmentSettings, noun),
            owner=noun.owner,
            kind=noun.kind.value,
            source=noun.source,
            state=(BuildState.BUILDING if build is None else build.state).value,
            why=why,
            output=() if build is None else build.output,
            key=noun.key,
            python="" if build is None else build.python,
            builder="" if build is None else build.builder,
            num_bytes=0 if build is None else build.num_bytes,
            built_at=None if build is None else build.ended_at,
            last_used_at=None if build is None else build.last_used_at,
            created_at=kept.created_at,
            revision=kept.revision,
        )


def _begin(begin: Callable[[], Build]) -> None:
    try:
        begin()
    except OSError as error:
        raise Unavailable(f"there is no room for the environment: {error.strerror}; make some") from error
