"""What would come of a change if it was made now: the scheduler decides on a copy, and nobody carries that out.

The change is noted in a draft by the same code that makes it, so it is refused for the same reasons. Then the draft's
jobs are laid before `plan`, as the loop would at this instant, and the draft is dropped: nothing is written, no task
starts or leaves, no event is told. Example: job-1 and job-2 have four slots each. Of job-2 with the priority 10000 the
preview says 3 and 5; the decision that follows the change says the same, unless something else happens in between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pliant.api.job_rows import WaitingView
from pliant.api.jobs import JobPatch
from pliant.api.previews import (
    FieldProblem,
    OthersPreview,
    QueuePreview,
    SharePreview,
    SlotsTaken,
    SubmissionPreview,
    WorkloadPreview,
)
from pliant.api.view import fill
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.loop.arrays import held_back
from pliant.control.loop.scheduling import seen_by_scheduler
from pliant.control.requests import changes
from pliant.control.requests.acceptance import Acceptance
from pliant.control.requests.jobs import JobRequests
from pliant.control.requests.out_of_use import OutOfUse
from pliant.control.requests.queues import Queues
from pliant.control.requests.standing import target_slots
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput, NotFound, Problem, UserError
from pliant.core.job import JobId, JobSpec
from pliant.core.notice import NoticeSettings
from pliant.core.plan import Plan, Policy, Snapshot
from pliant.core.queue import Queue
from pliant.policy.schedule.plan import plan
from pliant.policy.schedule.waiting import places

NEW: Final = JobId("new")
"""Stands for the job that is not submitted yet: by its name it comes after all others of the same instant."""
MAX_WORKLOADS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What the scheduler would see, and what is known besides."""

    at: float
    lives: Sequence[LiveJob]
    seen: Snapshot
    held: Mapping[JobId, str]
    """Jobs that their array's limit keeps from running, each with why."""
    deserved: Mapping[str, int]
    """By the newest decision."""
    refused: str = ""
    problems: Sequence[Problem] = ()
    notes: Sequence[str] = ()


class Previews:
    """The use cases. Safe to call from any thread: it looks under the lock, and decides without it."""

    def __init__(
        self,
        ledger: Ledger,
        requests: JobRequests,
        queues: Queues,
        acceptance: Acceptance,
        policy: Policy,
        out_of_use: OutOfUse,
    ) -> None:
        self._ledger = ledger
        self._requests = requests
        self._queues = queues
        self._acceptance = acceptance
        self._policy = policy
        self._out_of_use = out_of_use

    def change(self, job_id: str, patch: JobPatch, visible: VisibleJobs | None = None) -> SharePreview:
        """Return what would come of a change of a job.

        Raises:
            NotFound: nothing of that name.
        """

        def note(draft: Draft) -> Sequence[str]:
            return self._requests.note_change(draft, job_id, patch, None, visible)

        return self._shares(self._look(note), visible)

    def queue(self, name: str, values: Mapping[str, object], visible: VisibleJobs | None = None) -> SharePreview:
        """Return what would come of a change of a queue.

        Raises:
            NotFound: there is none of that name.
        """
        changed: list[Queue] = []
        look = self._look(lambda _draft: changed.append(self._queues.changed(name, values)), changed)
        return self._shares(look, visible)

    def nothing(self, visible: VisibleJobs | None, *problems: Problem) -> SharePreview:
        """Return what would come of no change; with what is wrong with the one that was asked for."""
        return self._shares(self._refused(InvalidInput(*problems)), visible)

    def submission(
        self, spec: JobSpec, owner: str, visible: VisibleJobs | None, notices: NoticeSettings
    ) -> SubmissionPreview:
        """Return what would become of a job that was submitted now; its code is not looked at."""
        spec, problems = self._acceptance.problems(spec, visible, notices)
        if problems:
            return self.no_submission(visible, *problems)

        def note(draft: Draft) -> Sequence[str]:
            after, after_any = self._acceptance.awaited(spec, visible)
            notes = [*self._queues.misfit(spec.queue, spec.min_tasks, spec.slots_per_task)]
            new = changes.NewJob(id=NEW, spec=spec, after=after, after_any=after_any)
            changes.submit(draft, self._ledger.kinds, new, owner)
            live = draft.job(NEW)
            if live is not None and live.unprepared:
                draft.put(replace(live, python="to come"))
                notes.append("it takes no slot before its environment is ready; this is how it would be then")
            return notes

        return self._of_submission(self._look(note), visible)

    def no_submission(self, visible: VisibleJobs | None, *problems: Problem) -> SubmissionPreview:
        """Return what is wrong with a submission, and how things are without it."""
        return self._of_submission(self._refused(InvalidInput(*problems)), visible)

    # What the scheduler would see

    def _look(self, note: Callable[[Draft], Sequence[str] | None], changed: Sequence[Queue] = ()) -> _Look:
        """Return how things would be if this was noted; as they are, if it is refused.

        Args:
            note: notes the change in a draft, and returns what people should know of it.
            changed: after that, the queue that is another one.
        """
        with self._ledger.lock:
            draft = self._ledger.draft()
            try:
                notes = note(draft) or ()
            except NotFound:
                raise
            except UserError as error:
                return self._refused(error)
            return replace(self._seen(draft, *changed), notes=notes)

    def _refused(self, error: UserError) -> _Look:
        problems = error.problems if isinstance(error, InvalidInput) else ()
        with self._ledger.lock:
            return replace(self._seen(self._ledger.draft()), refused=str(error), problems=problems)

    def _seen(self, draft: Draft, instead: Queue | None = None) -> _Look:
        observed = self._ledger.observe()
        lives = draft.jobs()
        held = held_back(lives)
        views = partial(self._queues.views, instead=instead)
        seen = seen_by_scheduler(lives, self._ledger.kinds, self._ledger.view, observed, held, views, self._out_of_use)
        return _Look(at=draft.now, lives=lives, seen=seen, held=held, deserved=self._queues.deserved)

    # What it would decide

    def _shares(self, look: _Look, visible: VisibleJobs | None) -> SharePreview:
        return _preview(look, plan(look.seen, self._policy, look.at), visible)

    def _of_submission(self, look: _Look, visible: VisibleJobs | None) -> SubmissionPreview:
        decision = plan(look.seen, self._policy, look.at)
        whole = _preview(look, decision, visible)
        own = next((one for one in whole.workloads if not one.id), None)
        grant = decision.grants.get(NEW)
        per_task = next((live.job.spec.num_slots_for(1) for live in look.lives if live.id == NEW), 0)
        starts_with = 0 if grant is None else len(grant.start) * per_task
        place = places(look.seen, self._policy).get(NEW) if grant is not None and not grant.num_tasks else None
        return fill(
            SubmissionPreview,
            whole,
            starts=starts_with > 0,
            starts_with=starts_with,
            would_get=0 if own is None else own.would_get,
            sentence="" if own is None else own.reason,
            waiting=None if place is None else fill(WaitingView, place),
            takes=tuple(
                SlotsTaken(id=one.id, name=one.name, num_slots=one.target - one.would_get)
                for one in whole.workloads
                if own is not None and one.id and one.would_get < one.target
            ),
            num_taken_from_others=0 if own is None else max(0, whole.others.target - whole.others.would_get),
        )


def _preview(look: _Look, decision: Plan, visible: VisibleJobs | None) -> SharePreview:
    seen: list[WorkloadPreview] = []
    hidden: list[WorkloadPreview] = []
    for live in look.lives:
        if live.running or live.competes:
            is_seen = live.id == NEW or visible is None or visible.covers(live.id, live.job.owner)
            (seen if is_seen else hidden).append(_workload(live, decision, look.held))
    num_slots = sum(len(node.slots) for node in look.seen.nodes)
    return SharePreview(
        at=look.at,
        refused=look.refused,
        problems=tuple(FieldProblem(field=one.field, message=one.message) for one in look.problems),
        notes=tuple(look.notes),
        num_slots=num_slots,
        num_free=num_slots - _num_taken(look.seen),
        would_be_free=max(0, num_slots - sum(one.would_get for one in (*seen, *hidden))),
        workloads=tuple(sorted(seen, key=_has_none)[:MAX_WORKLOADS]),
        others=_sum(hidden),
        queues=tuple(
            QueuePreview(name=name, num_deserved=look.deserved.get(name, 0), would_deserve=num)
            for name, num in decision.deserved.items()
        ),
    )


def _workload(live: LiveJob, decision: Plan, held: Mapping[JobId, str]) -> WorkloadPreview:
    grant = decision.grants.get(live.id)
    is_asked = live.competes and not live.on_hold  # of who is on hold the scheduler knows only that it wants nothing
    reason = held.get(live.id) or (decision.reasons.get(live.id) if is_asked else None)
    return WorkloadPreview(
        id="" if live.id == NEW else live.id,
        name=live.job.spec.name,
        kind=live.job.spec.kind,
        queue=live.job.queue,
        held=live.num_slots,
        target=target_slots(live),
        would_get=0 if grant is None or not is_asked else live.job.spec.num_slots_for(grant.num_tasks),
        reason=reason or live.job.why or live.job.reason,
    )


def _has_none(one: WorkloadPreview) -> bool:
    return bool(one.id) and not (one.held or one.target or one.would_get)


def _sum(hidden: Sequence[WorkloadPreview]) -> OthersPreview:
    return OthersPreview(
        num_workloads=len(hidden),
        held=sum(one.held for one in hidden),
        target=sum(one.target for one in hidden),
        would_get=sum(one.would_get for one in hidden),
    )


def _num_taken(seen: Snapshot) -> int:
    there = {(node.id, slot) for node in seen.nodes for slot in node.slots}
    taken = {(task.node_id, slot) for one in seen.workloads for task in one.tasks for slot in task.slots}
    return len(there & taken)
