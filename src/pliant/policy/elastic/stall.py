"""Whether a training goes on: how long it may be without a step, learned from the training itself. Pure.

Theory of operation. Whoever leads a training reports its steps, four times a second at most; it also says so when it
works on something else, such as an evaluation. Each is a *sign* of progress. A step that takes far longer than steps
of this training usually do is not slow, it is stuck: in a deadlock, a lost connection, an endless loop. An example,
with a report of new steps every 0.4 s:

     0.0 s   ready         nothing is known yet: the first step has a limit of its own (`first_step_s`)
    12.0 s   step 1        the first one tells nothing about the others: libraries were loaded
    12.4 s   step 2        one every 0.4 s: the training is quiet after 5 s, and stalled after 30 s
    20.0 s   epoch's end   the script computes something by itself for 9 s
    25.0 s                 quiet: the speed and the time left that were shown last are not true any more
    29.0 s   step 21       it went on by itself after 9 s, so it may do that again: 30 s is more than 3 × 9 s anyway
    29.8 s   step 23       the last one for a long time
    59.8 s                 stalled: 30 s is also more than 20 × 0.4 s

A training that goes on after it was stalled may be without a step for three times as long from then on, so that the
same is not said at the end of every epoch. Times are those at which control took a report in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

LEAST_S: Final = 30.0
USUAL: Final = 20.0
"""So many times what is usual between two reports is too long."""
BEFORE: Final = 3.0
"""So many times the longest time that it went on after is too long."""
QUIET_S: Final = 5.0
QUIET_USUAL: Final = 5.0
_SMOOTHING: Final = 0.3
_MOST: Final = 5.0
"""One report that took much longer than usual says little about what is usual: it counts as so many usual ones."""

Phase = Literal["goes", "quiet", "stalled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWatch:
    """What is known of a training's pace."""

    sign_at: float | None = None
    """The newest sign of progress; None while there is nothing to watch."""
    step: int | None = None
    """Committed at the newest report; None before the first."""
    stepped_at: float | None = None
    usual_s: float | None = None
    """Between two reports of new steps; None while too few are known."""
    longest_s: float = 0.0
    """The longest time without a sign after which it went on by itself."""
    phase: Phase = "goes"

    def idle_s(self, now: float) -> float:
        """Return how long there was no sign of progress, seconds."""
        return 0.0 if self.sign_at is None else max(0.0, now - self.sign_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StallLimits:
    """How long a training may be without a sign of progress, as its owner wants it."""

    stall_after_s: float | None = None
    """None: learned; 0: for ever."""
    first_step_s: float = 600.0
    """Until its first step, and after its last one."""

    def limit_s(self, watch: StepWatch) -> float | None:
        """Return after how many seconds without a sign of progress the training is stalled; None: never."""
        if self.stall_after_s == 0:
            return None
        if watch.usual_s is None:
            return max(self.first_step_s, self.stall_after_s or 0.0)
        if self.stall_after_s is not None:
            return self.stall_after_s
        return max(LEAST_S, USUAL * watch.usual_s, BEFORE * watch.longest_s)


def note_sign(watch: StepWatch, now: float) -> StepWatch:
    """Take note that the training goes on, though perhaps without a new step; begins to watch it."""
    longest_s = watch.longest_s if watch.usual_s is None else max(watch.longest_s, watch.idle_s(now))
    return replace(watch, sign_at=now, longest_s=longest_s, phase="goes")


def note_step(watch: StepWatch, step: int, now: float) -> StepWatch:
    """Take note that so many steps are committed."""
    if watch.step is not None and step <= watch.step:
        return note_sign(watch, now)
    usual_s = watch.usual_s
    if watch.stepped_at is not None and (gap_s := now - watch.stepped_at) > 0.0:
        usual_s = gap_s if usual_s is None else usual_s + _SMOOTHING * (min(gap_s, _MOST * usual_s) - usual_s)
    return replace(note_sign(watch, now), step=step, stepped_at=now, usual_s=usual_s)


def postpone(watch: StepWatch, seconds: float) -> StepWatch:
    """Return the watch moved by the time in which nobody could hear of a step."""
    moved = {name: at + seconds for name in ("sign_at", "stepped_at") if (at := getattr(watch, name)) is not None}
    return replace(watch, **moved)


def next_look(watch: StepWatch, limits: StallLimits) -> float | None:
    """Return when `look` finds another phase if there is no sign until then; None if it never does."""
    instants = [at for phase, at in _phases(watch, limits) if phase != watch.phase]
    return min(instants, default=None) if watch.phase != "stalled" else None


def look(watch: StepWatch, limits: StallLimits, now: float) -> StepWatch:
    """Return the watch with the phase that the training is in now."""
    reached = [phase for phase, at in _phases(watch, limits) if at <= now]
    return replace(watch, phase=reached[-1]) if reached else watch


def _phases(watch: StepWatch, limits: StallLimits) -> Iterator[tuple[Phase, float]]:
    """Yield what the training becomes if there is no sign, and when; what is worse comes later."""
    if watch.sign_at is None:
        return
    if watch.usual_s is not None:
        yield "quiet", watch.sign_at + max(QUIET_S, QUIET_USUAL * watch.usual_s)
    if (limit_s := limits.limit_s(watch)) is not None:
        yield "stalled", watch.sign_at + limit_s
