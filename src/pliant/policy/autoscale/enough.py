"""How many kernels answer so many requests per second in time: `kernels_for`, a formula of queueing theory.

Of n kernels that compute s seconds for a request and are busy for a share ρ of the time, a request waits for about
`s · ρ^(√(2(n+1)) - 1) / (n (1 - ρ))` (Sakasegawa 1977, for arrivals and times as irregular as chance makes them).
Example: with s = 1 and ρ = 70 %, one kernel lets a request wait for 2.3 s, ten let it wait for 0.09 s: many kernels may
be busier than few. A bound on ρ alone would give one of two kernels back, miss it at once, and start it again.
"""

import math

from pliant.core.serving_profile import MAX_KERNELS
from pliant.policy.autoscale.speed import HEADROOM, KernelPace


def kernels_for(rate: float, pace: KernelPace, objective_s: float) -> int:
    """Return the least number of kernels that answer so many requests per second within the objective.

    Where a kernel alone takes nearly as long as the objective, or longer, a wait of half its time is let pass.
    """
    patience_s = max(HEADROOM * objective_s - pace.answer_s, pace.answer_s / 2)
    num = math.ceil(min(rate / (HEADROOM * pace.per_second), MAX_KERNELS))
    num = max(num, 1)
    while num < MAX_KERNELS and wait_s(rate, pace, num) > patience_s:
        num += 1
    return num


def wait_s(rate: float, pace: KernelPace, num_kernels: int) -> float:
    """Return how long a request waits for a kernel on average; infinite if the kernels cannot keep up."""
    busy = rate / (pace.per_second * num_kernels)
    if busy >= 1:
        return math.inf
    exponent = math.sqrt(2 * (num_kernels + 1)) - 1
    return pace.batch_s * math.pow(busy, exponent) / (num_kernels * (1 - busy))
