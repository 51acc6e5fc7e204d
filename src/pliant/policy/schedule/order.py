"""Who comes first: a total order of workloads for every policy, independent of the order in which they are listed.

Knows nothing of slots or nodes. Invariant: two workloads of different ids never compare equal.
"""

import re
from functools import lru_cache
from typing import Final

from pliant.core.plan import PolicyName
from pliant.core.workload import Workload

NaturalKey = tuple[list[str | int], str]
AgeKey = tuple[float, NaturalKey]

_NUM_KEYS: Final = 1 << 16
_DIGITS: Final = re.compile(r"([0-9]+)")


@lru_cache(_NUM_KEYS)
def natural(text: str) -> NaturalKey:
    """Return a key that sorts `job-2` before `job-10`; every decision asks for those of all nodes and jobs again."""
    parts: list[str | int] = list(_DIGITS.split(text))
    parts[1::2] = map(int, parts[1::2])
    return parts, text


def age(workload: Workload) -> AgeKey:
    """Return a key that sorts the older workload first."""
    return workload.submitted_at, natural(workload.id)


def precedence(policy: PolicyName, workload: Workload, size: int) -> tuple[int, int]:
    """Return the key that comes before age: the group, then the priority turned round.

    A pinned workload comes before all others. Under `fairshare` who holds the minimum (`size` tasks stay) comes before
    who lost a part of it, and both come before those who wait: nobody is paused for somebody else.
    """
    if workload.pinned:
        return -1, -workload.priority
    match policy:
        case PolicyName.FAIRSHARE:
            group = 0 if size >= workload.min_tasks else 1 if size else 2
            return group, -workload.priority
        case PolicyName.PRIORITY:
            return 0, -workload.priority
        case PolicyName.FIFO:
            return 0, 0
