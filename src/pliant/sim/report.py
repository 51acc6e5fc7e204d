"""What people read of a simulation: the slots over time by job, a line per job, and the policies side by side. Pure."""

import string
from collections.abc import Sequence
from typing import Final

from pliant.core.lifecycle import JobState
from pliant.sim.outcome import JobOutcome, TraceOutcome

_SIGNS: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits
_FREE: Final = "·"
_MAX_ROWS: Final = 16
_HOUR_S: Final = 3600.0


def chart(outcome: TraceOutcome, width: int = 96) -> str:
    """Return the slots over time, stacked by job from below; a column shows the middle of its span of time."""
    num_rows = min(_MAX_ROWS, outcome.num_slots)
    began_at = min(job.submitted_at for job in outcome.jobs)
    span_s = (outcome.ended_at - began_at) or 1.0
    columns = [_column(outcome, began_at + (x + 0.5) * span_s / width, num_rows) for x in range(width)]
    lines = []
    for row in reversed(range(num_rows)):
        slot = row * outcome.num_slots // num_rows + 1
        lines.append(f"{slot:>5} ┤" + "".join(column[row] for column in columns))
    ends = [f"{at / _HOUR_S:.1f} h" for at in (began_at, began_at + span_s / 2, outcome.ended_at)]
    gap = (width - sum(len(end) for end in ends)) // 2
    lines.append("      └" + "─" * width)
    lines.append("       " + (" " * gap).join(ends))
    return "\n".join(lines)


def _column(outcome: TraceOutcome, at: float, num_rows: int) -> str:
    stack = "".join(sign(number) * job.slots_at(at) for number, job in enumerate(outcome.jobs))
    stack += _FREE * (outcome.num_slots - len(stack))
    return "".join(stack[row * outcome.num_slots // num_rows] for row in range(num_rows))


def sign(number: int) -> str:
    """Return the letter of a job in the chart; after 62 jobs they begin again."""
    return _SIGNS[number % len(_SIGNS)]


def jobs_table(outcome: TraceOutcome) -> str:
    """Return a line per job, with its queue if there are several."""
    several = len({job.queue for job in outcome.jobs}) > 1
    rows = [
        ("", "job", *("queue",) * several, "state", "arrives", "waits", "runs", "slot-hours", "resizes", "steps redone")
    ]
    rows += [
        (
            sign(number),
            job.name,
            *(job.queue,) * several,
            str(job.state),
            duration(job.submitted_at),
            duration(job.waited_s),
            duration(job.ran_s),
            f"{job.slot_s / _HOUR_S:.2f}",
            str(job.num_resizes),
            str(job.num_redone_steps),
        )
        for number, job in enumerate(outcome.jobs)
    ]
    return _table(rows, num_left=3 + several)


def comparison(outcomes: Sequence[TraceOutcome]) -> str:
    """Return a line per policy."""
    rows = [("policy", "completed", "mean wait", "mean completion", "all done after", "utilisation", "resizes")]
    rows += [
        (
            str(outcome.policy),
            f"{len(completed(outcome))} of {len(outcome.jobs)}",
            duration(mean_wait_s(outcome)),
            duration(mean_completion_s(outcome)),
            duration(outcome.ended_at - min(job.submitted_at for job in outcome.jobs)),
            f"{outcome.utilisation:.1%}",
            str(sum(job.num_resizes for job in outcome.jobs)),
        )
        for outcome in outcomes
    ]
    return _table(rows, num_left=1)


def completed(outcome: TraceOutcome) -> tuple[JobOutcome, ...]:
    """Return the jobs that completed."""
    return tuple(job for job in outcome.jobs if job.state is JobState.COMPLETED)


def mean_wait_s(outcome: TraceOutcome) -> float:
    """Return the mean time that a job spent without any slot."""
    return sum(job.waited_s for job in outcome.jobs) / len(outcome.jobs)


def mean_completion_s(outcome: TraceOutcome) -> float:
    """Return the mean time from submission to end of the jobs that completed; 0 if none did."""
    times = [job.waited_s + job.ran_s for job in completed(outcome)]
    return sum(times) / len(times) if times else 0.0


def duration(seconds: float) -> str:
    """Return a time for people: `0.6 s`, `34:11`, `8:20:30`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _table(rows: Sequence[tuple[str, ...]], num_left: int) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        sized = list(zip(row, widths, strict=True))
        cells = [cell.ljust(width) for cell, width in sized[:num_left]]
        cells += [cell.rjust(width) for cell, width in sized[num_left:]]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
