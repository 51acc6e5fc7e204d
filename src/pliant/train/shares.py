"""How V virtual workers divide over tasks of different speed, and when another division is worth it: pure arithmetic.

A step takes as long as the task that is done last. So the virtual workers are apportioned by d'Hondt's method: each
next one goes to the task that would be done with it first. No other division of as many is done sooner. Example: of 8
virtual workers the first task computes one in 1 s and the second in 2 s. Even shares, 4 and 4, take 8 s; 6 and 2 take
6 s. Ideal are 5.3 s, and more virtual workers come closer to it.

Speeds are measured, so they are never twice the same. Shares stay as they are unless others save `WORTH` of a step.
Law: shares that were apportioned stay while all times are within 5 % of those that they were made for.

Knows no clock and no task; `pliant.train.balance` measures.
"""

import heapq
import math
import statistics
from collections.abc import Collection, Sequence
from typing import Final

from pliant.train.data.sharding import Worker
from pliant.train.sum.tree import global_sum

WORTH: Final = 0.1
"""Other shares are taken if they save this much of the time of a step."""


def even(virtual_workers: int, size: int) -> tuple[int, ...]:
    """Return how many virtual workers each task computes if nothing is known of its speed."""
    return tuple(len(Worker(size, rank).share(virtual_workers)) for rank in range(size))


def without(virtual_workers: int, size: int, resting: Collection[int], shares: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the shares of a step in which some tasks rest: theirs are 0.

    Args:
        virtual_workers: V; with fewer than tasks that work, the last of these have none.
        shares: what all would have, if it is not even; those who work keep the proportions.
    """
    working = [rank for rank in range(size) if rank not in resting]
    if shares:
        found = apportion(virtual_workers, [1 / shares[rank] for rank in working])
    else:
        found = even(virtual_workers, len(working))
    of_rank = dict(zip(working, found, strict=True))
    return tuple(of_rank.get(rank, 0) for rank in range(size))


def apportion(virtual_workers: int, seconds: Sequence[float]) -> tuple[int, ...]:
    """Return how many each task computes so that the last is done as soon as can be; at least one each.

    Args:
        virtual_workers: V, at least as many as tasks.
        seconds: of every task, for one virtual worker; above 0.
    """
    assert virtual_workers >= len(seconds), "each task needs one"
    shares = [1] * len(seconds)
    done_at = [(2 * of_one, rank) for rank, of_one in enumerate(seconds)]
    heapq.heapify(done_at)
    for _ in range(virtual_workers - len(seconds)):
        rank = done_at[0][1]
        shares[rank] += 1
        heapq.heapreplace(done_at, ((shares[rank] + 1) * seconds[rank], rank))
    return tuple(shares)


def rebalance(shares: tuple[int, ...], seconds: Sequence[float], rest_s: float = 0.0) -> tuple[int, ...]:
    """Return the shares that tasks have from now on: the present ones, or others if these save enough.

    Args:
        shares: the virtual workers of each task now, at least one.
        seconds: of every task, for one of them; what is no positive number is not known, and taken for the median.
        rest_s: of a step that no division makes shorter. Uneven shares send more partial sums; it grows with them.
    """
    known = [of_one for of_one in seconds if _is_time(of_one)]
    if not known:
        return shares
    usual = statistics.median(known)
    times = [of_one if _is_time(of_one) else usual for of_one in seconds]
    best = apportion(sum(shares), times)
    sent = max(1.0, _sent(best) / _sent(shares))
    now_s, then_s = _last_done(shares, times) + rest_s, _last_done(best, times) + rest_s * sent
    return best if now_s - then_s >= WORTH * now_s else shares


def _is_time(seconds: float) -> bool:
    return math.isfinite(seconds) and seconds > 0


def _last_done(shares: Sequence[int], times: Sequence[float]) -> float:
    return max(share * of_one for share, of_one in zip(shares, times, strict=True))


def _sent(shares: tuple[int, ...]) -> float:
    """Return the bytes that the task which sends most sends, by those of a stock all-reduce."""
    return (max(global_sum(sum(shares), len(shares), shares).num_partials) + 1) / 2
