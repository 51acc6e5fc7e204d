"""For how long kernels stay that the load does not need any more (`delay_under_load`, `hold_of`), learned from regrets.

A kernel that comes has cost something: it had to start, and a training may have given a slot up for it and will have it
back. So it is *held* for three times that, counted from when it came, whatever the load does. That alone would let a
load that comes and goes move a slot back and forth for ever. So it is a *regret* if kernels are missed within ten
minutes after some were given back: each regret doubles how long they are kept, both from when they came and, while
others are needed, from when they were needed last. A release after which nobody was missed for ten minutes takes one
regret back. Neither is ever doubled to more than ten minutes, so that slots that nobody needs come back in the end.

Example: kernels start in 2 s and `release_delay_s` is 0. A request comes every minute.

      0.0  a kernel starts           held until 6.6, which is 3 x (2 + 0.2)
      6.6  given back
     60.0  a kernel starts           the first regret: held until 73.2
    120.0  a kernel starts           the second: held until 146.4
    240.0  ...                       after the fourth it is held for 106 s, and the next request finds it

Law: two times at which kernels come, with a release between them, are at least a hold apart. If they come within ten
minutes after it, the next hold is twice as long, ten minutes at most. So in a long time T a load of any shape has
kernels come, after they were given back, no more often than 2 T / 600 s + 11 times: every hold is at least 0.6 s, which
is doubled ten times until it is 600 s, and once more for each release that stood for so long.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.load import ScaleState
from pliant.policy.autoscale.window import WINDOW_S

MAX_HOLD_S: Final = 600.0
"""Regrets prolong nothing to more than this; kernels that are missed later than this after a release are no regret."""
RESIZE_S: Final = 0.2
"""About what it costs a training to give a slot up at a step boundary, and to have it back."""
_HOLD_COSTS: Final = 3
"""A kernel is held for so many times what it has cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing that the load has needed in the last ten minutes is given back before it ends."""

    seconds: float
    until: float
    """In the past if nothing is held."""


def delay_under_load(state: ScaleState, profile: ServingProfile) -> float:
    """Return for how long a kernel is kept that is not needed while others are."""
    delay_s = max(profile.release_delay_s, WINDOW_S) * (1 << state.num_regrets)
    return max(profile.release_delay_s, min(delay_s, MAX_HOLD_S))


def hold_of(state: ScaleState) -> Hold:
    """Return for how long the kernels that came last are kept, whatever the load does."""
    cost_s = state.start_s + RESIZE_S
    hold_s = min(_HOLD_COSTS * cost_s * (1 << state.num_regrets), MAX_HOLD_S)
    return Hold(seconds=hold_s, until=-math.inf if state.came_at is None else state.came_at + hold_s)


def learn_regret(state: ScaleState, change: int, now: float) -> ScaleState:
    """Return the state with what a change of the number says of the last release: was it too early?"""
    if change < 0:
        return replace(state, released_at=now)
    if state.released_at is None:
        return state
    if now - state.released_at >= MAX_HOLD_S:
        return replace(state, released_at=None, num_regrets=max(0, state.num_regrets - 1))
    if change > 0:
        more = hold_of(state).seconds < MAX_HOLD_S
        return replace(state, released_at=None, num_regrets=state.num_regrets + more)
    return state
