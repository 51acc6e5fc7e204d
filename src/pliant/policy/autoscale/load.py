"""What is remembered of a version between evaluations (`ScaleState`), and how a report changes it (`take`).

A report counts for the time that no report before it has covered. So one that comes twice changes nothing, and one
that comes after a long silence weighs no more than a window. Numbers that make no sense count as 0.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.serving import VersionLoad
from pliant.policy.autoscale.needs import Need
from pliant.policy.autoscale.speed import KernelSpeed
from pliant.policy.autoscale.window import WINDOW_S, LoadSample, append

GONE_S: Final = 5.0
"""Who has reported nothing for so long reports nothing."""
_LARGEST: Final = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentLoad:
    """How things stood at the newest report."""

    at: float
    in_flight: float = 0.0
    queued: float = 0.0
    oldest_wait_s: float = 0.0
    num_ready: int = 0

    @property
    def num_requests(self) -> float:
        """Return how many requests are there, in kernels and before them."""
        return self.in_flight + self.queued


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleState:
    """All that is remembered of one version between evaluations; its size has a bound."""

    # What reports say: `take` alone changes it.
    present: PresentLoad | None = None
    samples: tuple[LoadSample, ...] = ()
    speed: KernelSpeed = field(default_factory=KernelSpeed)
    queued_since: float | None = None
    """Requests have waited for a kernel in all reports since then."""
    more_ready_at: float | None = None
    """When kernels became ready last."""
    loaded_at: float | None = None
    """When there was something to do last."""

    # What was decided: `decide` alone changes it.
    began_at: float | None = None
    """The first decision."""
    decided_at: float | None = None
    wanted: int | None = None
    """The newest decision."""
    needs: tuple[Need, ...] = ()
    needed: int = 0
    """The newest need under load; 0 when it was recorded that the load is over."""
    starting_since: float | None = None
    """Kernels have been on their way since then."""
    start_s: float = 0.0
    """What it took them the last time until all were ready."""
    had: int = 0
    """Kernels at the newest decision."""
    came_at: float | None = None
    """When there were more kernels than at the decision before, the last time."""
    released_at: float | None = None
    """When kernels were given back last, unless that has turned out right or wrong since."""
    num_regrets: int = 0
    """So often kernels that were given back were soon missed (`hold`)."""


def take(state: ScaleState, load: VersionLoad, now: float) -> ScaleState:
    """Return the state with one report."""
    before = state.present
    at = _time_of(now, before)
    present = PresentLoad(
        at=at,
        in_flight=_sane(load.in_flight),
        queued=_sane(load.queued),
        oldest_wait_s=_sane(load.oldest_wait_s),
        num_ready=int(_sane(load.num_ready)),
    )
    share = _share_not_covered(_sane(load.seconds), abs(at - before.at) if before else WINDOW_S)
    sample = _sample(load, present, before, share)
    idle = sample.is_idle and present.num_requests == 0
    return replace(
        state,
        present=present,
        samples=append(state.samples, sample),
        speed=state.speed.measure(
            requests=sample.completed, batches=_sane(load.num_batches) * share, busy_s=sample.busy_s
        ),
        queued_since=_queued_since(state, present),
        more_ready_at=at if before and present.num_ready > before.num_ready else state.more_ready_at,
        loaded_at=state.loaded_at if idle else at,
    )


def _time_of(now: float, before: PresentLoad | None) -> float:
    """Return when a report came: never before the one before it, unless the clock was put back."""
    if before is None or now < before.at - WINDOW_S:
        return now
    return max(now, before.at)


def _share_not_covered(seconds: float, gap_s: float) -> float:
    """Return how much of a report counts: what lies after the report before, and within a window."""
    return min(gap_s, WINDOW_S, seconds) / seconds if seconds > 0 else 0.0


def _sample(load: VersionLoad, present: PresentLoad, before: PresentLoad | None, share: float) -> LoadSample:
    seconds = _sane(load.seconds) * share
    completed = _sane(load.completed) * share
    # Requests that a full queue refuses are load, too; those that are refused for other reasons are not.
    refused = _sane(load.refused) * share if present.queued > 0 else 0.0
    return LoadSample(
        until=present.at,
        seconds=seconds,
        load_s=_sane(load.mean_load) * seconds,
        arrived=max(0.0, completed + refused + present.num_requests - _requests_before(present, before)),
        completed=completed,
        busy_s=_sane(load.busy_s) * share,
        ready_s=present.num_ready * seconds,
    )


def _requests_before(present: PresentLoad, before: PresentLoad | None) -> float:
    """Return how many requests were there at the report before; without one, those that wait have just come."""
    if before is not None:
        return before.num_requests
    return present.num_requests if present.num_ready else 0.0


def _queued_since(state: ScaleState, present: PresentLoad) -> float | None:
    if present.queued <= 0:
        return None
    silent = state.present is None or present.at - state.present.at > GONE_S
    return present.at if silent or state.queued_since is None else state.queued_since


def _sane(value: float) -> float:
    """Return a number that was reported; 0 for one that cannot be, such as NaN."""
    return float(value) if 0 <= value < _LARGEST else 0.0
