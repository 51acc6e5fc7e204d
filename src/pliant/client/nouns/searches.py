"""Searches at a server: submit, watch, change, stop, resume; and a handle on one of them, for notebooks and scripts."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pliant.api.searches import (
    DecisionPage,
    ImportancesView,
    SearchPage,
    SearchPatch,
    SearchRequest,
    SearchView,
    SearchWhy,
    TrialPage,
    TrialsRequest,
)
from pliant.client.folders.pack import Limits
from pliant.client.folders.script import find_script
from pliant.client.http.connection import Params, if_match, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.pages import pages
from pliant.client.http.patience import observe
from pliant.client.nouns.noun import NounClient, checked
from pliant.client.nouns.search_progress import SearchProgress
from pliant.client.nouns.submission import DELETE_TIMEOUT_S, send_code
from pliant.core.errors import InvalidInput, Problem
from pliant.core.input import values_of
from pliant.core.population import Population
from pliant.core.search import Constraint, Decision, Halving, SearchState, Trial, TrialState
from pliant.core.search_text import read_constraint, read_halving, read_metric, read_population
from pliant.core.space import SearchParameter, Value
from pliant.core.space_text import read_domain

_PAGE: Final = 1000
_MAX_NAME: Final = 50
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SEARCH_PAGE: Final = LazyAdapter(SearchPage)
_TRIAL_PAGE: Final = LazyAdapter(TrialPage)
_TRIAL: Final = LazyAdapter(Trial)
_WHY: Final = LazyAdapter(SearchWhy)
_IMPORTANCES: Final = LazyAdapter(ImportancesView)
_IMPORTANCES_TIMEOUT_S: Final = 90.0
_DECISION_PAGE: Final = LazyAdapter(DecisionPage)

GivenParameter = str | SearchParameter | Mapping[str, Any]
"""What a parameter may be: as text (`"log:1e-5..1e-1"`), as noun, or as fields."""

GivenConstraint = str | Constraint | Mapping[str, Any]
"""A bound of a metric: as text (`"memory_gb<=8"`), as noun, or as fields."""


class SearchClient(NounClient[SearchView]):
    """The searches at a server; errors as `Client` says.

    Example:
        >>> for trial in client.searches.best("digits", limit=3):
        ...     print(trial.number, trial.results, trial.values)
    """

    _root = "/searches"
    _view = LazyAdapter(SearchView)

    def submit(self, code: Path | str, request: SearchRequest, *, limits: Limits | None = None) -> SearchView:
        """Pack a folder or a single file, upload it and begin a search of what a script in it can reach.

        Raises:
            Conflict: there is a search of this name.
            InvalidInput: with everything that is wrong.
        """
        return parse(self._view, send_code(self._connection, self._root, Path(code).expanduser(), request, limits))

    def list(self, *, states: Sequence[SearchState | str] = ()) -> Iterator[SearchView]:
        """Yield the searches that we may see, in the order of their names: those in one of these states, or all."""
        words = [SearchState(state).value for state in ([states] if isinstance(states, str) else states)]

        def ask(after: str) -> SearchPage:
            params: Params = {"after": after or None, "limit": _PAGE, "state": words}
            return self._connection.get(_SEARCH_PAGE, self._root, params)

        for page in pages(ask):
            yield from page.searches

    def free_name(self, text: str) -> str:
        """Return a name that no search that we may see has, as near to a text as the rules allow: `train`, `train-2`.

        Raises:
            InvalidInput: nothing of the text can be in a name.
        """
        fit = _UNFIT.sub("-", text).strip("._-")[:_MAX_NAME]
        if not fit:
            raise InvalidInput.at("name", f"{text!r} gives the search no name; give one of letters and digits")
        taken = {search.name.lower() for search in self.list()}
        if fit.lower() not in taken:
            return fit
        ends = (f"-{number}" for number in range(2, len(taken) + 3))
        return next(
            name for end in ends if (name := f"{fit[: _MAX_NAME - len(end)]}{end}") and name.lower() not in taken
        )

    def change(
        self, name: str, patch: SearchPatch | None = None, *, revision: int | None = None, **settings: Any
    ) -> SearchView:
        """Change the limits of a search: `max_trials=80`; None takes one away. One that had come to a limit goes on.

        Raises:
            Stale: it is not at this revision any more.
            TypeError: both a patch and settings are given.
        """
        if patch is not None and settings:
            raise TypeError("give a patch or settings, not both")
        return self._send("PATCH", self._path(name), patch or checked(SearchPatch, settings), revision)

    def stop(self, name: str) -> SearchView:
        """Pause the trials of a search where they are, and begin no more.

        Raises:
            Conflict: it does not run.
        """
        return parse(self._view, self._connection.call("POST", f"{self._path(name)}/stop"))

    def resume(self, name: str) -> SearchView:
        """Let a search that was stopped go on where it was.

        Raises:
            Conflict: it was not stopped.
        """
        return parse(self._view, self._connection.call("POST", f"{self._path(name)}/resume"))

    def add_trials(self, name: str, trials: Sequence[Mapping[str, Value]]) -> SearchView:
        """Let these values be tried next, beyond `max_trials`; what is left out of them is chosen.

        Raises:
            InvalidInput: with all that are none of its space.
        """
        return self._send("POST", f"{self._path(name)}/trials", checked(TrialsRequest, {"trials": tuple(trials)}))

    def trials(self, name: str, *, states: Sequence[TrialState | str] = ()) -> Iterator[Trial]:
        """Yield the trials of a search, in the order of their numbers: those in one of these states, or all."""
        words = [states] if isinstance(states, str) else [TrialState(state).value for state in states]
        after: int | None = -1
        while after is not None:
            params: Params = {"after": after, "limit": _PAGE, "state": words}
            page = self._connection.get(_TRIAL_PAGE, f"{self._path(name)}/trials", params)
            yield from page.trials
            after = page.next

    def trial(self, name: str, number: int) -> Trial:
        """Return a trial."""
        return self._connection.get(_TRIAL, f"{self._path(name)}/trials/{number}")

    def best(self, name: str, *, limit: int = 10) -> tuple[Trial, ...]:
        """Return the best trials that have completed and keep all constraints, the best first.

        Of several objectives those that no other trial beats in all of them, by the first one.
        """
        return self._connection.get(_TRIAL_PAGE, f"{self._path(name)}/best", {"limit": limit}).trials

    def algorithm_log(self, name: str) -> str:
        """Return the newest megabyte of what the algorithm of a search has printed.

        Raises:
            NotFound: its sampler is built in.
        """
        return self._connection.call("GET", f"{self._path(name)}/algorithm-log").text

    def why(self, name: str) -> SearchWhy:
        """Return why a search has the slots it has: what each of its trials has, and what waits for what."""
        return self._connection.get(_WHY, f"{self._path(name)}/why")

    def importances(self, name: str) -> ImportancesView:
        """Return how much of the differences in the first objective comes from each parameter; or why nobody can tell.

        Raises:
            Unavailable: the server computes others now.
        """
        path = f"{self._path(name)}/importances"
        timeout_s = max(_IMPORTANCES_TIMEOUT_S, self._connection.timeout_s)
        return parse(_IMPORTANCES, self._connection.call("GET", path, timeout_s=timeout_s))

    def decisions(self, name: str, *, after: int = 0) -> Iterator[Decision]:
        """Yield what a search decided and why, from that after position `after` on."""
        while True:
            params: Params = {"after": after, "limit": _PAGE}
            page = self._connection.get(_DECISION_PAGE, f"{self._path(name)}/decisions", params)
            yield from page.decisions
            if not page.decisions:
                return
            after = page.last

    def remove(self, name: str, *, revision: int | None = None) -> None:
        """Forget a search with its trials; jobs of it that have not ended are stopped, and all of them stay as jobs.

        Raises:
            Stale: it is not at this revision any more.
        """
        path, headers = self._path(name), if_match(revision)
        self._connection.call("DELETE", path, headers=headers, timeout_s=DELETE_TIMEOUT_S)

    def wait(
        self,
        name: str,
        *,
        timeout_s: float = math.inf,
        poll_s: float = 1.0,
        on_poll: Callable[[SearchView], None] | None = None,
    ) -> SearchView:
        """Wait until a search does not run any more and return it. A server that restarts meanwhile does not matter.

        Args:
            name: the search's.
            timeout_s: how long at most, in seconds.
            poll_s: seconds between two looks.
            on_poll: gets the search every time that we have looked.

        Raises:
            TimeoutError: it still runs after `timeout_s`.
        """
        for view in observe(lambda: self.get(name), timeout_s=timeout_s, poll_s=poll_s):
            if on_poll is not None:
                on_poll(view)
            if view.state is not SearchState.RUNNING:
                return view
        raise TimeoutError(f"{name} still runs after {timeout_s:g} s")


class SearchHandle:
    """One search of a server. Every method asks the server; errors are those of `SearchClient`."""

    def __init__(self, searches: SearchClient, search: SearchView) -> None:
        self._searches = searches
        self.search = search
        """As it was submitted, or found."""

    def __repr__(self) -> str:
        return f"<search {self.name}>"

    @property
    def name(self) -> str:
        """What it is called."""
        return self.search.name

    @property
    def notes(self) -> tuple[str, ...]:
        """What its owner should know of the submission, in sentences."""
        return self.search.notes

    def show(self) -> SearchView:
        """Return the search as it is now."""
        return self._searches.get(self.name)

    def wait(
        self,
        *,
        progress: bool = False,
        timeout_s: float = math.inf,
        on_poll: Callable[[SearchView], None] | None = None,
    ) -> SearchView:
        """Wait until it does not run any more and return it; its `state` and `reason` say why.

        With `progress`, show meanwhile how far it is: in a line that changes below the cell of a notebook or in a
        terminal, else in a line for all news, on stderr.

        Raises:
            TimeoutError: it still runs after `timeout_s` seconds.
        """
        if not progress:
            return self._searches.wait(self.name, timeout_s=timeout_s, on_poll=on_poll)
        with SearchProgress.here() as shown:

            def show(view: SearchView) -> None:
                shown.show(view)
                if on_poll is not None:
                    on_poll(view)

            return self._searches.wait(self.name, timeout_s=timeout_s, on_poll=show)

    def best(self, *, limit: int = 10) -> tuple[Trial, ...]:
        """Return its best trials that have completed, as `client.searches.best` does."""
        return self._searches.best(self.name, limit=limit)

    def trials(self, *, states: Sequence[TrialState | str] = ()) -> Iterator[Trial]:
        """Yield its trials, in the order of their numbers."""
        return self._searches.trials(self.name, states=states)

    def decisions(self, *, after: int = 0) -> Iterator[Decision]:
        """Yield what it decided and why."""
        return self._searches.decisions(self.name, after=after)

    def why(self) -> SearchWhy:
        """Return why it has the slots it has: what each of its trials has, and what waits for what."""
        return self._searches.why(self.name)

    def importances(self) -> ImportancesView:
        """Return how much of the differences in the first objective comes from each parameter."""
        return self._searches.importances(self.name)

    def add_trials(self, *trials: Mapping[str, Value]) -> SearchView:
        """Let these values be tried next, beyond its limit."""
        return self._searches.add_trials(self.name, trials)

    def change(self, **settings: Any) -> SearchView:
        """Change its limits: `max_trials=80`, `parallel=4`, `max_time_s=3600`; None takes one away."""
        return self._searches.change(self.name, **settings)

    def stop(self) -> SearchView:
        """Pause its trials where they are, and begin no more."""
        return self._searches.stop(self.name)

    def resume(self) -> SearchView:
        """Let it go on, after it was stopped."""
        return self._searches.resume(self.name)


def search_request(code: Path, searches: SearchClient, options: Mapping[str, Any]) -> SearchRequest:
    """Return the request that the keywords of `Client.tune` make.

    Raises:
        InvalidInput: with everything that is wrong.
    """
    given = {name: value for name, value in options.items() if value is not None}
    metric, direction = given.pop("metric", None), given.pop("direction", None)
    if metric is not None:
        name, reading = read_metric(metric)
        given["objectives"] = [{"metric": name, "direction": direction or "minimize", "reading": reading}]
    given["parameters"] = _parameters(given.get("parameters", {}))
    if isinstance(halving := given.get("halving"), str):
        given["halving"] = values_of(Halving, _at("halving", read_halving, halving))
    if "constraints" in given:
        given["constraints"] = _constraints(given["constraints"])
    if isinstance(population := given.get("population"), str):
        given["population"] = values_of(Population, _at("population", read_population, population))
    if "script" not in given:
        given["script"] = find_script(code)
    if "name" not in given:
        given["name"] = searches.free_name(Path(given["script"]).stem)
    return checked(SearchRequest, given)


def _parameters(given: Mapping[str, GivenParameter]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, one in given.items():
        try:
            parameter = _at(f"parameters.{name}", read_domain, one) if isinstance(one, str) else one
        except InvalidInput as error:
            problems += error.problems
            continue
        is_noun = isinstance(parameter, SearchParameter)
        found[name] = values_of(SearchParameter, parameter) if is_noun else parameter
    if problems:
        raise InvalidInput(*problems)
    return found


def _constraints(given: Sequence[GivenConstraint]) -> Sequence[Any]:
    found: list[Any] = []
    problems: list[Problem] = []
    for place, one in enumerate([given] if isinstance(given, str) else given):
        try:
            constraint = _at(f"constraints.{place}", read_constraint, one) if isinstance(one, str) else one
        except InvalidInput as error:
            problems += error.problems
            continue
        found.append(values_of(Constraint, constraint) if isinstance(constraint, Constraint) else constraint)
    if problems:
        raise InvalidInput(*problems)
    return found


def _at(field: str, read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except InvalidInput as error:
        raise InvalidInput.at(field, error.problems[0].message) from error
