"""The contract of `Searches`: what every implementation does. Subclass `SearchesContract`; give it `searches`.

Nouns are compared by their `repr`, which tells True from 1, 1 from 1.0, and finds NaN equal to NaN.
"""

import math
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contracts.store import a_spec

from pliant.core.errors import Conflict, NotFound
from pliant.core.job import JobId
from pliant.core.search import (
    Constraint,
    Decision,
    Halving,
    Objective,
    Pruner,
    Sampler,
    Search,
    SearchSettings,
    SearchState,
    SearchWrites,
    Trial,
    TrialState,
)
from pliant.core.search_store import Searches
from pliant.core.space import SearchParameter

INFINITE = (math.inf, -math.inf, math.nan)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
lists = st.lists(scalars | st.lists(scalars, max_size=3).map(tuple), max_size=3).map(tuple)
documents = st.recursive(
    scalars | st.floats() | st.integers(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@st.composite
def parameters(draw: st.DrawFn) -> SearchParameter:
    """Draw a parameter; whether it makes sense is not the store's to know."""
    bounds = st.none() | finite
    return SearchParameter(
        kind=draw(st.sampled_from(["float", "int", "choice", "fixed"])),
        low=draw(bounds),
        high=draw(bounds),
        step=draw(bounds),
        log=draw(st.booleans()),
        choices=draw(st.lists(scalars | lists, max_size=4).map(tuple)),
        value=draw(scalars | lists),
        when=draw(st.dictionaries(texts, st.lists(scalars, max_size=3).map(tuple), max_size=2)),
    )


@st.composite
def drawn_searches(draw: st.DrawFn) -> Search:
    """Draw a search that is called `one`."""
    options = st.dictionaries(texts, scalars, max_size=3)
    chosen = SearchSettings(
        parameters=draw(st.dictionaries(texts, parameters(), min_size=1, max_size=3)),
        objectives=(Objective(metric=draw(texts), direction="maximize", reading="max"),),
        constraints=tuple(draw(st.lists(st.builds(Constraint, metric=texts, upper=st.none() | finite), max_size=2))),
        sampler=Sampler(name="gp", seed=draw(st.integers(0, 2**32 - 1)), options=draw(options)),
        pruner=draw(st.none() | st.builds(Pruner, name=st.just("median"), options=options)),
        halving=draw(st.none() | st.builds(Halving, max=st.integers(1, 99), size=st.none() | st.integers(1, 99))),
        max_time_s=draw(st.none() | finite),
        target=draw(st.none() | finite),
        shared_with=("bob",),
    )
    return replace(
        a_search(),
        settings=chosen,
        job=replace(a_spec(), env=draw(st.dictionaries(texts, texts, max_size=2))),
        best_result=draw(st.none() | st.floats()),
        created_at=draw(finite),
        reason=draw(texts),
    )


@st.composite
def drawn_trials(draw: st.DrawFn) -> Trial:
    """Draw a trial of the search `one`."""
    return Trial(
        search="one",
        number=draw(st.integers(0, 2**31 - 1)),
        values=draw(st.dictionaries(texts, values, max_size=3)),
        state=draw(st.sampled_from(TrialState)),
        reason=draw(texts),
        job_id=JobId("job-3"),
        reports=tuple(draw(st.lists(st.tuples(st.integers(0, 2**53), st.floats()), max_size=4))),
        results=draw(st.none() | st.lists(st.floats(), min_size=1, max_size=3).map(tuple)),
        violations=tuple(draw(st.lists(st.floats(), max_size=3))),
        rung_violations=tuple(draw(st.lists(st.floats(), max_size=3))),
        attributes=draw(st.dictionaries(texts, documents, max_size=3)),
        begun_at=draw(finite),
        ended_at=draw(st.none() | finite),
    )


def a_search(name: str = "one", *, owner: str = "ada") -> Search:
    """Return a search; `replace` what matters."""
    return Search(
        name=name,
        owner=owner,
        settings=SearchSettings(
            parameters={"z": SearchParameter(kind="float", low=1e-5, high=0.1, log=True), "a": _A_CHOICE},
            objectives=(Objective(metric="loss", direction="minimize"),),
            max_trials=9,
        ),
        job=a_spec(),
        checksum="ab" * 32,
        created_at=7.5,
    )


_A_CHOICE = SearchParameter(kind="choice", choices=(1, True, 1.0, "1", None, (64, (True, 1.0))), when={"z": (1, True)})


def a_trial(number: int = 0, state: TrialState = TrialState.RUNNING, **changes: Any) -> Trial:
    """Return a trial of the search `one`."""
    job_id = JobId(f"job-{number}")
    trial = Trial(search="one", number=number, values={"lr": 0.1}, state=state, job_id=job_id, begun_at=1.0)
    return replace(trial, **changes)


def completed(number: int, *results: float) -> Trial:
    return a_trial(number, TrialState.COMPLETED, results=results or None)


def a_decision(position: int, trial: int | None = None) -> Decision:
    return Decision(search="one", position=position, at=2.5, kind="ask", trial=trial, reason="größe \N{SNOWMAN}")


def write(searches: Searches, *trials: Trial, state: str | None = None, decisions: Iterable[Decision] = ()) -> None:
    """Write what belongs to the search `one`."""
    search = searches.search("one") or a_search()
    searches.write(SearchWrites(search=search, trials=trials, decisions=tuple(decisions), sampler_state=state))


def numbers(trials: Iterable[Trial]) -> list[int]:
    return [trial.number for trial in trials]


class SearchesContract:
    """What a caller may rely on."""

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
    @given(search=drawn_searches())
    def test_a_search_comes_back_as_it_was_added_and_as_it_was_changed(
        self, searches: Searches, search: Search
    ) -> None:
        if searches.search("one") is None:
            searches.add(search)
        assert searches.search("other") is None
        searches.write(SearchWrites(search=search))
        assert repr(searches.search("one")) == repr(search)
        assert repr(searches.searches()) == repr((search,))

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
    @given(trial=drawn_trials())
    def test_a_trial_comes_back_as_it_was_written(self, searches: Searches, trial: Trial) -> None:
        if searches.search("one") is None:
            searches.add(a_search())
        write(searches, trial)
        assert repr(searches.trial("one", trial.number)) == repr(trial)
        assert repr(trial) in map(repr, searches.trials("one"))

    def test_a_name_is_taken_once(self, searches: Searches) -> None:
        searches.add(a_search())
        with pytest.raises(Conflict, match="there is a search 'one' already"):
            searches.add(a_search(owner="bob"))
        assert searches.search("one") == a_search()

    def test_no_two_names_differ_only_by_capital_letters(self, searches: Searches) -> None:
        searches.add(a_search("One"))
        for twin in ("one", "ONE"):
            with pytest.raises(Conflict, match="only by capital letters"):
                searches.add(a_search(twin))
        searches.remove("One")
        searches.add(a_search("one"))

    def test_lists_are_in_order_and_come_in_pages(self, searches: Searches) -> None:
        names = ["b", "B-", "a-b", "a.c", "a", "ab", "x_", "Z"]
        for name in names:
            searches.add(a_search(name, owner="ada" if "a" in name else "bob"))
        found: list[str] = []
        while page := searches.searches(after=found[-1] if found else "", limit=3):
            found += [search.name for search in page]
        assert found == sorted(names)
        assert [search.name for search in searches.searches(owner="bob")] == ["B-", "Z", "b", "x_"]
        assert searches.searches(owner="eve") == ()
        searches.write(SearchWrites(search=replace(a_search("Z", owner="bob"), state=SearchState.STOPPED)))
        stopped, others = (SearchState.STOPPED,), (SearchState.RUNNING, SearchState.FAILED)
        assert [search.name for search in searches.searches(states=stopped)] == ["Z"]
        assert [search.name for search in searches.searches(states=others, after="a", limit=2)] == ["a-b", "a.c"]

    def test_a_part_of_a_name_finds_a_search(self, searches: Searches) -> None:
        for name in ("digits-1", "Digits_2", "other"):
            searches.add(a_search(name))
        assert [one.name for one in searches.searches(part="DIGITS")] == ["Digits_2", "digits-1"]
        assert [one.name for one in searches.searches(part="_")] == ["Digits_2"]
        assert searches.searches(part="%") == ()

    def test_a_change_replaces_a_search_and_its_trials_and_appends_decisions(self, searches: Searches) -> None:
        searches.add(a_search())
        write(searches, a_trial(0), a_trial(1), decisions=[a_decision(1, 0), a_decision(2, 1)])
        changed = replace(a_search(), state=SearchState.COMPLETED, revision=2, best=1, reason="all are there")
        last = (a_decision(3),)
        searches.write(SearchWrites(search=changed, trials=(completed(1, 0.5), a_trial(2)), decisions=last))
        assert searches.search("one") == changed
        assert searches.trials("one") == (a_trial(0), completed(1, 0.5), a_trial(2))
        assert searches.decisions("one") == (a_decision(1, 0), a_decision(2, 1), a_decision(3))

    def test_a_change_of_the_owner_shows_in_the_list(self, searches: Searches) -> None:
        searches.add(a_search())
        searches.write(SearchWrites(search=a_search(owner="bob")))
        assert searches.searches(owner="ada") == ()
        assert searches.searches(owner="bob") == (a_search(owner="bob"),)

    def test_what_the_sampler_continues_from_stays_until_there_is_a_newer_one(self, searches: Searches) -> None:
        assert searches.sampler_state("one") == ""
        searches.add(a_search())
        assert searches.sampler_state("one") == ""
        write(searches, state='{"rng": [1, 2]}')
        write(searches, a_trial())
        assert searches.sampler_state("one") == '{"rng": [1, 2]}'
        write(searches, state="")
        assert searches.sampler_state("one") == ""

    def test_nothing_is_written_to_a_search_that_is_not_there(self, searches: Searches) -> None:
        with pytest.raises(NotFound, match="there is no search 'one'"):
            write(searches, a_trial(), state="1", decisions=[a_decision(1)])
        assert searches.search("one") is None
        assert (searches.trials("one"), searches.decisions("one")) == ((), ())
        with pytest.raises(NotFound):
            searches.remove("one")

    def test_a_position_is_taken_once_and_then_nothing_is_written(self, searches: Searches) -> None:
        searches.add(a_search())
        write(searches, a_trial(0), state="old", decisions=[a_decision(1, 0)])
        changed = replace(a_search(), position=9)
        twice = SearchWrites(
            search=changed,
            trials=(a_trial(0, TrialState.FAILED), a_trial(1)),
            decisions=(a_decision(2), a_decision(1)),
            sampler_state="new",
        )
        with pytest.raises(Conflict, match="has a decision 1 already"):
            searches.write(twice)
        assert searches.search("one") == a_search()
        assert searches.trials("one") == (a_trial(0),)
        assert searches.decisions("one") == (a_decision(1, 0),)
        assert searches.sampler_state("one") == "old"

    def test_trials_come_in_pages_and_by_their_states(self, searches: Searches) -> None:
        searches.add(a_search())
        states = list(TrialState)
        trials = [a_trial(number, states[number % len(states)]) for number in range(20)]
        write(searches, *reversed(trials))
        assert searches.trials("one") == tuple(trials)
        assert numbers(searches.trials("one", after=4, limit=3)) == [5, 6, 7]
        some = (TrialState.PAUSED, TrialState.RUNNING)
        wanted = [trial.number for trial in trials if trial.state in some]
        assert numbers(searches.trials("one", states=some)) == wanted
        assert numbers(searches.trials("one", states=some, after=wanted[1], limit=2)) == wanted[2:4]
        assert searches.num_trials("one") == Counter(trial.state for trial in trials)
        assert searches.num_trials("two") == {}
        assert searches.trial("one", 20) is searches.trial("two", 0) is None

    def test_the_best_trials_have_completed_and_have_a_number(self, searches: Searches) -> None:
        searches.add(a_search())
        results = (2.0, 1.0, math.nan, -math.inf, 1.0, math.inf, -0.0, 0.0)
        write(searches, *(completed(number, result, 9.0 - number) for number, result in enumerate(results)))
        write(searches, completed(8), a_trial(9, TrialState.PRUNED, results=(-5.0,)), a_trial(10))
        assert numbers(searches.best_trials("one", maximize=False)) == [3, 6, 7, 1, 4, 0, 5]
        assert numbers(searches.best_trials("one", maximize=True)) == [5, 0, 1, 4, 6, 7, 3]
        assert numbers(searches.best_trials("one", maximize=True, limit=3)) == [5, 0, 1]
        assert searches.best_trials("two", maximize=True) == ()

    def test_the_best_trials_keep_all_constraints(self, searches: Searches) -> None:
        searches.add(a_search())
        violations = ((), (0.0, -1.0), (-1.0, 1e-300), (math.inf, 0.0), (-1.0, 0.0))
        trials = [replace(completed(number, float(number)), violations=one) for number, one in enumerate(violations)]
        write(searches, *trials)
        assert numbers(searches.best_trials("one", maximize=False)) == [0, 1, 4]
        assert searches.trial("one", 3) == trials[3]
        write(searches, replace(trials[2], violations=(0.0, 0.0)))
        assert numbers(searches.best_trials("one", maximize=True)) == [4, 2, 1, 0]

    def test_a_search_begins_with_trials_that_are_known_or_not_at_all(self, searches: Searches) -> None:
        known = tuple(replace(completed(number, float(number)), job_id=JobId("")) for number in range(3))
        searches.add(replace(a_search(), num_trials=3, num_known=3), known)
        assert searches.trials("one") == known
        with pytest.raises(Conflict):
            searches.add(a_search(), [a_trial(7)])
        assert searches.trials("one") == known
        write(searches, completed(3, 5.0))
        assert numbers(searches.best_trials("one", maximize=False)) == [3]

    def test_decisions_come_in_pages(self, searches: Searches) -> None:
        searches.add(a_search())
        for position in range(1, 8):
            write(searches, decisions=[a_decision(position)])
        assert searches.decisions("one", after=2, limit=3) == (a_decision(3), a_decision(4), a_decision(5))
        assert searches.decisions("one", after=7) == ()

    def test_a_removed_search_takes_all_that_is_its_own_and_nothing_else(self, searches: Searches) -> None:
        searches.add(a_search())
        searches.add(a_search("two"))
        other = a_trial(0, search="two")
        searches.write(SearchWrites(search=a_search("two"), trials=(other,)))
        write(searches, a_trial(), state="1", decisions=[a_decision(1)])
        searches.remove("one")
        assert searches.search("one") is None
        searches.add(a_search())
        assert (searches.trials("one"), searches.decisions("one")) == ((), ())
        assert searches.sampler_state("one") == ""
        assert searches.trials("two") == (other,)

    def test_of_many_who_add_a_name_one_has_it(self, searches: Searches) -> None:
        added: list[str] = []

        def add(name: str) -> None:
            try:
                searches.add(a_search(name))
            except Conflict:
                return
            added.append(name)

        threads = [threading.Thread(target=add, args=(name,)) for name in ("one", "One", "ONE", "one") * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [search.name for search in searches.searches()] == added

    def test_who_reads_sees_all_of_a_write_or_nothing(self, searches: Searches) -> None:
        searches.add(a_search())
        seen: set[tuple[int, ...]] = set()
        over = threading.Event()

        def read() -> None:
            while not over.is_set():
                seen.add(tuple(trial.rung for trial in searches.trials("one")))

        reader = threading.Thread(target=read)
        reader.start()
        for rung in range(30):
            write(searches, *(a_trial(number, rung=rung) for number in range(5)))
        over.set()
        reader.join()
        assert all(len(set(rungs)) <= 1 and len(rungs) in (0, 5) for rungs in seen)
