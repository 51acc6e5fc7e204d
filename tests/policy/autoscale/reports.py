"""Reports as tests need them."""

from collections.abc import Iterable
from dataclasses import replace

from pliant.core.job import JobId
from pliant.core.serving import VersionLoad
from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.demand import KernelDemand, decide
from pliant.policy.autoscale.load import ScaleState, take

NO_LOAD = VersionLoad(job_id=JobId("job-1"), seconds=0.25)
PROFILE = ServingProfile()


def steady(*, rate: float, kernels: int, busy_s: float, at_once: float) -> VersionLoad:
    """Return the report of a quarter of a second in which single requests came and went at this rate."""
    completed = round(rate / 4)
    return replace(
        NO_LOAD,
        in_flight=round(at_once),
        mean_load=at_once,
        num_ready=kernels,
        completed=completed,
        num_batches=completed,
        busy_s=completed * busy_s,
    )


def waiting(num: int, *, kernels: int = 0, in_flight: int = 0, oldest_wait_s: float = 0.0) -> VersionLoad:
    """Return the report of a quarter of a second in which nothing was answered."""
    return replace(
        NO_LOAD,
        queued=num,
        in_flight=in_flight,
        mean_load=num + in_flight,
        num_ready=kernels,
        oldest_wait_s=oldest_wait_s,
    )


def take_all(loads: Iterable[VersionLoad], state: ScaleState | None = None, since: float = 0.0) -> ScaleState:
    """Return the state after reports, the first one a quarter of a second after `since`."""
    state = ScaleState() if state is None else state
    for number, load in enumerate(loads, 1):
        state = take(state, load, since + number * 0.25)
    return state


def decide_each_second(
    state: ScaleState,
    load: VersionLoad | None,
    *,
    have: int,
    since: float,
    seconds: int,
    profile: ServingProfile = PROFILE,
) -> list[KernelDemand]:
    """Return the decisions of some seconds with the same report again and again, or none; kernels follow at once."""
    demands = []
    for second in range(seconds):
        begun = since + second
        if load is not None:
            state = take_all([load] * 4, state, begun)
        demands.append(decide(state, profile, have, begun + 1))
        state, have = demands[-1].state, demands[-1].num_kernels
    return demands
