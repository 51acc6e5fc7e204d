"""Reads the workers' logs of steps and tells how long training stood still around an event.

Lost time = the gap between the last step completed before an event took hold and the first new step after it, minus
the usual step. A step is new if its number is higher than all before, so steps computed again count as lost. Of several
gaps in the window of an event only the longest counts, which favours systems that stop more than once.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

NUM_USUAL = 10
"""The usual step is the median of that many before the event."""
NUM_AFTER = 5
"""An event is over when that many new steps were done by the new membership."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step as one worker completed it."""

    at: float
    """Seconds of the machine's monotonic clock."""
    number: int
    size: int
    """Workers of the membership that it was done by."""
    rank: int
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What an event cost, seconds."""

    lost_s: float
    usual_s: float
    until_s: float
    """From the event to the first new step of the new membership."""


@dataclass(slots=True)
class Logs:
    """The growing logs of one training."""

    folder: Path
    steps: list[Step] = field(default_factory=list)
    _offsets: dict[Path, int] = field(default_factory=dict)

    def read(self) -> list[Step]:
        """Return all steps so far in order of time."""
        for path in sorted(self.folder.glob("*.steps")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole)
            self.steps += [_step(line, int(path.stem.rpartition("-")[2])) for line in whole.splitlines()]
        self.steps.sort(key=lambda step: step.at)
        return self.steps

    def members(self, num_last: int = 1) -> dict[int, int]:
        """Return the pid of every rank that did one of the newest steps."""
        steps = self.read()
        newest = max((step.number for step in steps), default=0)
        return {step.rank: step.pid for step in steps if step.number > newest - num_last}


def _step(line: bytes, pid: int) -> Step:
    at, number, size, rank = line.split()
    return Step(at=float(at), number=int(number), size=int(size), rank=int(rank), pid=pid)


def new_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the first completion of every step that was higher than all before; `steps` are in order of time."""
    found: list[Step] = []
    for step in steps:
        if not found or step.number > found[-1].number:
            found.append(step)
    return found


def settled(steps: Sequence[Step], *, since: float, size: int | None) -> bool:
    """Tell whether enough new steps were done after `since` by a membership of this size, or of any."""
    return len(_after(new_steps(steps), since, size)) >= NUM_AFTER


def lost_time(steps: Sequence[Step], *, since: float, size: int | None) -> Lost:
    """Return what the event at `since` cost; `settled` must hold."""
    fresh = new_steps(steps)
    before = [step.at for step in fresh if step.at <= since]
    first, *_, last = _after(fresh, since, size)[:NUM_AFTER]
    window = [*before[-1:], *(step.at for step in fresh if since < step.at <= last.at)]
    gaps = [after - earlier for earlier, after in pairwise(window)]
    recent = before[-NUM_USUAL - 1 :]
    usual = statistics.median(after - earlier for earlier, after in pairwise(recent))
    return Lost(lost_s=max(gaps) - usual, usual_s=usual, until_s=first.at - since)


def usual_by_size(steps: Sequence[Step]) -> dict[int, float]:
    """Return what a step usually takes with each number of workers, seconds: the median between two of as many."""
    found: dict[int, list[float]] = {}
    for earlier, after in pairwise(new_steps(steps)):
        if earlier.size == after.size:
            found.setdefault(after.size, []).append(after.at - earlier.at)
    return {size: statistics.median(gaps) for size, gaps in found.items()}


def _after(fresh: Sequence[Step], since: float, size: int | None) -> list[Step]:
    return [step for step in fresh if step.at > since and size in (None, step.size)]
