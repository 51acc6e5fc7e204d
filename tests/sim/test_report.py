"""What is printed says what happened."""

from dataclasses import replace

from pliant.core.lifecycle import JobState
from pliant.core.plan import PolicyName
from pliant.sim.outcome import JobOutcome, TraceOutcome
from pliant.sim.report import chart, comparison, duration, jobs_table


def job(name: str, ended_at: float | None, *held: tuple[float, int]) -> JobOutcome:
    return JobOutcome(
        name=name,
        queue="default",
        state=JobState.PAUSED if ended_at is None else JobState.COMPLETED,
        submitted_at=0.0,
        started_at=held[0][0],
        ended_at=ended_at,
        held=held,
        waited_s=held[0][0],
        ran_s=7200.0 - held[0][0],
        slot_s=3600.0,
        num_resizes=2,
        num_redone_steps=1,
    )


OUTCOME = TraceOutcome(
    policy=PolicyName.FAIRSHARE,
    num_slots=4,
    ended_at=7200.0,
    jobs=(job("first", 7200.0, (0.0, 4), (3600.0, 1), (7200.0, 0)), job("second", None, (3600.0, 2))),
    decisions=(),
)


def test_the_chart_stacks_the_jobs_from_below() -> None:
    assert chart(OUTCOME, width=20).splitlines() == [
        "    4 ┤AAAAAAAAAA··········",
        "    3 ┤AAAAAAAAAABBBBBBBBBB",
        "    2 ┤AAAAAAAAAABBBBBBBBBB",
        "    1 ┤AAAAAAAAAAAAAAAAAAAA",
        "      └────────────────────",
        "       0.0 h  1.0 h  2.0 h",
    ]


def test_there_is_a_line_for_every_job() -> None:
    head, first, second = jobs_table(OUTCOME).splitlines()

    assert head.split()[:4] == ["job", "state", "arrives", "waits"]
    assert first.split() == ["A", "first", "completed", "0.0", "s", "0.0", "s", "2:00:00", "1.00", "2", "1"]
    assert second.split() == ["B", "second", "paused", "0.0", "s", "1:00:00", "1:00:00", "1.00", "2", "1"]


def test_the_policies_are_compared_by_what_their_jobs_took() -> None:
    line = comparison([OUTCOME]).splitlines()[1]

    assert line.split() == ["fairshare", "1", "of", "2", "30:00", "2:00:00", "2:00:00", "25.0%", "4"]


def test_times_are_written_for_people() -> None:
    assert [duration(s) for s in (0.55, 61, 3600, 30_041)] == ["0.6 s", "1:01", "1:00:00", "8:20:41"]


def test_queues_are_shown_where_there_are_several() -> None:
    assert "queue" not in jobs_table(OUTCOME)
    first, second = OUTCOME.jobs
    shown = jobs_table(replace(OUTCOME, jobs=(first, replace(second, queue="nightly")))).splitlines()
    assert [line.split()[:3] for line in shown] == [
        ["job", "queue", "state"],
        ["A", "first", "default"],
        ["B", "second", "nightly"],
    ]
