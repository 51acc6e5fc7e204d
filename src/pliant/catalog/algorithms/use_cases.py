"""The use cases of algorithms: install, list, show, change, remove; and what searches ask about them.

Code of an algorithm runs as who has installed it. So nobody but its owner can give it other code, or another
environment: not even who runs the server.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pliant.catalog.algorithms.check import AlgorithmCheck, FoundAlgorithm
from pliant.catalog.algorithms.folders import AlgorithmFolders, kind_of_code, top_of
from pliant.catalog.algorithms.logs import AlgorithmLogs
from pliant.catalog.sharing import is_visible, require_owner, require_visible, visible_page
from pliant.core.access import Principal, VisibleJobs, name_once
from pliant.core.algorithm import Algorithm, AlgorithmCode, AlgorithmKind, AlgorithmSettings
from pliant.core.errors import Conflict, Forbidden, InvalidInput, Problem, Stale
from pliant.core.input import values_of
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.core.search import SAMPLERS, Search
from pliant.core.shares import problems_of_shares

log = logging.getLogger(__name__)

_OF_IBM: Final = ("bayesian", "hyperband", "experimentgridsearch")
"""What IBM's API calls samplers that are built in, besides names that they have here, too."""
_NUM_NAMED: Final = 8

UnendedSearches = Callable[[], AbstractContextManager[Sequence[Search]]]
"""Yields the searches that run or may be resumed; none begins or goes on meanwhile."""


class AlgorithmRequests:
    """All algorithms, as people and searches ask for them. Safe to call from any thread.

    Args:
        registry: keeps the nouns.
        clock: dates them.
        folders: keeps their code.
        logs: keeps what they print for searches.
        check: tries them.
        unknown_users: returns those of some names that no user has.
        unended: which searches use algorithms.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        clock: Clock,
        folders: AlgorithmFolders,
        logs: AlgorithmLogs,
        check: AlgorithmCheck,
        unknown_users: Callable[[Collection[str]], Collection[str]],
        unended: UnendedSearches,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._folders = folders
        self._logs = logs
        self._check = check
        self._unknown_users = unknown_users
        self._unended = unended

    # What people ask

    def install(
        self,
        caller: Principal,
        name: str,
        settings: AlgorithmSettings,
        archive: Path,
        *,
        replace_it: bool = False,
        revision: int | None = None,
    ) -> Kept[Algorithm]:
        """Check an algorithm in a process of the caller's, and keep it; searches that began before keep to the old one.

        Args:
            archive: its code, as a tar, tar.gz or zip.
            replace_it: it takes the place of the caller's own of this name; there has to be one.
            revision: only if that is at this revision.

        Raises:
            InvalidInput, TooLarge: with everything that is wrong with it; with what it printed.
            Conflict: the name is taken.
            NotFound, Forbidden, Stale: there is none to replace, it is somebody else's, or was changed meanwhile.
            Unavailable: the disk cannot take it, or others are tried now.
        """
        before = self._require_mine(caller, name, revision) if replace_it else None
        if not replace_it:
            self._require_free(name)
        problems = list(problems_of_shares(settings.shared_with, caller.name, self._unknown_users))
        if _is_taken_by_sampler(name):
            problems.append(Problem(field="name", message=f"{name!r} is the name of a sampler; give another one"))
        kind, found = self._try_code(caller.name, settings, archive, problems)
        settings = replace(settings, shared_with=name_once(settings.shared_with))
        with self._unended() as searches:
            checksum = self._folders.keep(archive)
            noun = Algorithm(
                **values_of(AlgorithmSettings, settings),
                name=name,
                owner=caller.name,
                kind=kind,
                checksum=checksum,
                class_name=found.class_name,
                has_state=found.has_state,
                created_at=self._clock.now(),
            )
            try:
                kept = self._put(noun, before, revision)
            except Conflict:
                self._drop_unused(checksum, searches)
                raise
            if before is not None:
                self._drop_unused(before.noun.checksum, searches)
        log.info("%s has installed the algorithm %s, %.12s", caller.name, name, checksum)
        return kept

    def page(self, caller: Principal, after: str, limit: int) -> tuple[tuple[Kept[Algorithm], ...], str | None]:
        """Return the algorithms that somebody may use, in the order of their names, and where the next page begins."""
        return visible_page(self._registry, Algorithm, caller, after, limit)

    def get(self, caller: Principal, name: str) -> Kept[Algorithm]:
        """Return an algorithm.

        Raises:
            NotFound: none that they may use.
        """
        return require_visible(self._registry, Algorithm, caller, name)

    def change(
        self, caller: Principal, name: str, values: Mapping[str, Any], revision: int | None = None
    ) -> Kept[Algorithm]:
        """Change settings of an algorithm, but for its environment, in which it was checked.

        Raises:
            NotFound, Forbidden, Stale: there is none, it is somebody else's, or was changed meanwhile.
            InvalidInput: somebody it shall be shared with is no user.
        """
        kept = self._require_own(caller, name)
        if "environment" in values:
            raise InvalidInput.at("environment", "it was checked in the one that it has; install it again with another")
        changed = replace(kept.noun, **values)
        if problems := problems_of_shares(changed.shared_with, changed.owner, self._unknown_users):
            raise InvalidInput(*problems)
        changed = replace(changed, shared_with=name_once(changed.shared_with))
        # what was read is what is replaced: another version of the code may have been installed meanwhile
        expected = kept.revision if revision is None else revision
        return self._registry.replace(changed, at=self._clock.now(), revision=expected)

    def share(
        self, caller: Principal, name: str, shared_with: tuple[str, ...], revision: int | None = None
    ) -> Kept[Algorithm]:
        """Let these people use an algorithm, and nobody else; searches that they have begun go on.

        Raises:
            NotFound, Forbidden, Stale, InvalidInput: as for `change`.
        """
        return self.change(caller, name, {"shared_with": shared_with}, revision)

    def remove(self, caller: Principal, name: str, revision: int | None = None) -> None:
        """Forget an algorithm and its code.

        Raises:
            NotFound, Forbidden, Stale: as for `change`.
            Conflict: a search uses it that runs or may be resumed.
        """
        noun = self._require_own(caller, name).noun
        with self._unended() as searches:
            if users := [one.name for one in searches if one.algorithm and one.settings.sampler.name == name]:
                named = ", ".join(users[:_NUM_NAMED]) + (", …" if len(users) > _NUM_NAMED else "")
                raise Conflict(f"the algorithm {name!r} chooses for {named}; wait for their end, or remove them")
            self._registry.remove(Algorithm, name, revision=revision)
            self._drop_unused(noun.checksum, searches)
        log.info("%s has removed the algorithm %s of %s", caller.name, name, noun.owner)

    def algorithms_in(self, environment: str) -> Sequence[str]:
        """Return which algorithms run in an environment of this name."""
        installed = (kept.noun for kept in iterate_nouns(self._registry, Algorithm))
        return [one.name for one in installed if one.environment == environment]

    def searches_in(self, environment: str) -> Sequence[str]:
        """Return which searches, that run or may be resumed, have their values chosen in an environment."""
        with self._unended() as searches:
            return [one.name for one in searches if one.algorithm and one.algorithm.environment == environment]

    # What searches ask

    def find(self, name: str, person: str) -> Algorithm | None:
        """Return an algorithm of this name that a person may use; None if there is none."""
        kept = self._registry.get(Algorithm, name)
        return kept.noun if kept is not None and is_visible(kept.noun, VisibleJobs(owner=person)) else None

    def names(self, person: str) -> Sequence[str]:
        """Return the names of all that a person may use."""
        visible = VisibleJobs(owner=person)
        return [kept.noun.name for kept in iterate_nouns(self._registry, Algorithm) if is_visible(kept.noun, visible)]

    def log(self, search: str) -> str:
        """Return the newest of what the algorithm of a search has printed."""
        return self._logs.read(search)

    def forget_log(self, search: str) -> None:
        """Forget what the algorithm of a search has printed."""
        self._logs.remove(search)

    def sweep(self) -> None:
        """Remove code that nobody needs, and what a killed server has left; call when nobody installs."""
        with self._unended() as searches:
            self._folders.sweep(self._used(searches))

    def _require_free(self, name: str) -> None:
        if self._registry.get(Algorithm, name) is not None:
            raise Conflict(f"there is an algorithm {name!r} already; choose another name, or replace it if it is yours")

    def _require_mine(self, caller: Principal, name: str, revision: int | None) -> Kept[Algorithm]:
        kept = self.get(caller, name)
        if kept.noun.owner != caller.name:
            whose = f"the algorithm {name!r} belongs to {kept.noun.owner!r}, and runs as them"
            raise Forbidden(f"{whose}: nobody else can give it other code; install it under another name")
        if revision is not None and kept.revision != revision:
            raise Stale(
                f"the algorithm {name!r} was changed meanwhile: it is at revision {kept.revision}, not {revision}"
            )
        return kept

    def _require_own(self, caller: Principal, name: str) -> Kept[Algorithm]:
        kept = self.get(caller, name)
        require_owner(caller, kept.noun, f"the algorithm {name!r}")
        return kept

    def _try_code(
        self, person: str, settings: AlgorithmSettings, archive: Path, problems: Sequence[Problem]
    ) -> tuple[AlgorithmKind, FoundAlgorithm]:
        """Return what is found in an archive; if there are problems already, nothing of it is run."""
        with self._folders.draft(archive) as draft:
            top = top_of(draft)
            try:
                kind = kind_of_code(top)
            except InvalidInput as error:
                raise InvalidInput(*problems, *error.problems) from error
            if problems:
                raise InvalidInput(*problems)
            code = AlgorithmCode(owner=person, kind=kind, checksum="", environment=settings.environment)
            return kind, self._check(code, top)

    def _put(self, noun: Algorithm, before: Kept[Algorithm] | None, revision: int | None) -> Kept[Algorithm]:
        if before is None:
            return self._registry.add(noun, at=noun.created_at)
        expected = before.revision if revision is None else revision
        return self._registry.replace(noun, at=noun.created_at, revision=expected)

    def _drop_unused(self, checksum: str, searches: Sequence[Search]) -> None:
        """Remove code that no algorithm has any more, and no search that may go on."""
        if checksum not in self._used(searches):
            self._folders.remove(checksum)

    def _used(self, searches: Sequence[Search]) -> Collection[str]:
        installed = {kept.noun.checksum for kept in iterate_nouns(self._registry, Algorithm)}
        return installed | {one.algorithm.checksum for one in searches if one.algorithm is not None}


def _is_taken_by_sampler(name: str) -> bool:
    """Tell whether people would take a name for that of a sampler that is built in."""
    return name.lower() in (*SAMPLERS, *_OF_IBM)
