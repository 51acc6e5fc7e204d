"""How many kernels a version of an endpoint wants (`decide`), and why.

Theory of operation
===================
The gateway reports four times a second what there is to do. `load.take` adds it up; `decide` is asked once in a while
(`schedule_interval_s`) and after anything that changes the answer. What is remembered is handed in and out.

What kernels can do is measured (`speed`): the time of batches, by their size. How many requests a kernel may hold says
little: sixteen at once are nothing to a model that takes 1 ms, and eight seconds to one that takes half a second.

    up      at once, when the kernels do not answer within the latency objective (`growth`); to the number that the rate
            of requests needs (`enough`), to no more than twice the kernels there are and one. Kernels that start count
            as if they were there, so a cold start that takes long does not ask for more and more.
    stay    a kernel is kept for `release_delay_s` after the load has needed it last (`needs`), and for a time that is
            worth what it has cost (`hold`).
    down    at most half of the kernels at a time; none while requests take too long, also none that is not there yet.
    zero    if nobody asks, the last kernel goes, too; it is kept at least for the time that it takes to start.

Growing and releasing are different questions, so that they do not undo each other: kernels are added when requests are
late, and given back when the formula says that requests would be in time without them. If that was wrong, because the
load comes and goes, or is more irregular than chance makes it, a release is soon followed by growth: each such regret
doubles the time for which kernels are kept, until it suffices (`hold`).

Example: a kernel takes 0.1 s for a request, and batches save nothing; answers are wanted within 0.5 s.

      0.0  5 requests per second       1: there is load, and no kernel
      5.0  100 requests per second
      6.0  55 at once                  3: one kernel answers 5 within 0.5 s; 8 are wanted, 3 to begin with
      7.0  146 at once                 7: 15 are wanted, but no more than twice the number and one
      8.0  236 at once                15: each is to be busy for 70 % of the time, so 100 per second need 15
      9.0  260 at once                15: they start; what has gathered meanwhile is no reason for more
     60.0  5 requests per second      15: all were needed until now
    120.0                             12: the average of 6 s falls to 5 per second, for which one is enough
    126.0                              1
    300.0  no requests                 1
    360.0                              0: nobody has asked for 60 s

If nothing is reported (the gateway is gone), the number stays for the release delay and then falls; it never rises.

Invariants:
- the number is within `kernel_min` and `kernel_max` of the profile as it is now;
- without load, what is above `kernel_min` is kept for `release_delay_s`, or until its hold ends, ten minutes after it
  came at the latest; then it goes within a few decisions;
- a constant load comes to rest at one number;
- the same state, profile and time give the same answer.

Knows no slots, queues or other endpoints: what is wanted may not be had.
"""

from dataclasses import dataclass, replace
from typing import Final

from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.growth import Required, facts_of, required
from pliant.policy.autoscale.hold import MAX_HOLD_S, delay_under_load, hold_of, learn_regret
from pliant.policy.autoscale.load import GONE_S, PresentLoad, ScaleState
from pliant.policy.autoscale.needs import Need, most_needed, record

_MAX_START_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDemand:
    """How many kernels are wanted."""

    num_kernels: int
    reason: str
    """Why, in one sentence for people."""
    state: ScaleState
    again_at: float | None
    """When the answer may change though nothing is reported; None: it cannot."""


def decide(state: ScaleState, profile: ServingProfile, have: int, now: float) -> KernelDemand:
    """Return how many kernels are wanted.

    Args:
        state: what was reported and decided before.
        profile: as it is now.
        have: kernels that are ready or start; not those that leave.
        now: seconds, by the clock of the reports.
    """
    state = _begin(_put_back(state, now), have, now)
    present = state.present
    if present is None or now - present.at > GONE_S:
        demand = _in_silence(state, profile, have, now)
    elif present.num_requests == 0 and (state.loaded_at is None or state.loaded_at < present.at):
        demand = _idle(state, present, profile, have, now)
    else:
        demand = _under_load(state, present, profile, have, now)
    return _within_bounds(demand, profile, have, now)


# -- what comes first -------------------------------------------------------------------------------------------------


def _put_back(state: ScaleState, now: float) -> ScaleState:
    """Return the state without times that lie ahead, as they do if the clock was put back."""
    if state.decided_at is None or now >= state.decided_at:
        return state
    return replace(
        state,
        loaded_at=_not_after(state.loaded_at, now),
        began_at=_not_after(state.began_at, now),
        needs=tuple(Need(min(need.at, now), need.num) for need in state.needs),
        starting_since=_not_after(state.starting_since, now),
        came_at=_not_after(state.came_at, now),
        released_at=_not_after(state.released_at, now),
    )


def _not_after(at: float | None, now: float) -> float | None:
    return None if at is None else min(at, now)


def _begin(state: ScaleState, have: int, now: float) -> ScaleState:
    """Return the state with what is to be seen of kernels: who were there at first, and how long starting takes."""
    if state.began_at is None:  # the server may be new: what it finds was wanted by the one before
        state = replace(state, began_at=now, had=have, needs=(Need(now, have),) if have else ())
    state = replace(state, had=have, came_at=now if have > state.had else state.came_at)
    if state.present is None:
        return state
    if have > state.present.num_ready:
        return state if state.starting_since is not None else replace(state, starting_since=now)
    if state.starting_since is None:
        return state
    return replace(state, starting_since=None, start_s=min(now - state.starting_since, _MAX_START_S))


def _within_bounds(demand: KernelDemand, profile: ServingProfile, have: int, now: float) -> KernelDemand:
    """Return the demand within the bounds of the profile, which act at once."""
    num, reason = demand.num_kernels, demand.reason
    if num > profile.kernel_max:
        num, reason = profile.kernel_max, f"{reason}; kernel_max is {profile.kernel_max}"
    elif num < profile.kernel_min:
        num, reason = profile.kernel_min, f"{reason}; kernel_min is {profile.kernel_min}"
    again_at = demand.again_at
    if again_at is None and num != have:
        again_at = now + profile.schedule_interval_s
    state = replace(demand.state, wanted=num, decided_at=now)
    return KernelDemand(num_kernels=num, reason=reason, state=state, again_at=again_at)


# -- nothing is reported ----------------------------------------------------------------------------------------------


def _in_silence(state: ScaleState, profile: ServingProfile, have: int, now: float) -> KernelDemand:
    """Keep what was wanted for the release delay, or the hold, then let it go. Nobody knows of load that needs more."""
    since = state.present.at if state.present else state.began_at
    assert since is not None
    said = f"the gateway has reported nothing {f'for {now - since:.0f} s' if state.present else 'yet'}"
    wanted = have if state.wanted is None else state.wanted
    until = max(since + profile.release_delay_s, hold_of(state).until)
    if now < until:
        again_at = until if wanted > profile.kernel_min else None
        return KernelDemand(num_kernels=wanted, reason=f"{said}: nothing changes", state=state, again_at=again_at)
    num = _release(min(have, wanted), 0)
    state = learn_regret(state, num - have, now)
    again_at = now + profile.schedule_interval_s if num > profile.kernel_min else None
    reason = f"{said}; {_kernels_are(num)} left for now" if num else said
    return KernelDemand(num_kernels=num, reason=reason, state=state, again_at=again_at)


# -- nobody asks ------------------------------------------------------------------------------------------------------


def _idle(state: ScaleState, present: PresentLoad, profile: ServingProfile, have: int, now: float) -> KernelDemand:
    """Give back all when nobody has asked for the release delay; a pause that is shorter is part of the load."""
    state = _note_end_of_load(state, present, profile, have, now)
    since = state.loaded_at if state.loaded_at is not None else state.began_at
    assert since is not None
    delay_s = delay_under_load(state, profile)
    all_until = since + profile.release_delay_s
    # To start a kernel again costs as much as to keep it for the time that it takes to start.
    last_until = max(all_until, since + state.start_s)
    most = most_needed(state.needs, now, delay_s) if now < all_until else None
    held = _num_held(state, have, now)
    floor = min(have, max(held, most.num if most else 0, profile.kernel_min))
    if floor == 0 < have and now < last_until:
        floor = 1
    num = _release(have, floor)
    said = "nobody has asked yet" if state.loaded_at is None else f"nobody has asked for {now - since:.0f} s"
    again_at: float | None = None
    if num > floor:
        again_at = now + profile.schedule_interval_s
        said += f"; {_kernels_are(num)} left for now"
    elif num > profile.kernel_min:
        again_at = min(most.at + delay_s, all_until) if most else last_until
        if num <= held and again_at < hold_of(state).until:
            again_at = hold_of(state).until
            said += f"; {_said_of_held(state, num)}"
        else:
            kept_s = (all_until if most else last_until) - since
            said += f"; {_kernels_are(num)} kept for {kept_s:.3g} s after the load"
    if state.loaded_at is not None:  # else what goes was never asked for, and is not missed if it comes back
        state = learn_regret(state, num - have, now)
    return KernelDemand(num_kernels=num, reason=said, state=state, again_at=again_at)


def _num_held(state: ScaleState, have: int, now: float) -> int:
    """Return how many kernels are held, since they have come for the load, and not long ago."""
    most = most_needed(state.needs, now, MAX_HOLD_S) if now < hold_of(state).until else None
    return min(have, most.num) if most else 0


def _note_end_of_load(
    state: ScaleState, present: PresentLoad, profile: ServingProfile, have: int, now: float
) -> ScaleState:
    """Record what the load needed until it ended, which was between two decisions."""
    loaded_at, decided_at = state.loaded_at, state.decided_at
    came_since = loaded_at is not None and (decided_at is None or loaded_at > decided_at)
    if loaded_at is None or not (came_since or state.needed):
        return state
    num = state.needed
    if came_since:
        num = max(num, min(have, required(facts_of(state, present, profile, have, now)).num))
    needs = _record(state, profile, Need(loaded_at, num)) if num else state.needs
    return replace(state, needs=needs, needed=0)


# -- somebody asks ----------------------------------------------------------------------------------------------------


def _under_load(
    state: ScaleState, present: PresentLoad, profile: ServingProfile, have: int, now: float
) -> KernelDemand:
    need = required(facts_of(state, present, profile, have, now))
    if need.num > 2 * have + 1:
        need = need._replace(num=2 * have + 1, why=f"{need.why}, {2 * have + 1} to begin with")
    state = replace(state, needs=_record(state, profile, Need(now, need.num)), needed=need.num)
    num, why = need.num, need.why
    if need.missing:
        before = min(state.wanted or 0, profile.kernel_max)
        if before > num:  # a kernel may wait for its slot; that it is not there yet is no reason to do without it
            num, why = before, f"{why}; {before} stay wanted while requests are late"
    else:
        num, why = _keep(state, profile, need, have, now)
    state = learn_regret(state, num - have, now)
    return KernelDemand(num_kernels=num, reason=why, state=state, again_at=now + profile.schedule_interval_s)


def _record(state: ScaleState, profile: ServingProfile, need: Need) -> tuple[Need, ...]:
    return record(state.needs, need, max(delay_under_load(state, profile), MAX_HOLD_S))


def _keep(state: ScaleState, profile: ServingProfile, need: Required, have: int, now: float) -> tuple[int, str]:
    """Return how many kernels stay though fewer are needed now, and why."""
    delay_s = delay_under_load(state, profile)
    most = most_needed(state.needs, now, delay_s)
    recent, held = min(have, most.num if most else 0), _num_held(state, have, now)
    floor = max(need.num, recent, held)
    num = _release(have, floor)
    if num > floor:
        why = f"{need.why}; {_kernels_are(num)} left for now"
    elif num > max(need.num, recent):
        why = f"{need.why}; {_said_of_held(state, num)}"
    elif num > need.num:
        why = f"{need.why}; {_kernels_are(num)} kept for {delay_s:g} s after they were needed"
    else:
        why = need.why
    return num, why


def _said_of_held(state: ScaleState, num: int) -> str:
    said = f"{_kernels_are(num)} kept for {hold_of(state).seconds:.3g} s at least"
    return said + " after the last one came, since kernels were soon missed" * bool(state.num_regrets)


def _release(have: int, floor: int) -> int:
    """Return how many of these kernels are left at once on the way down: at most half of them go."""
    return max(floor, have - max(1, have // 2), 0)


def _kernels_are(num: int) -> str:
    return f"{num} kernel{' is' if num == 1 else 's are'}"
