"""Puts together what a console shows first: what control has in memory, and a few questions to the store."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from pliant import __version__
from pliant.api.job_rows import shorten
from pliant.api.overview import EndpointsBrief, MachineBrief, Overview, SearchBrief, ServerBrief, WaitingJob
from pliant.control.jobs.live import LiveJob
from pliant.core.access import Permission, Principal, VisibleJobs
from pliant.core.event import Event, EventKind
from pliant.core.search import ENDED, SearchState, TrialState
from pliant.server.context import Context

NUM_WAITING: Final = 20
NUM_EVENTS: Final = 20
MAX_SEARCHES: Final = 100
MAX_ENDPOINTS: Final = 1000
NEWS: Final = (
    EventKind.SERVER_STARTED,
    EventKind.SERVER_STOPPING,
    EventKind.JOB_SUBMITTED,
    EventKind.JOB_CHANGED,
    EventKind.JOB_DELETED,
    EventKind.JOB_PREPARED,
    EventKind.JOB_HELD,
    EventKind.JOB_RELEASED,
    EventKind.JOB_STALLED,
    EventKind.JOB_RESUMED,
    EventKind.JOB_STATE,
    EventKind.DECISION,
    EventKind.TASK_LOST,
    EventKind.CHECKPOINT_FAILED,
    EventKind.MODEL_SAVED,
    EventKind.CLAIM_WEAKENED,
    EventKind.CLEANED_UP,
    EventKind.QUEUE_CHANGED,
    EventKind.WARNING,
)
"""Kinds of events that are news to people; the others say how tasks come and go."""
_REACHES: Final = (500, 5000)
"""So many of the newest events are looked through, and then so many, but no more."""


def overview_of(context: Context, caller: Principal, visible: VisibleJobs | None) -> Overview:
    """Return what there is, as far as somebody sees it."""
    control = context.control
    last_seq = control.queries.last_event()
    lives = control.jobs().values()
    seen = [live for live in lives if visible is None or visible.covers(live.id, live.job.owner)]
    waiting = sorted((live for live in seen if _waits(live)), key=lambda live: _urgency(context, live))
    machines = tuple(_machines(context, tuple(lives)))
    return Overview(
        last_seq=last_seq,
        now=context.clock.now(),
        server=ServerBrief(version=__version__, started_at=control.started_at),
        num_slots=sum(machine.num_slots for machine in machines),
        num_used=sum(machine.num_used for machine in machines),
        num_drained=sum(machine.num_slots for machine in machines if machine.drained),
        num_excluded=sum(machine.num_excluded for machine in machines),
        jobs=control.standing.num_by_state(visible),
        samples_per_s=sum(_speed(live) for live in seen),
        endpoints=_endpoints(context, caller),
        searches=tuple(_searches(context, caller)),
        waiting=tuple(_waiting(context, live) for live in waiting[:NUM_WAITING]),
        num_waiting=len(waiting),
        events=_events(context, last_seq, visible),
        machines=machines if caller.may(Permission.POOL_READ) else (),
    )


def _waits(live: LiveJob) -> bool:
    """Tell whether a job waits: a version of an endpoint that nobody asks wants nothing."""
    is_idle = live.job.spec.endpoint is not None and live.job.max_tasks == 0
    return live.competes and not live.running and not live.on_hold and not is_idle


def _urgency(context: Context, live: LiveJob) -> tuple[float, float]:
    place = context.control.standing.places().get(live.id)
    return (math.inf if place is None else place.place), live.job.submitted_at


def _waiting(context: Context, live: LiveJob) -> WaitingJob:
    job = live.job
    return WaitingJob(
        id=job.id,
        name=job.spec.name,
        kind=job.spec.kind,
        owner=job.owner,
        queue=job.queue,
        waiting=context.control.standing.waiting(job.id),
        sentence=shorten(job.why or job.reason),
    )


def _speed(live: LiveJob) -> float:
    progress = live.job.progress
    speed = 0.0 if progress is None or not live.running else progress.samples_per_s
    return speed if math.isfinite(speed) else 0.0


def _machines(context: Context, lives: Sequence[LiveJob]) -> Iterator[MachineBrief]:
    held = {(task.node_id, slot) for live in lives for task in live.running for slot in task.slots}
    nodes = context.control.queries.nodes()
    out_of_use = context.control.inquiries.machines.out_of_use
    excluded = out_of_use.excluded(nodes)
    for node in nodes:
        slots = {(node.id, slot) for slot in node.slots}
        yield MachineBrief(
            node_id=node.id,
            num_slots=len(slots - (excluded - held)),
            num_used=len(slots & held),
            drained=node.id in out_of_use.drains,
            num_excluded=len(slots & excluded),
        )


def _endpoints(context: Context, caller: Principal) -> EndpointsBrief | None:
    if context.endpoints is None or not caller.may(Permission.ENDPOINTS_READ):
        return None
    views = context.endpoints.page(caller, "", MAX_ENDPOINTS).endpoints
    loads = [version.load for view in views for version in view.versions if version.load is not None]
    rates = [load.completed / load.seconds for load in loads if load.seconds > 0]
    return EndpointsBrief(
        num_endpoints=len(views),
        num_serving=sum(view.state == "serving" for view in views),
        requests_per_s=sum(rates) if rates else None,
    )


def _searches(context: Context, caller: Principal) -> Iterator[SearchBrief]:
    if context.searches is None:
        return
    found, _ = context.searches.page(caller, "", MAX_SEARCHES, (SearchState.RUNNING,))
    for search in found:
        trials = context.searches.num_trials(search.name)
        yield SearchBrief(
            name=search.name,
            owner=search.owner,
            num_running=trials.get(TrialState.RUNNING, 0),
            num_ended=sum(number for state, number in trials.items() if state in ENDED),
            max_trials=search.settings.max_trials,
        )


def _events(context: Context, last_seq: int, visible: VisibleJobs | None) -> tuple[Event, ...]:
    """Return the newest events that are news, of the last few thousand there are."""
    found: tuple[Event, ...] = ()
    for reach in _REACHES:
        found = context.control.standing.news(max(0, last_seq - reach), NEWS, NUM_EVENTS, visible)
        if len(found) == NUM_EVENTS:
            break
    return found
