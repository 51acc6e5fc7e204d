"""Bounds that the best trial keeps: how far they are violated, what becomes of the best, of rungs and of the end."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, nan
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.tuning.stage import Stage, search_of, settings_of, trial_of

from pliant.core.lifecycle import JobState
from pliant.core.population import Population
from pliant.core.search import Constraint, Halving, Objective, Search, SearchState, Trial, TrialState
from pliant.policy.tuning.advance import SearchStep, advance, as_seen
from pliant.policy.tuning.constraints import violation_of
from pliant.policy.tuning.generation import Offspring, decide_generation
from pliant.policy.tuning.intake import JobNews, SeriesPoint, take_in
from pliant.policy.tuning.promotion import Promotion, Pruning, decide_rungs

MEMORY = Constraint(metric="memory", upper=8.0)
ACC = Constraint(metric="acc", lower=0.9, reading="max")
BOUND = search_of(settings_of(constraints=(MEMORY, ACC), max_trials=3))


def points(*values: float) -> list[SeriesPoint]:
    return [SeriesPoint(epoch=epoch, step=epoch * 10, value=value) for epoch, value in enumerate(values, start=1)]


def ended(loss: float, memory: float, acc: float = 1.0) -> JobNews:
    series = {"val_loss": points(loss), "memory": points(memory), "acc": points(0.1, acc, 0.2)}
    return JobNews(state=JobState.COMPLETED, series=series)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_value_violates_a_bound_exactly_if_it_is_beyond_it(value: float, bound: float) -> None:
    assert (violation_of(Constraint(metric="m", upper=bound), value) > 0) == (value > bound)
    assert (violation_of(Constraint(metric="m", lower=bound), value) > 0) == (value < bound)


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_what_is_not_finite_violates_by_infinity(value: float) -> None:
    assert violation_of(MEMORY, value) == violation_of(ACC, value) == inf


def test_a_trial_keeps_how_far_it_violates_each_constraint() -> None:
    trial = take_in(BOUND, trial_of(0), ended(0.5, 9.5, acc=1.0))

    assert trial.violations == pytest.approx((1.5, -0.1))
    assert trial.reason == "it came to val_loss 0.5, but its memory 9.5 violates memory<=8"
    assert take_in(BOUND, trial_of(0), ended(0.5, 8.0)).is_feasible


def test_a_trial_that_never_reports_what_is_bounded_fails() -> None:
    news = JobNews(state=JobState.COMPLETED, series={"val_loss": points(0.5)}, reported=("val_loss",))

    trial = take_in(BOUND, trial_of(0), news)

    assert trial.state is TrialState.FAILED
    assert trial.reason.startswith("it ended without a value of memory; it reported val_loss. Report it with run.log(")


def played(search: Search, *news: JobNews) -> SearchStep:
    """Return a step in which trials complete, one after the other."""
    search = replace(search, num_trials=len(news))
    step = SearchStep(search=search, trials=[trial_of(number) for number in range(len(news))], now=1.0)
    for number, one in enumerate(news):
        advance(step, {number: one}, num_places=9, job_ids=iter(()))
    return step


def test_the_best_keeps_all_constraints() -> None:
    step = played(BOUND, ended(0.1, 9.0), ended(0.5, 8.0), ended(0.2, 7.0, acc=0.8))

    assert (step.search.best, step.search.best_result, step.search.nearest) == (1, 0.5, None)
    assert step.search.reason == "all of its 3 trials have ended"


def test_if_none_keeps_them_the_end_says_so_and_names_the_nearest() -> None:
    step = played(BOUND, ended(0.1, 10.0), ended(0.5, 8.5), ended(0.2, nan))

    assert (step.search.state, step.search.best, step.search.nearest) == (SearchState.COMPLETED, None, 1)
    assert step.search.reason == (
        "all of its 3 trials have ended, and no trial keeps memory<=8 and acc:max>=0.9; trial 1 is nearest"
    )


def test_of_several_objectives_the_nearest_is_known_too() -> None:
    two = replace(
        BOUND.settings, objectives=(*BOUND.settings.objectives, Objective(metric="acc", direction="maximize"))
    )
    search = replace(BOUND, settings=two)

    assert played(search, ended(0.1, 10.0), ended(0.5, 8.5)).search.nearest == 1
    assert played(search, ended(0.1, 10.0), ended(0.5, 8.0)).search.nearest is None


def test_a_target_is_met_by_a_trial_that_keeps_them() -> None:
    search = search_of(settings_of(constraints=(MEMORY,), target=0.3, max_trials=9))

    assert played(search, ended(0.1, 9.0)).search.state is SearchState.RUNNING
    assert "0.3 was the target" in played(search, ended(0.1, 9.0), ended(0.2, 8.0)).search.reason


HALVING = Halving(min=1, max=9, factor=3)
RUNGS = search_of(settings_of(HALVING, constraints=(MEMORY,), max_trials=3))


def waiting(number: int, loss: float, *violations: float) -> Trial:
    return trial_of(number, state=TrialState.PAUSED, reports=((1, loss),), violations=violations)


def test_a_rung_ranks_those_that_keep_them_first_then_by_how_far_they_are_from_it() -> None:
    search = replace(RUNGS, num_trials=3)

    found = decide_rungs(search, [waiting(0, 0.1, 2.0), waiting(1, 0.9, 0.0), waiting(2, 0.2, 1.0)])
    assert [(one.trial.number, one.trial.state.value, one.trial.violations) for one in found] == [
        (0, "pruned", (2.0,)),
        (1, "paused", ()),
        (2, "pruned", (1.0,)),
    ]
    assert found[0].reason == "val_loss 0.1 at epoch 1, which violates constraints, is number 3 of 3, and 1 goes on"

    none = decide_rungs(search, [waiting(0, 0.1, 2.0), waiting(1, 0.9, 3.0), waiting(2, 0.2, 1.0)])
    assert [one.trial.number for one in none if one.trial.rung] == [2]


@pytest.mark.parametrize("order", ["rungs", "arrival"])
def test_a_rung_waits_until_it_is_known_who_keeps_them(order: str) -> None:
    search = replace(RUNGS, settings=replace(RUNGS.settings, halving=replace(HALVING, order=order)), num_trials=3)  # type: ignore[arg-type]
    trials = [waiting(0, 0.1), waiting(1, 0.9, 0.0), waiting(2, 0.2, 1.0)]

    assert decide_rungs(search, trials) == ()
    known = take_in(search, trials[0], JobNews(state=JobState.PAUSED, at_rung={"memory": points(9.0, 8.5)}))
    assert known.violations == (0.5,)
    assert [one.trial.number for one in decide_rungs(search, [known, *trials[1:]]) if one.trial.rung] == [1]


ARRIVAL = replace(RUNGS, settings=replace(RUNGS.settings, halving=replace(HALVING, order="arrival"), max_trials=9))


def test_who_violated_them_when_it_went_on_stays_behind_those_that_keep_them() -> None:
    first = [waiting(0, 0.1, 1.0), waiting(1, 0.2, 2.0), waiting(2, 0.3, 3.0)]
    (gone,) = decide_rungs(replace(ARRIVAL, num_trials=3), first)
    assert (gone.trial.number, gone.trial.violations, gone.trial.rung_violations) == (0, (), (1.0,))

    keeping = [waiting(3, 0.5, 0.0), waiting(4, 0.6, -1.0), waiting(5, 0.7, 0.0)]
    found = decide_rungs(replace(ARRIVAL, num_trials=6), [gone.trial, *first[1:], *keeping])

    assert [one.reason for one in found] == [
        "val_loss 0.5 at epoch 1 is number 1 of 6: it goes on to the rung after epoch 1",
        "val_loss 0.6 at epoch 1 is number 2 of 6: it goes on to the rung after epoch 1",
    ]


def test_what_a_trial_violates_later_changes_nothing_at_a_rung_that_it_passed() -> None:
    rest = [waiting(1, 0.2, 0.0), waiting(2, 0.3, 0.0)]
    (gone,) = decide_rungs(replace(ARRIVAL, num_trials=3), [waiting(0, 0.1, 0.0), *rest])

    at_next_rung = replace(gone.trial, reports=((1, 0.1), (3, 0.1)), violations=(5.0,))
    ended = replace(gone.trial, rung=2, state=TrialState.COMPLETED, results=(0.1,), violations=(5.0,))

    assert decide_rungs(replace(ARRIVAL, num_trials=3), [at_next_rung, *rest]) == ()
    assert decide_rungs(replace(ARRIVAL, num_trials=3), [ended, *rest]) == ()


def test_rungs_that_a_trial_passed_before_violations_were_kept_count_as_kept() -> None:
    old = trial_of(0, state=TrialState.PAUSED, rung=1, reports=((1, 0.1), (3, 0.1)), violations=(5.0,))
    others = [replace(old, number=number, violations=(6.0,)) for number in (1, 2)]

    (gone,) = decide_rungs(replace(ARRIVAL, num_trials=3), [old, *others])

    assert (gone.trial.rung, gone.trial.rung_violations) == (2, (0.0, 5.0))


def test_what_was_not_reported_by_then_counts_as_kept() -> None:
    assert take_in(RUNGS, waiting(0, 0.1), JobNews(state=JobState.PAUSED, at_rung={})).violations == (0.0,)


def test_a_sampler_sees_nothing_of_what_its_own_bracket_violates() -> None:
    trial = waiting(0, 0.1, 2.0)

    assert as_seen(RUNGS, trial, 0).violations == ()
    assert as_seen(RUNGS, trial, 1).violations == (2.0,)


values = st.floats(0, 16, width=16)


@given(st.lists(st.lists(st.tuples(values, values), min_size=9, max_size=9), min_size=9, max_size=9), st.integers())
@settings(max_examples=15, deadline=None)
def test_neither_the_order_of_arrival_nor_quick_trials_decide_anything(
    curves: list[list[tuple[float, float]]], seed: int
) -> None:
    for form in ({"halving": HALVING}, {"population": Population(size=3, every=2, max=9), "max_trials": None}):
        compare(played_rungs(curves, None, form), played_rungs(curves, Random(seed), form))


def compare(calm: Stage, wild: Stage) -> None:
    assert wild.outcome() == calm.outcome()
    assert [one.violations for one in wild.trials] == [one.violations for one in calm.trials]
    assert (wild.search.best, wild.search.nearest) == (calm.search.best, calm.search.nearest)


def played_rungs(curves: list[list[tuple[float, float]]], chance: Random | None, form: Mapping[str, object]) -> Stage:
    stage = Stage(
        search_of(settings_of(constraints=(MEMORY,), **form)),  # type: ignore[arg-type]
        lambda number, epoch: curves[number % 9][epoch - 1][0],
        num_epochs=9,
        num_places=9 if chance is None else chance.randint(1, 9),
        measures={"memory": lambda number, epoch: curves[number % 9][epoch - 1][1]},
    )
    stage.play(chance)
    return stage


def test_a_member_of_a_population_that_keeps_them_is_followed_before_better_ones_that_do_not() -> None:
    search = search_of(settings_of(population=Population(size=3, every=1, max=3), constraints=(MEMORY,)))
    search = replace(search, num_trials=3)

    assert decide_generation(search, [waiting(0, 0.1, 2.0), waiting(1, 0.9, 0.0), waiting(2, 0.2)]) == ()
    ended, first, second, child = decide_generation(
        search, [waiting(0, 0.1, 2.0), waiting(1, 0.9, 0.0), waiting(2, 0.2, 1.0)]
    )
    assert isinstance(ended, Pruning)
    assert ended.trial.number == 0
    assert "which violates constraints" in ended.reason
    assert isinstance(first, Promotion)
    assert isinstance(second, Promotion)
    assert first.trial.violations == ()
    assert isinstance(child, Offspring)
    assert child.parent == 1
