"""How many kernels a version wants: reports taken in, and demand evaluated anew when that is due.

The decision itself is `policy.autoscale`'s. Example: a report at 10.00 s says that 40 requests wait and no kernel is
there; demand is evaluated at once and is 1. The next evaluation is due at 11.00 s, whatever is reported until then.
"""

from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.kinds.endpoint.history import take_sample
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.core.event import EventKind
from pliant.core.serving import VersionLoad
from pliant.policy.autoscale.demand import decide
from pliant.policy.autoscale.load import take


def take_load(draft: Draft, live: EndpointJob, load: VersionLoad) -> EndpointJob:
    """Take in what the gateway reports of a version, and evaluate its demand if that is due."""
    answered = load.completed > load.failed
    live = draft.put(
        replace(
            live,
            load=load,
            scale=take(live.scale, load, draft.now),
            history=take_sample(draft, live.job, live.history, load, live.wanted),
            num_failures=0 if answered else live.num_failures,
            has_answered=answered or live.has_answered,
        )
    )
    return evaluate(draft, live) if _is_due(live, load, draft.now) else live


def _is_due(live: EndpointJob, load: VersionLoad, now: float) -> bool:
    if load.queued and not live.wanted:
        return True  # the first request of an idle endpoint does not wait for the next evaluation
    return live.decided_at is None or now >= live.decided_at + live.profile.schedule_interval_s


def evaluate(draft: Draft, live: EndpointJob) -> EndpointJob:
    """Ask how many kernels are wanted now, and note it."""
    profile, bounds = live.bounded, live.bounds
    demand = decide(live.scale, profile, len(live.staying), draft.now)
    first = 0 if live.has_served else max(1, profile.kernel_min)  # they show that the model loads
    wanted, reason = max(demand.num_kernels, first), demand.reason
    if wanted > demand.num_kernels:
        reason = "its model is loaded"
    if bounds is not None:
        wanted = max(wanted, bounds.at_least)
        reason = f"{reason}; {bounds.why}" if bounds.why else reason
    if wanted != live.wanted:
        data = {"from": live.wanted, "to": wanted}
        draft.say(EventKind.DEMAND, f"{live.label}: {reason}", job_id=live.id, data=data)
    return draft.put(
        replace(
            live,
            wanted=wanted,
            needed=demand.num_kernels,
            demand=reason,
            scale=demand.state,
            decided_at=draft.now,
            decide_at=demand.again_at,
        )
    )
