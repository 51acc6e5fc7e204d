"""Rankings are those of the trials that were shown last, whatever was shown before: others spare no work with them."""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan

from hypothesis import given
from hypothesis import strategies as st
from tests.policy.tuning.stage import LOSS, search_of, settings_of, trial_of

from pliant.core.job import JobId
from pliant.core.search import Constraint, Halving, SearchSettings, Trial, TrialState
from pliant.policy.tuning.constraints import violation_at
from pliant.policy.tuning.promotion import decide_rungs
from pliant.policy.tuning.rankings import Ranking, Rankings
from pliant.policy.tuning.rungs import rungs_of, value_at

HALVING = Halving(min=1, max=8, factor=2, brackets=2, size=4, order="arrival")
MEMORY = Constraint(metric="memory", upper=8.0)
NUM_KNOWN = 2


@st.composite
def drawn_trials(draw: st.DrawFn) -> Trial:
    """Draw a trial that any number may have."""
    state = draw(st.sampled_from(TrialState))
    losses = draw(st.lists(st.sampled_from((0.1, 0.2, 0.3, nan)), max_size=8))
    return trial_of(
        0,
        state=state,
        rung=draw(st.integers(0, 3)),
        reports=tuple(enumerate(losses, start=1)),
        results=(0.2,) if state is TrialState.COMPLETED else None,
        violations=draw(st.sampled_from(((), (-1.0,), (2.0,)))),
        rung_violations=draw(st.sampled_from(((), (0.0,), (1.0, 0.0), (0.0, 3.0, 0.0)))),
    )


@st.composite
def drawn_shows(draw: st.DrawFn) -> Sequence[tuple[SearchSettings, Sequence[Trial]]]:
    """Draw all trials of a search several times: of each number one of a few, so that most stay the same."""
    forms = draw(st.lists(drawn_trials(), min_size=1, max_size=3))
    made = {(number, one): numbered(form, number) for number in range(9) for one, form in enumerate(forms)}
    bounds = settings_of(HALVING, constraints=(MEMORY,))
    upwards = settings_of(HALVING, objectives=(replace(LOSS, direction="maximize"),))
    numbers = st.lists(st.integers(0, len(forms) - 1), max_size=9)
    shows = draw(st.lists(st.tuples(st.sampled_from((bounds, bounds, upwards)), numbers), min_size=2, max_size=5))
    return [(settings, [made[place] for place in enumerate(which)]) for settings, which in shows]


def numbered(form: Trial, number: int) -> Trial:
    if number < NUM_KNOWN:
        return replace(form, number=number, state=TrialState.COMPLETED, results=(0.1,), job_id=JobId(""))
    return replace(form, number=number, bracket=(number - NUM_KNOWN) // 4, job_id=JobId(f"job-{number}"))


def worked_out(settings: SearchSettings, trials: Sequence[Trial], bracket: int, rung: int) -> Ranking:
    """Return who has come to a rung, in the plainest way."""
    resource, sign = rungs_of(settings, bracket)[rung], -1 if settings.objectives[0].direction == "maximize" else 1
    arrived = [
        trial
        for trial in trials
        if not trial.is_known and trial.bracket == bracket and trial.rung >= rung
        if trial.ended
        or ((trial.rung > rung or trial.violations or not settings.constraints) and value_at(trial, resource))
    ]
    values = [(violation_at(one, rung), value_at(one, resource), one.number) for one in arrived]
    return Ranking(
        num_arrived=len(arrived),
        num_passed=sum(trial.rung > rung for trial in arrived),
        ranks=sorted((by, sign * at, number) for by, at, number in values if at is not None and not isnan(at)),
    )


@given(drawn_shows())
def test_they_are_those_of_the_trials_that_were_shown_last(
    shows: Sequence[tuple[SearchSettings, Sequence[Trial]]],
) -> None:
    kept = Rankings()
    for settings, trials in shows:
        kept.follow(settings, trials)

        places = [(bracket, rung) for bracket in (0, 1) for rung in range(len(rungs_of(settings, bracket)))]
        assert [kept.at(*place) for place in places] == [worked_out(settings, trials, *place) for place in places]
        search = replace(search_of(settings), num_trials=len(trials), num_known=min(NUM_KNOWN, len(trials)))
        assert decide_rungs(search, trials, kept) == decide_rungs(search, trials)
