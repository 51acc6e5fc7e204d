"""How many kernels each version of an endpoint may have, and has to have while traffic goes over to it. Pure.

The bounds of an endpoint, `kernel_min..kernel_max`, hold for all its versions together; each has the part of them that
it has of the traffic. While traffic moves, a version that is to take more wants the kernels that its goal needs before
it has any load, in steps: all versions together have at most `surge_of` kernels more than the load needs. Those that
lose traffic keep what the others do not have yet.

Where there are no free slots, the next kernels get theirs from the versions that lose: a kernel of theirs is the
surplus that the scheduler takes. If it gives the slots to somebody else, or would rather not take any, a version that
has waited for `PATIENCE_S` is made room for, a step at a time. So an exchange always ends, with as many kernels as the
scheduler lets the endpoint have.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pliant.catalog.endpoints.traffic import (
    ReadyKernels,
    apportion,
    gains_of,
    goal_kernels,
    goal_of,
    kept,
    kernels_for,
    losses_of,
    parts_of_most,
)
from pliant.core.endpoint import Endpoint, Traffic, VersionStatus
from pliant.core.serving_profile import KernelBounds

PATIENCE_S: Final = 3.0
"""A version that takes over waits so long for slots before others make room for it."""
_SURGE: Final = 4
"""Of so many kernels one more is allowed while versions are exchanged, as is usual elsewhere: 25 percent."""

Statuses = Mapping[int, VersionStatus]
"""How the versions stand that have a job, by number."""


class Standstill:
    """For how long no kernel of an endpoint has come or gone."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, object]] = {}

    def observe(self, name: str, statuses: Statuses, now: float) -> float:
        """Return the seconds."""
        there = {number: (one.num_ready, one.num_staying, len(one.kernels)) for number, one in statuses.items()}
        since, before = self._since.get(name, (now, there))
        if there != before:
            since = now
        self._since[name] = min(since, now), there
        return now - min(since, now)

    def forget(self, names: Collection[str]) -> None:
        """Forget all endpoints but these."""
        self._since = {name: one for name, one in self._since.items() if name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """What the bounds of versions follow from while traffic moves."""

    endpoint: Endpoint
    statuses: Statuses
    num: int
    """Kernels that the load needs."""
    yields: Mapping[int, int]


def surge_of(num: int, num_gaining: int = 1) -> int:
    """Return how many kernels an endpoint that needs so many may have besides, while its versions are exchanged."""
    return max(num_gaining, -(-num // _SURGE))


def num_needed(endpoint: Endpoint, statuses: Statuses) -> int:
    """Return how many kernels the load of the whole endpoint needs."""
    by_load = sum(statuses[number].needed for number in endpoint.traffic_now if number in statuses)
    return max(endpoint.kernel_min, min(by_load, endpoint.kernel_max))


def ready_of(statuses: Statuses, yields: Mapping[int, int]) -> dict[int, ReadyKernels]:
    """Return what could take traffic, without the kernels that are about to go."""
    return {
        number: ReadyKernels(num_ready=min(one.num_ready, yields.get(number, one.num_ready)), has_served=one.has_served)
        for number, one in statuses.items()
    }


def make_room(endpoint: Endpoint, statuses: Statuses, still_s: float) -> dict[int, int]:
    """Return how many kernels the versions that lose traffic may keep, for one that waits for slots; empty: all.

    A version whose kernels end by themselves gets no room: it is not slots that it lacks.

    Args:
        still_s: for how long no kernel of the endpoint has come or gone.
    """
    gaining = {number: statuses[number] for number in gains_of(endpoint) if number in statuses}
    losing = {number: statuses[number] for number in losses_of(endpoint) if number in statuses}
    if not losing or not any(one.num_ready for one in gaining.values()):
        return {}
    there = {number: one.num_staying for number, one in losing.items()}
    steady = {number: one for number, one in gaining.items() if not one.num_failures}
    num = num_needed(endpoint, statuses)
    goal = goal_kernels(endpoint, max(num, endpoint.exchange.num_kernels if endpoint.exchange else 0))
    loads = any(one.num_ready < one.num_staying for one in gaining.values())  # then it is not slots that is missing yet
    aims = {number: one.wanted if loads else max(one.wanted, goal[number]) for number, one in steady.items()}
    missing = sum(max(0, aims[number] - one.num_staying) for number, one in steady.items())
    leave = any(len(one.kernels) > one.num_staying for one in losing.values())
    if leave or still_s < PATIENCE_S or not missing:
        is_waiting = any(one.num_staying < one.wanted for one in steady.values())
        return there if is_waiting else {}
    spare = {number: max(0, held - goal.get(number, 0)) for number, held in there.items()}
    step = min(missing, surge_of(num), sum(spare.values()))
    gone = apportion(step, {number: float(one) for number, one in spare.items()})
    return {number: held - gone[number] for number, held in there.items()}


def share_kernels(endpoint: Endpoint, statuses: Statuses, yields: Mapping[int, int]) -> dict[int, KernelBounds]:
    """Return how many kernels each version may have, by its number.

    Args:
        endpoint: with its traffic where it is now.
        statuses: of its versions.
        yields: what `make_room` says.
    """
    exchange, now = endpoint.exchange, endpoint.traffic_now
    if exchange is None or not now:
        return _after_exchange(endpoint, statuses)
    num = max(exchange.num_kernels, num_needed(endpoint, statuses))
    found = _Exchange(endpoint=endpoint, statuses=statuses, num=num, yields=yields)
    bounds = _parts(endpoint, now)
    gaining = gains_of(endpoint)
    room = num + surge_of(num, len(gaining)) - sum(len(statuses[one].kernels) for one in gaining if one in statuses)
    losing = {number: statuses[number].num_staying if number in statuses else 0 for number in losses_of(endpoint)}
    room = max(0, room - sum(losing.values()))
    for number, staying in losing.items():
        bounds[number] = _within(_of_losing(found, number, bounds[number]), staying + room)
        room -= max(0, bounds[number].at_most - staying)
    bounds = {number: one for number, one in bounds.items() if number not in gaining}
    return {**bounds, **_of_gaining(found, gaining, bounds)}


def _after_exchange(endpoint: Endpoint, statuses: Statuses) -> dict[int, KernelBounds]:
    """Return the bounds by the goal: where it was only just reached, a version grows as fast as others shrink."""
    bounds = _parts(endpoint, goal_of(endpoint))
    held = {number: len(statuses[number].kernels) if number in statuses else 0 for number in bounds}
    room = endpoint.kernel_max + surge_of(endpoint.kernel_max) - sum(held.values())
    return {number: _within(one, held[number] + max(0, room)) for number, one in bounds.items()}


def _parts(endpoint: Endpoint, traffic: Traffic) -> dict[int, KernelBounds]:
    """Return the bounds of versions by their traffic; each that has some may have a kernel."""
    most = parts_of_most(endpoint, traffic)
    least = apportion(endpoint.kernel_min, {number: float(percent) for number, percent in traffic.items()})
    split = len(traffic) > 1
    return {
        number: KernelBounds(
            promised=min(least[number], most[number]),
            at_most=max(1, most[number]),
            why=f"it has {percent} % of the traffic, and as much of kernel_min and kernel_max" if split else "",
        )
        for number, percent in traffic.items()
    }


def _of_losing(found: _Exchange, number: int, part: KernelBounds) -> KernelBounds:
    """Return the bounds of a version that loses traffic: as ever until another is ready, then what it still needs."""
    gaining = [found.statuses.get(one) for one in gains_of(found.endpoint)]
    at_most = found.yields.get(number, part.at_most)
    if any(one is not None and one.num_ready for one in gaining):
        at_most = min(at_most, kept(found.endpoint, ready_of(found.statuses, found.yields), found.num)[number])
    # One that is not promised can be taken for the first kernel of each version that has none.
    first = sum(one is None or not one.num_staying for one in gaining)
    promised = max(0, min(part.promised - first, at_most))
    others = _named(gains_of(found.endpoint))
    return KernelBounds(promised=promised, at_most=at_most, why=f"its traffic goes over to {others}")


def _within(bounds: KernelBounds, most: int) -> KernelBounds:
    """Return bounds within what the exchange has room for; whoever may have a kernel still may have one."""
    at_most = min(bounds.at_most, max(1, most))
    return replace(bounds, at_most=at_most, promised=min(bounds.promised, at_most))


def _of_gaining(found: _Exchange, gaining: Traffic, others: Mapping[int, KernelBounds]) -> dict[int, KernelBounds]:
    """Return the bounds of the versions that take over, of whose kernels there are some more in every step."""
    statuses, num = found.statuses, found.num
    parts = _parts(found.endpoint, found.endpoint.traffic_now)
    held = {number: len(one.kernels) for number, one in statuses.items()}
    budget = num + surge_of(num, len(gaining)) - sum(held.get(number, 0) for number in gaining)
    goal = goal_kernels(found.endpoint, num)
    for number, one in others.items():
        wanted = statuses[number].wanted if number in statuses else 0
        wanted = max(wanted, kernels_for(found.endpoint.traffic_now.get(number, 0), num))  # its traffic may be new
        budget -= max(held.get(number, 0), min(one.at_most, wanted))
    before, bounds = _named(losses_of(found.endpoint)), {}
    for number in sorted(gaining):
        status = statuses.get(number)
        if status is None or not status.has_served:
            bounds[number] = KernelBounds(promised=0, at_least=1, at_most=1)
            budget -= 0 if held.get(number) else 1
            continue
        want, staying = goal[number], status.num_staying
        at_least = min(want, staying + max(0, budget))
        budget -= max(0, at_least - staying)
        bounds[number] = KernelBounds(
            promised=min(parts[number].promised, status.num_ready) if number in parts else 0,
            at_least=at_least,
            at_most=max(1, at_least, staying),
            why=f"it takes over from {before}, for which it needs {want} kernels",
        )
    if bounds and budget > 0:  # for a load that grows meanwhile
        number = max(bounds, key=lambda one: (bounds[one].at_least, one))
        if statuses[number].has_served if number in statuses else False:
            bounds[number] = replace(bounds[number], at_most=bounds[number].at_most + budget)
    return bounds


def _named(versions: Mapping[int, int]) -> str:
    numbers = [str(number) for number in sorted(versions)]
    return f"version{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"
