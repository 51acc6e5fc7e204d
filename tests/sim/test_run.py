"""Whole traces through the real control: allocations, conservation, determinism."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.api.jobs import JobPatch
from pliant.api.queues import QueueRequest
from pliant.core.errors import InvalidInput
from pliant.core.lifecycle import JobState
from pliant.core.plan import PolicyName
from pliant.sim.outcome import JobOutcome, TraceOutcome
from pliant.sim.run import STEP_SLOT_S, simulate
from pliant.sim.trace import Arrival, Change, ScriptedLoss, Trace, day, on_pool, parse, story


def sizes(job: JobOutcome, at: list[float]) -> list[int]:
    return [job.slots_at(instant) for instant in at]


def assert_conserved(outcome: TraceOutcome) -> None:
    changes = sorted({at for job in outcome.jobs for at, _ in job.held})
    for at in changes:
        assert sum(job.slots_at(at) for job in outcome.jobs) <= outcome.num_slots
    assert 0 < outcome.utilisation <= 1
    assert all(job.held[-1][1] == 0 for job in outcome.jobs if job.held and job.ended_at is not None)


def test_the_story_goes_8_then_4_and_4_then_3_and_5_then_8(tmp_path: Path) -> None:
    outcome = simulate(story(), PolicyName.FAIRSHARE, tmp_path)
    long, short = outcome.jobs

    before, shared, raised, after_loss, alone = 3500.0, 4100.0, 4500.0, 4900.0, 20_000.0
    assert sizes(long, [before, shared, raised, after_loss, alone]) == [8, 4, 3, 3, 8]
    assert sizes(short, [before, shared, raised, after_loss, alone]) == [0, 4, 5, 5, 0]
    assert (short.num_redone_steps, long.num_redone_steps) == (1, 0)
    assert any(4200 <= at < 4201 and "10000" in reason for at, reason in outcome.decisions)
    assert_conserved(outcome)


def test_a_short_job_starts_within_seconds_on_a_held_pool_and_ends_long_before_the_long_one(tmp_path: Path) -> None:
    long, short = simulate(story(), PolicyName.FAIRSHARE, tmp_path).jobs

    assert short.started_at is not None
    assert short.started_at - short.submitted_at < 5
    assert short.ended_at is not None
    assert short.ended_at - short.submitted_at < 45 * 60
    assert long.ended_at is not None
    assert long.ended_at - short.ended_at > 6 * 3600
    assert long.waited_s == 0


def test_a_job_alone_takes_its_work_divided_by_its_slots(tmp_path: Path) -> None:
    trace = Trace(jobs=(Arrival(name="A", at_s=0, slot_hours=4, max_tasks=2, slots_per_task=2),))

    (job,) = simulate(trace, PolicyName.FIFO, tmp_path).jobs

    assert job.ran_s == pytest.approx(3600, abs=20)
    assert job.num_resizes == 1


def test_a_job_that_loses_all_its_tasks_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    trace = Trace(jobs=(Arrival(name="A", at_s=0, slot_hours=1),), losses=(ScriptedLoss(at_s=1800, job="A"),))

    (job,) = simulate(trace, PolicyName.FAIRSHARE, tmp_path).jobs

    assert job.state is JobState.COMPLETED
    assert 3600 < job.ran_s < 3600 + 300 + 30


def test_a_job_whose_minimum_outgrows_the_pool_is_shown_as_it_stands(tmp_path: Path) -> None:
    trace = Trace(
        slots=2,
        jobs=(Arrival(name="A", at_s=0, slot_hours=1, max_tasks=8), Arrival(name="B", at_s=60, slot_hours=1)),
        changes=(Change(at_s=30, job="A", set=JobPatch(min_tasks=4)),),
    )

    outcome = simulate(trace, PolicyName.PRIORITY, tmp_path)

    assert [job.state for job in outcome.jobs][1] is JobState.COMPLETED
    assert_conserved(outcome)


def test_a_change_that_does_not_fit_the_job_names_itself(tmp_path: Path) -> None:
    jobs = (Arrival(name="A", at_s=0, slot_hours=1, max_tasks=2),)
    trace = Trace(jobs=jobs, changes=(Change(at_s=30, job="A", set=JobPatch(min_tasks=4)),))

    with pytest.raises(InvalidInput, match=r"change of A at 30: min_tasks: 4 is above max_tasks 2"):
        simulate(trace, PolicyName.FAIRSHARE, tmp_path)


@pytest.mark.parametrize("policy", PolicyName)
def test_a_fixed_job_has_all_its_slots_or_none_and_starts_over_after_a_loss(tmp_path: Path, policy: PolicyName) -> None:
    trace = Trace(
        jobs=(
            Arrival(name="A", at_s=0, slot_hours=16, max_tasks=8),
            Arrival(name="F", at_s=600, slot_hours=4, min_tasks=4, max_tasks=4, fixed=True),
            Arrival(name="urgent", at_s=900, slot_hours=1, min_tasks=6, max_tasks=6, priority=10_000),
        ),
        losses=(ScriptedLoss(at_s=2400, job="F"),),
    )

    outcome = simulate(trace, policy, tmp_path)
    _, fixed, urgent = outcome.jobs

    assert {job.state for job in outcome.jobs} == {JobState.COMPLETED}
    assert {num for _, num in fixed.held} <= {0, 1, 2, 3, 4}
    assert fixed.started_at is not None
    assert urgent.started_at is not None
    assert fixed.ended_at is not None
    assert fixed.started_at - fixed.submitted_at < 5
    assert fixed.ended_at - fixed.submitted_at == pytest.approx(1800 + 3600 + 8, abs=20), "half an hour was lost"
    assert urgent.started_at >= fixed.ended_at, "nobody takes its slots"
    assert_conserved(outcome)


@pytest.mark.parametrize("policy", PolicyName)
def test_queues_share_by_weight_and_one_without_preemption_is_never_shrunk(tmp_path: Path, policy: PolicyName) -> None:
    trace = parse(
        json.dumps(
            {
                "slots": 12,
                "groups": [{"name": "third", "hosts": {"names": ["node-1"]}, "slots_per_host": 4}],
                "queues": [
                    {"name": "kept", "resource_group": "third", "preemption": False},
                    {"name": "light"},
                    {"name": "heavy", "weight": 3},
                ],
                "jobs": [
                    {"name": "K", "at_s": 0, "slot_hours": 4, "max_tasks": 8, "queue": "kept"},
                    {"name": "L", "at_s": 60, "slot_hours": 16, "max_tasks": 12, "queue": "light"},
                    {"name": "H", "at_s": 600, "slot_hours": 6, "max_tasks": 12, "queue": "heavy", "priority": 10_000},
                ],
            }
        )
    )

    outcome = simulate(on_pool(trace, None, None), policy, tmp_path)
    kept, light, heavy = outcome.jobs

    assert [job.queue for job in outcome.jobs] == ["kept", "light", "heavy"]
    assert sizes(kept, [100.0, 1000.0, 3500.0]) == [4, 4, 4]
    assert kept.num_resizes == 1, "it grew to all slots of its group and was never shrunk"
    assert sizes(light, [500.0, 1000.0, 3500.0]) == [8, 2, 2]
    assert sizes(heavy, [500.0, 1000.0, 3500.0]) == [0, 6, 6]
    assert_conserved(outcome)


def test_a_job_that_its_queue_does_not_take_names_itself(tmp_path: Path) -> None:
    jobs = (Arrival(name="A", at_s=0, slot_hours=1, max_tasks=2, queue="small"),)
    trace = Trace(queues=(QueueRequest(name="small", max_tasks_per_job=1),), jobs=jobs)

    with pytest.raises(InvalidInput, match="job A: max_tasks: "):
        simulate(trace, PolicyName.FAIRSHARE, tmp_path)


@pytest.mark.parametrize("policy", PolicyName)
def test_a_mixed_day_ends_conserves_slots_and_is_the_same_every_time(tmp_path: Path, policy: PolicyName) -> None:
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()

    first, again = (simulate(day(11, num_jobs=16), policy, home) for home in homes)

    assert {job.state for job in first.jobs} == {JobState.COMPLETED}
    assert_conserved(first)
    assert first == again


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), policy=st.sampled_from(PolicyName))
def test_any_day_ends_with_all_work_done(
    tmp_path_factory: pytest.TempPathFactory, seed: int, policy: PolicyName
) -> None:
    trace = day(seed, num_jobs=12)

    outcome = simulate(trace, policy, tmp_path_factory.mktemp("home"))

    assert {job.state for job in outcome.jobs} == {JobState.COMPLETED}
    for job, arrival in zip(outcome.jobs, trace.jobs, strict=True):
        assert job.slot_s >= arrival.slot_hours * 3600 - STEP_SLOT_S
    assert_conserved(outcome)


def test_a_job_of_a_trace_starts_when_what_it_runs_after_has_completed(tmp_path: Path) -> None:
    trace = Trace(
        slots=8,
        jobs=(
            Arrival(name="prepare", at_s=0, slot_hours=1, max_tasks=1),
            Arrival(name="train", at_s=10, slot_hours=8, max_tasks=8, priority=10_000, after=("prepare",)),
            Arrival(name="report", at_s=10, slot_hours=1, max_tasks=1, after=("train",), after_any=("prepare",)),
            Arrival(name="other", at_s=20, slot_hours=4, max_tasks=8),
        ),
    )
    for policy in PolicyName:
        home = tmp_path / policy.value
        home.mkdir()
        prepare, train, report, other = simulate(on_pool(trace, None, None), policy, home).jobs

        assert {job.state for job in (prepare, train, report, other)} == {JobState.COMPLETED}
        assert train.started_at is not None
        assert report.started_at is not None
        assert prepare.ended_at is not None
        assert train.ended_at is not None
        assert train.started_at >= prepare.ended_at
        assert report.started_at >= train.ended_at
        assert other.slots_at(60.0) == 7, "what waits for others claims nothing"


def test_a_job_of_a_trace_runs_only_after_what_has_arrived() -> None:
    trace = Trace(
        jobs=(
            Arrival(name="a", at_s=5, slot_hours=1, after=("b",)),
            Arrival(name="b", at_s=6, slot_hours=1, after_any=("nobody",)),
        )
    )
    with pytest.raises(InvalidInput) as refused:
        on_pool(trace, None, None)
    assert [problem.field for problem in refused.value.problems] == ["jobs.0.after", "jobs.1.after_any"]
    assert refused.value.problems[0].message == "no job 'b' arrives before 'a'; name one that does"
