"""Control: the one place that decides and acts. One lock; one thread that ticks; use cases callable from any thread.

observe → decide → write → act → show. Whatever a decision changes is written in one transaction before anything is
done; a decision that could not be written has changed nothing (see `control.jobs.ledger`). What comes from tasks and
from the cluster waits in an inbox, so that those who bring it never wait for a decision. It knows no socket, no process
and no SQL. One tick, with a server that just stood still for 90 s:

    items      Stalled(90 s): all deadlines move by 90 s; then 40 progress reports, written in one transaction;
               then the exits of job-1.2 and job-1.3, another one (`control.loop.intake`)
    due        nothing, unless the links are still to be read: then what would meet a deadline may be unread
    plan       slot 3 is free again: the scheduler is asked, and its plan is one more transaction

What comes in during the tick waits for the next one, or there might be no end. If it takes long to take the items in,
the tick ends before the rest of them, so that those who wait for the lock have a turn; the next tick begins there.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from pliant.control.jobs.exits import lose_vanished
from pliant.control.jobs.inbox import ControlInbox, Disconnected, LeaseEnded, Received, Stalled
from pliant.control.jobs.inputs import JobInputs
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.leases import Leases
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob, job_of
from pliant.control.jobs.orders import job_token
from pliant.control.kinds import KINDS
from pliant.control.kinds.endpoint.kernels import KernelRequests
from pliant.control.loop.deadlines import Deadlines, next_deadline, pass_time
from pliant.control.loop.gate import PreparationCheck
from pliant.control.loop.intake import Intake
from pliant.control.loop.measures import Measures
from pliant.control.loop.planner import Planner
from pliant.control.loop.previews import Previews
from pliant.control.loop.restore import load, reconcile
from pliant.control.requests import changes
from pliant.control.requests.acceptance import Acceptance
from pliant.control.requests.deletion import Deletions
from pliant.control.requests.ending import EndRequests
from pliant.control.requests.inquiries import inquiries_of
from pliant.control.requests.jobs import JobRequests
from pliant.control.requests.out_of_use import out_of_use_of
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import queues_of
from pliant.control.requests.sidecars import SidecarRequests
from pliant.control.requests.slots import SlotQueries
from pliant.control.requests.standing import JobStanding
from pliant.control.requests.trials import TrialRequests
from pliant.control.settings import ControlSettings
from pliant.core.errors import Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.link import FromTask, Pulse
from pliant.core.link_proof import LinkAnswer, LinkProof, read_authorization
from pliant.core.ports import Clock, Cluster, Links, Store

log = logging.getLogger(__name__)

MAX_SLEEP_S = 1.0
UNREAD_SLEEP_S = 0.05
TURN_S = 0.001
"""The lock is not fair: between ticks that follow each other at once, those who wait for it have a turn."""
STALLED_S = 10.0
TICK_S = 0.05
"""When a tick has taken things in for so long, others who wait for the lock have a turn before it goes on."""


class Control:
    """Decides for all jobs and carries the decisions out.

    What others ask for goes through `requests` (jobs), `trials`, `deletions`, `sidecars`, `kernels`, `queues`,
    `queries`, `inquiries`, `slots`, `standing`, `previews`, `measures` and `ending` (of the server).
    """

    def __init__(
        self,
        *,
        store: Store,
        cluster: Cluster,
        links: Links,
        clock: Clock,
        settings: ControlSettings,
        inputs: JobInputs | None = None,
        kinds: Kinds = KINDS,
    ) -> None:
        inputs = inputs or JobInputs()
        self.settings = settings
        self._store = store
        self._cluster = cluster
        self._links = links
        self._clock = clock
        self._kinds = kinds
        self._inbox = ControlInbox()
        self._ledger = Ledger(
            store=store, cluster=cluster, links=links, clock=clock, settings=settings, kinds=kinds, inbox=self._inbox
        )
        out_of_use = self._out_of_use = out_of_use_of(store, clock, self._ledger)
        self.queues = queues_of(store, cluster, clock, settings, self._ledger, inputs.user_of, out_of_use)
        self.queries = Queries(
            store=store,
            observe=self._ledger.observe,
            clock=clock,
            settings=settings,
            jobs=self.jobs,
            policy=self.queues.policy,
            kinds=kinds,
        )
        self.inquiries = inquiries_of(store, cluster, clock, settings, self._ledger, self.queries, out_of_use)
        acceptance = Acceptance(
            ledger=self._ledger, settings=settings, queries=self.queries, queues=self.queues, inputs=inputs
        )
        self.requests = JobRequests(
            ledger=self._ledger, settings=settings, queries=self.queries, queues=self.queues, acceptance=acceptance
        )
        self.trials = TrialRequests(ledger=self._ledger, acceptance=acceptance, store=store, settings=settings)
        self.deletions = Deletions(self._ledger, self.queries, store, clock, settings)
        self.sidecars = SidecarRequests(self._ledger, settings, self.queries, self.queues, cluster)
        self.kernels = KernelRequests(self._ledger, settings)
        self.ending = EndRequests(self._ledger, cluster)
        self.standing = JobStanding(store=store, find=self._ledger.get, policy=settings.policy)
        preparations = PreparationCheck(ledger=self._ledger, preparations=inputs.preparations, settings=settings)
        self._planner = Planner(self._ledger, settings.policy, preparations, self.queues, self.standing, out_of_use)
        self.previews = Previews(self._ledger, self.requests, self.queues, acceptance, settings.policy, out_of_use)
        self.measures = Measures(
            ledger=self._ledger, cluster=cluster, queues=self.queues, out_of_use=out_of_use, tick_age_s=self.tick_age_s
        )
        self.slots = SlotQueries(store, clock, span=lambda: self._ledger.capacity.span, queues=self.queues.queues)
        self.started_at = self._ticked_at = clock.now()
        self._leases = Leases(settings.timeouts.lease_s)
        self._intake = Intake(self._ledger, self._inbox, self._leases, cluster, links, clock, settings.timeouts)
        self._deadlines = Deadlines(self._ledger)
        self._due_until: float | None = None
        """What is taken in now came before: no later deadline is judged. None: links are unread, and none is at all."""
        self._closed = threading.Event()

    # What comes in, from any thread

    def receive(
        self, task_id: TaskId, message: FromTask, number: int = 0, stored: Callable[[], None] | None = None
    ) -> None:
        """Take in a message of a task. It renews the task's lease; a pulse does nothing else and wakes nobody.

        By its `number`, if it has one, a message is recognised that came before, perhaps to another server. `stored` is
        called, from any thread, when all that follows from the message is written.
        """
        self._leases.renew(task_id, message)
        if not isinstance(message, Pulse):
            self._inbox.put(Received(task_id=task_id, message=message, number=number, stored=stored))

    def disconnect(self, task_id: TaskId, goodbye: bool = False) -> None:
        """Take note that the link of a task is closed, perhaps by the task itself, and was read to its end."""
        if goodbye:
            self._leases.extend(task_id)
        self._inbox.put(Disconnected(task_id=task_id))

    def note_listening(self) -> None:
        """Take note that the links are being read now; whoever reads them says so a few times a second."""
        listened = self._leases.listen(self._clock.now())
        if listened.stalled_s:
            self._inbox.put(Stalled(seconds=listened.stalled_s))
        for task_id in listened.ended:
            self._inbox.put(LeaseEnded(task_id=task_id))
        self._leases.note_delivered(self._clock.now())

    def wake(self) -> None:
        """Make the loop tick now."""
        self._inbox.wake()

    def answer_task(self, task_id: str, authorization: str) -> LinkAnswer:
        """Return whether somebody has proved to be this task and the task lives, with this server's proof of that.

        Takes no lock, since the thread that reads the links must not wait for a decision.
        """
        nonce, proof = read_authorization(authorization)
        opening = LinkProof(task_id=task_id, challenge=self.settings.challenge, nonce=nonce)
        token = job_token(self.settings.secret, job_of(task_id))
        live = self._ledger.get(job_of(task_id))
        task = live.tasks.get(TaskId(task_id)) if live is not None else None
        is_open = opening.proves("task", token, proof) and task is not None and not task.ended
        return LinkAnswer(is_open=is_open, proof=opening.of("open" if is_open else "refused", token))

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after events were stored, from any thread; returns what ends it."""
        return self._ledger.subscribe(listener)

    def jobs(self) -> Mapping[JobId, LiveJob]:
        """Return what is in memory of the jobs that have not ended or still hold slots."""
        return self._ledger.jobs()

    # The loop

    def start(self) -> None:
        """Take up what the store remembers and the cluster shows; call once, before the first tick."""
        with self._ledger.lock:
            self.queues.load()
            self._out_of_use.load()
            self.inquiries.machines.labels.load()
            changes.clean(self.settings.home / "jobs")
            self._cluster.watch(self._inbox.put, self._inbox.put)
            loaded = load(self._store, self._kinds, now=self._clock.now(), timeouts=self.settings.timeouts)
            self._ledger.load(loaded)
            missing = reconcile(draft := self._ledger.draft(), self._kinds, self._ledger.observe())
            self._intake.deferred.expect(missing, self._clock.now() + self.settings.timeouts.messages_s)
            self._ledger.commit(draft)
            self._ledger.capacity.note(self._clock.now(), self._out_of_use.usable_now())

    def run(self) -> None:
        """Tick until `close`, whenever something happened or is due, once a second at least."""
        while not self._closed.is_set():
            try:
                self.tick()
                if self._inbox:
                    self._closed.wait(TURN_S)
                self._inbox.sleep(self._delay())
            except Unavailable as error:
                log.warning("nothing can be decided now, it is tried again: %s", error)
                self._closed.wait(MAX_SLEEP_S)
            except Exception:
                log.exception("a decision failed; it is tried again")
                self._closed.wait(MAX_SLEEP_S)

    def close(self) -> None:
        """End `run`."""
        self._closed.set()
        self.wake()

    def tick_age_s(self) -> float:
        """Return how long ago the loop last ticked, seconds."""
        return self._clock.now() - self._ticked_at

    def is_healthy(self) -> bool:
        """Tell whether the loop ticks."""
        return self.tick_age_s() < STALLED_S

    def wake_at(self) -> float | None:
        """Return when time alone makes the next tick do something; None if it does not."""
        with self._ledger.lock:
            instants = [*self._intake.deferred.instants()]
            if (at := self._deadlines.next_at()) is not None:
                instants.append(at)
            if self._planner.wake_at is not None and not self._ledger.draining:
                instants.append(self._planner.wake_at)
            return min(instants, default=None)

    def _delay(self) -> float:
        if self._leases.is_behind(self._clock.now()):
            return UNREAD_SLEEP_S  # nothing is judged before the links are read again
        wake_at = self.wake_at()
        return MAX_SLEEP_S if wake_at is None else max(0.0, min(MAX_SLEEP_S, wake_at - self._clock.now()))

    def tick(self) -> None:
        """Take in what has happened by now, do what is due, decide anew if anything changed that the scheduler sees."""
        counts = self._ledger.counts
        with self._ledger.lock, counts.timed(counts.ticks_s):
            now = self._clock.now()
            if not self._intake.num_left:
                self._due_until = None if self._leases.is_behind(now) else now  # what is read later is none of them
                self._intake.count()  # of what comes in meanwhile there may be no end
            self._ticked_at = now
            self._intake.take(now + TICK_S)
            if self._intake.num_left:
                return
            if self._due_until is not None:
                self._take_due(self._due_until)
            if not self._ledger.draining:
                self._planner.plan(now)
            self._ledger.capacity.note(now, self._out_of_use.usable_now())

    def _take_due(self, now: float) -> None:
        for ended in self._intake.deferred.due(now):
            self._intake.take_exit(ended)
        for task_id in self._intake.deferred.vanished(now):
            lose_vanished(draft := self._ledger.draft(), self._kinds, job_of(task_id), task_id)
            self._ledger.commit(draft)
            self._intake.deferred.forget(task_id)
        for job_id in self._deadlines.due(now):
            live = self._ledger.get(job_id)
            if live is not None and (at := next_deadline(self._kinds, live)) is not None and at <= now:
                pass_time(draft := self._ledger.draft(), self._kinds, live, self._cluster.silent_nodes())
                self._ledger.commit(draft)
