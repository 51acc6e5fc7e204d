"""What becomes of a trial by what its job says."""

from dataclasses import replace
from math import nan

import pytest
from tests.policy.tuning.stage import search_of, settings_of, trial_of

from pliant.core.lifecycle import JobState
from pliant.core.search import MAX_REPORTS, Halving, Objective, TrialState
from pliant.policy.tuning.intake import JobNews, SeriesPoint, take_in

PLAIN = search_of(settings_of())
HALVED = search_of(settings_of(Halving(min=2, max=9, factor=2)))


def points(*values: float) -> list[SeriesPoint]:
    return [SeriesPoint(epoch=epoch, step=epoch * 10, value=value) for epoch, value in enumerate(values, start=1)]


@pytest.mark.parametrize(("reading", "result"), [("last", 0.4), ("min", 0.2), ("max", 0.9)])
def test_the_value_that_counts_is_the_one_that_was_asked_for(reading: str, result: float) -> None:
    objective = Objective(metric="val_loss", direction="minimize", reading=reading)  # type: ignore[arg-type]
    search = search_of(settings_of(None, objectives=(objective,)))
    news = JobNews(state=JobState.COMPLETED, series={"val_loss": points(0.9, 0.2, nan, 0.4)})

    assert take_in(search, trial_of(0), news).results == (result,)


def test_a_metric_that_was_never_reported_fails_the_trial_and_names_those_that_were() -> None:
    news = JobNews(state=JobState.COMPLETED, series={"loss": points(0.9)}, reported=("loss", "accuracy"))

    trial = take_in(PLAIN, trial_of(0), news)

    assert trial.state is TrialState.FAILED
    assert trial.reason == (
        "it ended without a value of val_loss; it reported accuracy, loss. Report it with run.log(val_loss=...), or "
        "name another metric"
    )


def test_nan_at_the_end_is_no_result() -> None:
    news = JobNews(state=JobState.COMPLETED, series={"val_loss": points(0.9, nan)})

    trial = take_in(PLAIN, trial_of(0), news)

    assert (trial.state, trial.reason) == (TrialState.FAILED, "its val_loss is NaN at the end: there is no result")


@pytest.mark.parametrize(
    ("state", "becomes", "reason"),
    [
        (JobState.FAILED, TrialState.FAILED, "ValueError: no"),
        (JobState.STOPPED, TrialState.STOPPED, "ValueError: no"),
        ("deleted", TrialState.FAILED, "its job job-1 was deleted"),
        (JobState.RUNNING, TrialState.RUNNING, ""),
    ],
)
def test_a_trial_becomes_what_its_job_becomes(state: JobState, becomes: TrialState, reason: str) -> None:
    trial = take_in(PLAIN, trial_of(0), JobNews(state=state, reason="ValueError: no"))

    assert (trial.state, trial.reason) == (becomes, reason)


def test_of_each_epoch_the_first_value_counts() -> None:
    later = [SeriesPoint(epoch=1, step=10, value=0.5), SeriesPoint(epoch=1, step=15, value=0.1)]

    trial = take_in(PLAIN, trial_of(0), JobNews(state=JobState.RUNNING, series={"val_loss": later}))

    assert trial.reports == ((1, 0.5),)


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.FAILED, JobState.COMPLETED])
def test_who_has_come_to_a_rung_waits_there_whatever_its_job_did_since(state: JobState) -> None:
    news = JobNews(state=state, series={"val_loss": points(0.9, 0.5, 0.4)})

    trial = take_in(HALVED, trial_of(0), news)

    assert (trial.state, trial.reason) == (TrialState.PAUSED, "it waits at rung 1 of 3, epoch 2")
    assert take_in(HALVED, trial, news) == trial


def test_a_trial_that_failed_before_it_could_pause_fails_when_it_is_to_go_on() -> None:
    news = JobNews(state=JobState.FAILED, reason="ValueError: no", series={"val_loss": points(0.9, 0.5, 0.4)})
    waiting = take_in(HALVED, trial_of(0), news)

    assert take_in(HALVED, replace(waiting, rung=1), news).state is TrialState.FAILED


def test_reports_are_bounded_but_for_those_at_rungs() -> None:
    halving = Halving(resource="step", min=MAX_REPORTS * 2, max=MAX_REPORTS * 9)
    news = [SeriesPoint(epoch=0, step=step, value=0.5) for step in range(MAX_REPORTS * 3)]

    trial = take_in(
        search_of(settings_of(halving)), trial_of(0), JobNews(state=JobState.RUNNING, series={"val_loss": news})
    )

    assert len(trial.reports) == MAX_REPORTS + 1
    assert trial.reports[-1][0] == MAX_REPORTS * 2
