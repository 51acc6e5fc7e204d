"""The use cases of searches: create, list, show, change, stop, resume, add trials, remove.

They change what is kept; jobs follow (`keeper`). Only the code of a new search is looked at at once, so that everything
that is wrong with it is said to who creates it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pliant.core.access import Principal, VisibleJobs, name_once
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from pliant.core.job import JobSpec
from pliant.core.known_trial import trials_of
from pliant.core.near_name import near_name
from pliant.core.search import MAX_TRIALS, Decision, Search, SearchSettings, SearchState, Trial, TrialState
from pliant.core.space import Values
from pliant.policy.tuning.advance import rest
from pliant.policy.tuning.front import find_front
from pliant.tune.searches.archives import SearchArchives
from pliant.tune.searches.book import OpenSearch, SearchBook
from pliant.tune.searches.importances import ImportanceCalculator, Importances
from pliant.tune.searches.new_search import NO_TRIALS, FirstTrials, notes_of_new, problems_of_new, problems_of_trials
from pliant.tune.searches.outlook import SearchOutlook
from pliant.tune.searches.ports import SearchPorts
from pliant.tune.searches.settings_rules import algorithm_of, problems_of_search

_MAX_ENQUEUED: Final = 10_000


class SearchRequests:
    """All searches, as people ask for them. Safe to call from any thread."""

    def __init__(
        self, *, book: SearchBook, archives: SearchArchives, ports: SearchPorts, new_name: Callable[[], str]
    ) -> None:
        self._book = book
        self._archives = archives
        self._ports = ports
        self._new_name = new_name
        self._importances = ImportanceCalculator(ports.open_adviser)
        self.outlook = SearchOutlook(book, ports)

    def create(
        self,
        caller: Principal,
        name: str | None,
        settings: SearchSettings,
        job: JobSpec,
        archive: Path,
        visible: VisibleJobs | None,
        first: FirstTrials = NO_TRIALS,
    ) -> tuple[Search, Sequence[str]]:
        """Check a search and its code, and begin it; return it, and what its owner should know.

        Args:
            name: None: it gets one.
            job: what its trials have in common.
            visible: which jobs the caller may name; None: all.
            first: what it begins with.

        Raises:
            InvalidInput, TooLarge: with everything that is wrong with it.
            Conflict: the name is taken.
            Unavailable: the disk cannot take it, or the server is going down.
        """
        algorithm = algorithm_of(settings, caller.name, self._ports)
        problems = problems_of_new(settings, caller.name, algorithm, self._ports, first)
        try:
            notes = self._ports.jobs.check(job, archive, caller.name, visible)
        except InvalidInput as error:
            raise InvalidInput(*problems, *error.problems) from error
        if problems:
            raise InvalidInput(*problems)
        settings = replace(settings, shared_with=name_once(settings.shared_with))
        now = self._ports.now()
        with self._book.lock:
            if algorithm != algorithm_of(settings, caller.name, self._ports):
                raise Conflict(f"{settings.sampler.name!r} was installed anew or removed meanwhile; begin it again")
            search = Search(
                name=name or self._new_name(),
                owner=caller.name,
                settings=settings,
                job=job,
                checksum=self._archives.keep(archive),
                created_at=now,
                running_since=now,
                num_trials=len(first.known),
                num_known=len(first.known),
                enqueued=tuple(first.enqueued),
                algorithm=algorithm,
            )
            self._book.add(search, trials_of(search, first.known))
        return search, (*notes, *notes_of_new(settings, first))

    def page(
        self, caller: Principal, after: str, limit: int, states: Sequence[SearchState] = (), part: str = ""
    ) -> tuple[tuple[Search, ...], str | None]:
        """Return searches that somebody sees, in some states, with `part` in their names; and the last if not all."""
        found: list[Search] = []
        for search in self._book.all(after, states, part):
            if not _sees(caller, search):
                continue
            if len(found) == limit:
                return tuple(found), found[-1].name
            found.append(search)
        return tuple(found), None

    def get(self, caller: Principal, name: str) -> Search:
        """Return a search.

        Raises:
            NotFound: none that they see.
        """
        search = self._ports.searches.search(name)
        if search is None or not _sees(caller, search):
            near = near_name(name, [one.name for one in self._book.all() if _sees(caller, one)])
            advice = "list them to see which there are" if near is None else f"is {near!r} meant?"
            raise NotFound(f"there is no search {name!r:.80}; {advice}")
        return search

    def is_recovering(self, search: Search) -> bool:
        """Tell whether a search ran before this server did, and has not been gone on with since."""
        return search.state is SearchState.RUNNING and not self._book.is_taken_up(search.name)

    def num_trials(self, name: str) -> Mapping[TrialState, int]:
        """Return how many trials are in each state."""
        return self._ports.searches.num_trials(name)

    def find_trial(self, name: str, number: int) -> Trial | None:
        """Return a trial, without asking who may see it; None if there is none."""
        return self._ports.searches.trial(name, number)

    def now(self) -> float:
        """Return the time."""
        return self._ports.now()

    def trial(self, caller: Principal, name: str, number: int) -> Trial:
        """Return a trial.

        Raises:
            NotFound: none that they see.
        """
        self.get(caller, name)
        trial = self._ports.searches.trial(name, number)
        if trial is None:
            raise NotFound(f"{name} has no trial {number}; list its trials to see which there are")
        return trial

    def trials(
        self, caller: Principal, name: str, *, after: int, limit: int, states: Sequence[TrialState]
    ) -> tuple[tuple[Trial, ...], int | None]:
        """Return trials in order, and the number of the last if there are more.

        Raises:
            NotFound: no search of that name that they see.
        """
        self.get(caller, name)
        found = self._ports.searches.trials(name, after=after, limit=limit + 1, states=states)
        return found[:limit], found[limit - 1].number if len(found) > limit else None

    def best(self, caller: Principal, name: str, limit: int) -> tuple[Trial, ...]:
        """Return completed trials that keep all constraints, the best first.

        Of several objectives only those that no other one beats, by the first objective.

        Raises:
            NotFound: no search of that name that they see.
        """
        objectives = self.get(caller, name).settings.objectives
        if len(objectives) > 1:
            return tuple(find_front(objectives, self.all_trials(name))[:limit])
        return self._ports.searches.best_trials(name, maximize=objectives[0].direction == "maximize", limit=limit)

    def importances(self, caller: Principal, name: str) -> Importances:
        """Return how important each parameter is, by the first objective.

        Raises:
            NotFound: no search of that name that they see.
            Unavailable: others are computed now, or what computes them was lost.
        """
        return self._importances.of(self.get(caller, name), self.all_trials(name))

    def all_trials(self, name: str) -> tuple[Trial, ...]:
        """Return all trials of a search that there is, without asking who may see it."""
        with self._book.lock:
            return tuple(self._book.require(name).trials)

    def algorithm_log(self, caller: Principal, name: str) -> str:
        """Return the newest of what the algorithm of a search has printed, which is no sampler that is built in.

        Raises:
            NotFound: no search of that name that they see, or its sampler is built in.
        """
        search = self.get(caller, name)
        if search.algorithm is None:
            sampler = search.settings.sampler.name
            raise NotFound(f"{name} has no such log: its sampler, {sampler}, is built in, and prints nothing")
        return self._ports.algorithms.log(name)

    def decisions(self, caller: Principal, name: str, after: int, limit: int) -> tuple[Decision, ...]:
        """Return what was decided, in order.

        Raises:
            NotFound: no search of that name that they see.
        """
        self.get(caller, name)
        return self._ports.searches.decisions(name, after=after, limit=limit)

    def change(self, caller: Principal, name: str, values: Mapping[str, Any], revision: int | None = None) -> Search:
        """Change limits of a search, or whom it is shared with; one that has come to a limit goes on if it may now.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            InvalidInput: with everything that is wrong with it.
            Stale: it is not at `revision` any more.
        """
        with self._book.lock:
            found = self._own(caller, name)
            search = found.search
            _refuse_stale(search, revision)
            settings = replace(search.settings, **values)
            if problems := problems_of_search(settings, search.owner, search.algorithm, self._ports):
                raise InvalidInput(*problems)
            settings = replace(settings, shared_with=name_once(settings.shared_with))
            grows = settings.max_trials is None or settings.max_trials > search.num_chosen
            goes_on = search.state is SearchState.COMPLETED and grows and not search.exhausted
            return self._put(found, replace(search, settings=settings), "its settings were changed", runs=goes_on)

    def add_trials(self, caller: Principal, name: str, trials: Sequence[Values]) -> Search:
        """Have these values tried next, beyond what the search would try; one that has ended goes on.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            InvalidInput: with everything that is wrong with the values.
            Conflict: too many wait already, or it is a population.
        """
        with self._book.lock:
            found = self._own(caller, name)
            search, settings = found.search, found.search.settings
            if settings.population is not None:
                raise Conflict(f"{name} is a population, which makes its trials from one another; begin another search")
            if problems := [*problems_of_trials(settings, search.algorithm, trials)]:
                raise InvalidInput(*problems)
            enqueued = (*search.enqueued, *trials)
            if len(enqueued) > _MAX_ENQUEUED:
                raise Conflict(f"{len(enqueued):,} trials would wait; {_MAX_ENQUEUED:,} is the most: add fewer at once")
            if settings.max_trials is not None:
                most = min(MAX_TRIALS, max(settings.max_trials, search.num_chosen) + len(trials))
                settings = replace(settings, max_trials=most)
            runs = search.state in (SearchState.COMPLETED, SearchState.RUNNING)
            reason = f"{caller.name} added {len(trials)} trial{'s' * (len(trials) != 1)}"
            return self._put(
                found, replace(search, settings=settings, enqueued=enqueued, exhausted=""), reason, runs=runs
            )

    def stop(self, caller: Principal, name: str) -> Search:
        """Let the trials of a search leave their slots, with their state saved; `resume` lets them go on.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Conflict: it does not run.
        """
        with self._book.lock:
            found = self._own(caller, name)
            search = found.search
            if search.state is not SearchState.RUNNING:
                raise Conflict(f"{name} is {search.state.value} already")
            reason = f"{caller.name} stopped it"
            stopped = rest(replace(search, state=SearchState.STOPPED, reason=reason), self._ports.now())
            step = self._book.begin(found, self._ports.now())
            step.search = stopped
            step.decide("stop", reason)
            self._book.commit(step)
            return found.search

    def resume(self, caller: Principal, name: str) -> Search:
        """Let a search go on that was stopped, or that has failed because what chooses its values could not go on.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Conflict: it is neither.
        """
        with self._book.lock:
            found = self._own(caller, name)
            search = found.search
            if search.state is not SearchState.STOPPED and not search.unrecovered:
                more = "; raise its limits, or add trials" if search.state is SearchState.COMPLETED else ""
                raise Conflict(f"{name} is {search.state.value}, not stopped{more}")
            return self._put(found, search, f"{caller.name} let it go on", runs=True)

    def remove(self, caller: Principal, name: str, revision: int | None = None) -> None:
        """Forget a search; its jobs that have not ended are stopped, and what they wrote stays theirs.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Stale: it is not at `revision` any more.
        """
        with self._book.lock:
            search = self._own(caller, name).search
            _refuse_stale(search, revision)
            self._book.remove(name)
            if all(one.checksum != search.checksum for one in self._book.all()):
                self._archives.remove(search.checksum)
            if search.algorithm is not None:
                self._ports.algorithms.forget_log(name)
        self._ports.changed(search)

    def _put(self, found: OpenSearch, search: Search, reason: str, *, runs: bool) -> Search:
        """Write a changed search, which runs from now on or stays as it is."""
        now = self._ports.now()
        step = self._book.begin(found, now)
        goes_on = runs and search.state is not SearchState.RUNNING
        if goes_on:
            search = replace(
                search, state=SearchState.RUNNING, reason=reason, running_since=now, ended_at=None, unrecovered=False
            )
        step.search = search
        step.decide("resume" if goes_on else "change", reason)
        self._book.commit(step)
        return found.search

    def _own(self, caller: Principal, name: str) -> OpenSearch:
        search = self.get(caller, name)
        if not caller.owns(search.owner):
            raise Forbidden(f"the search {name!r} belongs to {search.owner!r}; ask them, or begin one of your own")
        return self._book.require(name)


def _refuse_stale(search: Search, revision: int | None) -> None:
    if revision is not None and search.revision != revision:
        raise Stale(
            f"the search {search.name!r} was changed meanwhile: it is at revision {search.revision}, not {revision}; "
            f"read it again and repeat the change"
        )


def _sees(caller: Principal, search: Search) -> bool:
    return caller.sees(search.owner, search.shared_with) and caller.reaches(search.KIND, search.name)
