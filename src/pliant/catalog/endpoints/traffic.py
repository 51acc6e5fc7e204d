"""The traffic of an endpoint's versions: what a split is, and how one goes over to the next (`move`). Pure.

A split gives versions whole percents, 100 in all. A version that is to take more gets it in proportion to its kernels
that are ready, and those that are to have less keep the rest. Example: version 2 is to take all from version 1, whose
load needs six kernels. Beside the six, two of version 2 get ready:

    ready      1: 6   2: 0      100 / 0      version 2 loads
    ready      1: 6   2: 2       67 / 33     version 1 needs four kernels for what is left, and gives two back
    ready      1: 4   2: 4       34 / 66
    ready      1: 2   2: 6        0 / 100    version 1 is retired

If there are fewer slots than that, the traffic follows what is there: with two kernels of each it is halved.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from pliant.core.endpoint import Endpoint, EndpointVersion, Traffic, TrafficExchange
from pliant.core.errors import InvalidInput, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyKernels:
    """What of a version could take traffic."""

    num_ready: int = 0
    has_served: bool = False
    """Its model is known to load."""


_NONE: Final = ReadyKernels()


def apportion(total: int, weights: Mapping[int, float]) -> dict[int, int]:
    """Return whole parts of a total in proportion to weights, by largest remainders; those of no weight get 0."""
    whole = sum(weights.values())
    if whole <= 0:
        return dict.fromkeys(weights, 0)
    exact = {number: total * weight / whole for number, weight in weights.items()}
    parts = {number: int(part) for number, part in exact.items()}
    missing = total - sum(parts.values())
    for number in sorted(parts, key=lambda one: (parts[one] - exact[one], one))[:missing]:
        parts[number] += 1
    return parts


def aim(endpoint: Endpoint, goal: Traffic) -> Endpoint:
    """Return an endpoint whose traffic is on its way to this split, if it is not there already."""
    before = endpoint.exchange
    if goal == endpoint.traffic_now:
        return replace(endpoint, exchange=None)
    if before is None:
        return replace(endpoint, exchange=TrafficExchange(goal=goal))
    served = before.goal.keys() <= endpoint.traffic_now.keys()
    return replace(endpoint, exchange=replace(before, goal=goal, fallback=before.goal if served else before.fallback))


def take_back(endpoint: Endpoint, number: int) -> Endpoint:
    """Return an endpoint one of whose versions has all traffic at once."""
    return replace(endpoint, traffic={number: 100}, exchange=None, current=number)


def goal_of(endpoint: Endpoint) -> Traffic:
    """Return the split that an endpoint has, or is on its way to."""
    return endpoint.traffic_now if endpoint.exchange is None else endpoint.exchange.goal


def canary(endpoint: Endpoint, number: int, percent: int) -> Traffic:
    """Return the split in which a new version takes so much, and the one that serves or is to be the first the rest."""
    goal = goal_of(endpoint)
    stable = endpoint.current or max(goal, key=lambda one: (goal[one], one), default=None)
    return {number: 100} if stable is None or percent == 100 else {stable: 100 - percent, number: percent}


def problems_of_split(traffic: Traffic, versions: Iterable[EndpointVersion]) -> tuple[Problem, ...]:
    """Return what is wrong with a split that somebody asks for; 0 percent may be said."""
    known = [one.number for one in versions]
    problems = [
        f"there is no version {number}; there are {', '.join(map(str, known)) or 'none'}"
        for number in traffic
        if number not in known
    ]
    if (whole := sum(traffic.values())) != 100:
        said = " + ".join(map(str, traffic.values()))
        problems.append(f"{said or 'nothing'} is {whole} percent; say for versions what makes 100 together")
    return tuple(Problem(field="traffic", message=message) for message in problems)


def problems_of_kernels(endpoint: Endpoint, num_versions: int = 1) -> tuple[Problem, ...]:
    """Return what is wrong if an endpoint may have fewer kernels than versions with traffic, or than so many."""
    num = max(len(goal_of(endpoint)), num_versions)
    if num <= endpoint.kernel_max:
        return ()
    message = f"{endpoint.kernel_max} is less than the {num} versions that have traffic; every one needs a kernel"
    return (Problem(field="kernel_max", message=message),)


def require_split(traffic: Traffic, versions: Iterable[EndpointVersion]) -> Traffic:
    """Return a split without the versions that get nothing.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    if problems := problems_of_split(traffic, versions):
        raise InvalidInput(*problems)
    return {number: percent for number, percent in traffic.items() if percent}


def without(endpoint: Endpoint, failed: set[int]) -> Endpoint:
    """Return an endpoint some of whose versions have failed: others take their traffic; a goal with them is void."""
    exchange, now = endpoint.exchange, endpoint.traffic_now
    traffic = now
    if now.keys() & failed:
        left = apportion(100, {number: percent for number, percent in now.items() if number not in failed})
        traffic = {number: percent for number, percent in left.items() if percent}
    if exchange is not None and exchange.goal.keys() & failed:
        back = exchange.fallback
        void = not back or bool(back.keys() & failed) or back == traffic
        exchange = None if void else TrafficExchange(goal=back, num_kernels=exchange.num_kernels)
    current = endpoint.current
    if current not in traffic:
        current = max(traffic, key=lambda number: (traffic[number], number), default=None)
    return replace(endpoint, traffic=traffic, exchange=exchange, current=current)


def move(endpoint: Endpoint, kernels: Mapping[int, ReadyKernels], needed: int) -> Endpoint:
    """Return an endpoint whose traffic is where its ready kernels let it be on the way to the goal.

    Args:
        endpoint: with an exchange under way or not.
        kernels: of its versions, by number.
        needed: kernels that the load of the whole endpoint needs now.
    """
    exchange, now = endpoint.exchange, endpoint.traffic_now
    if exchange is None:
        return endpoint
    goal, gaining = exchange.goal, gains_of(endpoint)
    ready = {one: kernels.get(one, _NONE) for one in {*goal, *now}}
    if gaining and not any(ready[one].has_served for one in gaining):
        return endpoint
    num = max(exchange.num_kernels, needed)
    progress = _progress(endpoint, ready, num)
    if all(progress[one] >= 1 and ready[one].has_served for one in gaining):
        current = max(goal, key=lambda one: (goal[one], one == endpoint.current, one))
        return replace(endpoint, traffic=goal, exchange=None, current=current)
    shares = {one: math.floor(percent * min(1, progress.get(one, 1))) for one, percent in goal.items()}
    excess = {one: percent - shares.get(one, 0) for one, percent in now.items() if one not in gaining}
    takers = {one: float(percent) for one, percent in excess.items() if percent > 0}
    takers = takers or {one: float(percent) for one, percent in goal.items() if ready[one].has_served}
    rest = apportion(100 - sum(shares.values()), takers)
    traffic = {one: shares.get(one, 0) + rest.get(one, 0) for one in {**now, **goal}}
    return replace(
        endpoint,
        traffic={one: percent for one, percent in sorted(traffic.items()) if percent},
        exchange=replace(exchange, num_kernels=num),
    )


def gains_of(endpoint: Endpoint) -> dict[int, int]:
    """Return the goal of the versions that are to have more traffic than they have."""
    now = endpoint.traffic_now
    return {one: percent for one, percent in goal_of(endpoint).items() if percent > now.get(one, 0)}


def losses_of(endpoint: Endpoint) -> dict[int, int]:
    """Return how much of their traffic versions are to lose yet."""
    goal = goal_of(endpoint)
    losses = {one: percent - goal.get(one, 0) for one, percent in endpoint.traffic_now.items()}
    return {one: percent for one, percent in losses.items() if percent > 0}


def kernels_for(percent: int, num: int) -> int:
    """Return how many of so many kernels take a share of the traffic, rounded up."""
    return -(-percent * num // 100)


def parts_of_most(endpoint: Endpoint, traffic: Traffic) -> dict[int, int]:
    """Return how many of `kernel_max` each version of a split may have: by its traffic, and one at least."""
    most = apportion(endpoint.kernel_max, {number: float(percent) for number, percent in traffic.items()})
    for number in sorted(most):
        if most[number] == 0:
            most[max(most, key=lambda one: most[one])] -= 1
            most[number] = 1
    return most


def goal_kernels(endpoint: Endpoint, num: int) -> dict[int, int]:
    """Return how many of so many kernels each version of the goal takes: no more than it may have in the end."""
    goal = goal_of(endpoint)
    most = parts_of_most(endpoint, goal)
    return {one: min(kernels_for(percent, num), max(1, most[one])) for one, percent in goal.items()}


def kept(endpoint: Endpoint, ready: Mapping[int, ReadyKernels], num: int) -> dict[int, int]:
    """Return how many kernels the versions that lose traffic keep until the others have theirs, of `num` in all."""
    goal = goal_kernels(endpoint, num)
    missing = [max(0, goal[one] - ready.get(one, _NONE).num_ready) for one in gains_of(endpoint)]
    losses = losses_of(endpoint)
    rest = apportion(sum(missing), {one: float(percent) for one, percent in losses.items()})
    return {one: goal.get(one, 0) + rest[one] for one in losses}


def _progress(endpoint: Endpoint, ready: Mapping[int, ReadyKernels], num: int) -> dict[int, Fraction]:
    """Return which part of its goal every version that gains can take.

    That is its part of the kernels that the goal needs; if it needs none, all of it. Where there are fewer in all, with
    those that others still have for what moves, it is its part of what is there. One that may not load takes nothing.
    """
    goal = goal_kernels(endpoint, num)
    wanted = {one: goal[one] for one in gains_of(endpoint)}
    there = sum(min(ready[one].num_ready, want) for one, want in wanted.items())
    elsewhere = [
        max(0, min(ready[one].num_ready, keep) - goal.get(one, 0)) for one, keep in kept(endpoint, ready, num).items()
    ]
    whole = sum(wanted.values())
    available = min(whole, there + sum(elsewhere)) or whole

    def part(one: int, want: int) -> Fraction:
        if not ready[one].has_served:
            return Fraction(0)
        return Fraction(ready[one].num_ready * whole, want * available) if want else Fraction(1)

    return {one: min(part(one, want), Fraction(1)) for one, want in wanted.items()}
