"""What the load needs at this moment (`required`), whatever was needed before: the part of the decision that grows.

Kernels are missing if one of these holds:
- *late*: what is there now is more than the kernels, with those that start, answer within the objective;
- *waiting*: a request has waited for a kernel for longer than the objective;
- *full*: a queue has not gone away for a window, and all kernels are ready.

How many are wanted follows from the rate at which requests arrive, not from the length of the queue: that is long after
a cold start, and short again before kernels that were asked for its sake would be there. Only so many more are wanted
that they bring the queue down in twice the time that it takes to start them, and never more than twice as many.

A queue before kernels that rest is not theirs: whoever hands requests to them is slow. More kernels would not help.
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.enough import kernels_for
from pliant.policy.autoscale.load import PresentLoad, ScaleState
from pliant.policy.autoscale.speed import HEADROOM, KernelPace
from pliant.policy.autoscale.window import WINDOW_S, LoadSample, total

_NOW_S: Final = 1.0
"""What has been there for less does not count as load that lasts."""
_FAST_S: Final = 2.0
_CATCH_UP_S: Final = 5.0
_CATCH_UP_ANSWERS: Final = 5
"""A queue is to be gone in so many seconds, in twice the time that kernels take to start, or in the time of so many
answers: whichever is longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFacts:
    """What a decision looks at."""

    profile: ServingProfile
    have: int
    """Kernels that are ready or start."""
    present: PresentLoad
    load: float
    """Requests at once that have been there for a moment and still are."""
    fast: LoadSample
    """The last two seconds."""
    window: LoadSample
    queue_s: float
    """For so long requests have waited for a kernel in every report."""
    since_ready_s: float
    """So long ago the newest kernel became ready."""
    start_s: float
    pace: KernelPace | None

    @property
    def num_slots(self) -> int:
        """Return how many requests a kernel may hold."""
        return self.profile.batch_size * self.profile.pipe_size

    @property
    def all_ready(self) -> bool:
        return self.have <= self.present.num_ready

    @property
    def rate(self) -> float:
        """Return how many requests arrive per second; a rise counts before a fall does."""
        return max(self.fast.rate, self.window.rate)


class Required(NamedTuple):
    """So many kernels the load needs at this moment."""

    num: int
    why: str
    missing: bool
    """The kernels that are there do not answer in time: none is given back, and more may be wanted."""


def facts_of(state: ScaleState, present: PresentLoad, profile: ServingProfile, have: int, now: float) -> LoadFacts:
    """Return what a decision looks at."""
    last = total(state.samples, now, _NOW_S)
    return LoadFacts(
        profile=profile,
        have=have,
        present=present,
        load=min(present.num_requests, last.mean_load) if last.seconds >= _NOW_S / 2 else present.num_requests,
        fast=total(state.samples, now, _FAST_S),
        window=total(state.samples, now, WINDOW_S),
        queue_s=0.0 if state.queued_since is None else present.at - state.queued_since,
        since_ready_s=math.inf if state.more_ready_at is None else present.at - state.more_ready_at,
        start_s=state.start_s,
        pace=state.speed.pace(profile),
    )


def required(facts: LoadFacts) -> Required:
    """Return what the load needs; at least one kernel, so ask only if there is load."""
    if facts.pace is None:
        return _unmeasured(facts)
    if facts.have == 0:
        most = math.ceil(facts.present.num_requests / _at_once(facts.pace, facts.profile, HEADROOM))
        num = max(1, min(kernels_for(facts.rate, facts.pace, facts.profile.latency_objective_s), most))
        return Required(num, f"{_requests(facts.present.num_requests)} and no kernel: {_wanted(num)}", missing=True)
    why = None if _kernels_rest(facts) else _why_missing(facts, facts.pace)
    if why is None:
        return _at_rest(facts, facts.pace)
    num = _num_missing(facts, facts.pace)
    return Required(num, f"{why}: {_wanted(num)}", missing=True)


# -- nothing was ever measured ----------------------------------------------------------------------------------------


def _unmeasured(facts: LoadFacts) -> Required:
    """Presume that the model keeps the objective: then so many requests are there at once as arrive in its time.

    What has gathered before a model that loads says nothing of how many kernels it needs when it is there.
    """
    at_once = min(facts.present.num_requests, facts.rate * facts.profile.latency_objective_s)
    num = max(1, math.ceil(at_once / (HEADROOM * facts.num_slots)))
    if facts.have == 0:
        return Required(num, f"{_requests(facts.present.num_requests)} and no kernel: {_wanted(num)}", missing=True)
    if num > facts.have:
        why = f"{_requests(at_once)} in {facts.profile.latency_objective_s:g} s fill {_kernels(facts.have)} of"
        return Required(num, f"{why} {facts.num_slots}, whose speed is not known yet: {_wanted(num)}", missing=True)
    return Required(num, f"no request was answered yet: {_wanted(num)}", missing=False)


# -- kernels are missing ----------------------------------------------------------------------------------------------


def _why_missing(facts: LoadFacts, pace: KernelPace) -> str | None:
    """Return in what respect kernels are missing; None if they are not."""
    have, objective_s = _kernels(facts.have), facts.profile.latency_objective_s
    answer = "answers" if facts.have == 1 else "answer"
    if facts.load > facts.have * _at_once(pace, facts.profile, 1.0):
        return f"{_requests(facts.load)} at once are more than {have} {answer} within {objective_s:g} s"
    if facts.present.queued > 0 and facts.present.oldest_wait_s > objective_s:
        return (
            f"a request has waited {facts.present.oldest_wait_s:.2g} s for one of {have}, more than {objective_s:g} s"
        )
    if facts.queue_s >= WINDOW_S and facts.all_ready:
        return f"{have} of {facts.num_slots} {'is' if facts.have == 1 else 'are'} full for {facts.queue_s:.0f} s"
    return None


def _num_missing(facts: LoadFacts, pace: KernelPace) -> int:
    num = kernels_for(facts.rate, pace, facts.profile.latency_objective_s)
    if facts.all_ready:
        too_many = max(0.0, facts.load - facts.have * _at_once(pace, facts.profile, 1.0))
        catch_up_s = max(_CATCH_UP_S, 2 * facts.start_s, _CATCH_UP_ANSWERS * pace.answer_s)
        catching_up = math.ceil((facts.rate + too_many / catch_up_s) / pace.per_second)
        num = max(num, min(catching_up, 2 * num))
        settled = facts.since_ready_s >= max(_FAST_S, 2 * pace.answer_s)
        if settled and facts.load >= facts.window.mean_load:  # all help that is there does not make it less
            num = max(num, facts.have + 1)
    # More kernels than these would have nothing to do.
    in_time = facts.load / _at_once(pace, facts.profile, HEADROOM)
    not_full = facts.load / (HEADROOM * facts.num_slots) if facts.present.queued > 0 else 0.0
    return max(facts.have, min(num, math.ceil(max(in_time, not_full))))


def _kernels_rest(facts: LoadFacts) -> bool:
    """Whether the kernels have room and computed less than half of the time: a queue is not for want of them.

    What a batch computes is reported when it is done, so nothing is concluded of a model whose batches are long.
    """
    assert facts.pace is not None
    window, present = facts.window, facts.present
    if present.num_ready == 0 or window.completed == 0 or facts.pace.batch_s > WINDOW_S / 2:
        return False
    has_room = present.in_flight < present.num_ready * facts.num_slots / 2
    return has_room and present.queued > 0 and window.busy_s < window.ready_s / 2


def _at_once(pace: KernelPace, profile: ServingProfile, part: float) -> float:
    """Return how many requests at once a kernel answers within a part of the objective, or of what is possible."""
    return pace.at_once(part * max(profile.latency_objective_s, pace.answer_s * 1.5))


# -- none is missing --------------------------------------------------------------------------------------------------


def _at_rest(facts: LoadFacts, pace: KernelPace) -> Required:
    rate = facts.window.rate
    num = min(max(facts.have, 1), kernels_for(rate, pace, facts.profile.latency_objective_s))
    need = f"need {_kernels(num)} that answer up to {pace.per_second:.3g} each" if num > 1 else "need 1 kernel"
    return Required(num, f"{rate:.3g} requests per second {need}", missing=False)


# -- words ------------------------------------------------------------------------------------------------------------


def _requests(num: float) -> str:
    return f"{num:.0f} request{'' if round(num) == 1 else 's'}"


def _kernels(num: int) -> str:
    return f"{num} kernel{'' if num == 1 else 's'}"


def _wanted(num: int) -> str:
    return f"{num} {'is' if num == 1 else 'are'} wanted"
