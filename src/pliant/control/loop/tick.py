"""Control: the one place that decides and acts. One lock; one thread that ticks; use cases callable from any thread.

observe → decide → write → act → show. Whatever a decision changes is written in one transaction before anything is
done; a decision that could not be written has changed nothing. What comes from tasks and from the cluster waits in an
inbox, so that those who bring it never wait for a decision. It knows no socket, no process and no SQL.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import assert_never

from pliant.control.jobs.awaited import Awaited
from pliant.control.jobs.data import NoData
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.exits import fence, lose_vanished, take_exit
from pliant.control.jobs.inbox import Heard, Hung, Inbox, Item, Silent, Slept
from pliant.control.jobs.leases import Leases
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob, job_of
from pliant.control.jobs.messages import hear
from pliant.control.jobs.orders import verify_task
from pliant.control.loop.deadlines import next_deadline, pass_time, postpone
from pliant.control.loop.gate import Gate, NoPreparations
from pliant.control.loop.planner import Planner
from pliant.control.loop.restore import load, reconcile
from pliant.control.requests import changes
from pliant.control.requests.desk import Desk
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import queues_of
from pliant.control.settings import ControlSettings
from pliant.core.dataset import DataPlaces
from pliant.core.errors import Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.link import FromTask, Hello, Pulse
from pliant.core.ports import Clock, Cluster, Links, Store, TaskExit
from pliant.core.preparation import Preparations

log = logging.getLogger(__name__)

MAX_SLEEP_S = 1.0
DEAF_SLEEP_S = 0.05
TURN_S = 0.001
"""The lock is not fair: between ticks that follow each other at once, those who wait for it have a turn."""
STALLED_S = 10.0
MAX_TOLD = 50
"""So many messages that are only told to people are written in one transaction."""


class Control(Desk):
    """Decides for all jobs and carries the decisions out."""

    def __init__(
        self,
        *,
        store: Store,
        cluster: Cluster,
        links: Links,
        clock: Clock,
        settings: ControlSettings,
        preparations: Preparations | None = None,
        data: DataPlaces | None = None,
    ) -> None:
        self.settings = settings
        self._store = store
        self._cluster = cluster
        self._links = links
        self._inbox = Inbox()
        self._ledger = Ledger(
            store=store, cluster=cluster, links=links, clock=clock, settings=settings, inbox=self._inbox
        )
        self._prepare = preparations or NoPreparations()
        self._data = data or NoData()
        gate = Gate(ledger=self._ledger, preparations=self._prepare, settings=settings)
        self.queues = queues_of(store, cluster, clock, settings, self._ledger)
        self._planner = Planner(
            ledger=self._ledger, cluster=cluster, policy=settings.policy, gate=gate, queues=self.queues
        )
        self._clock = clock
        self._draining = False
        self._ticked_at = clock.now()
        self._silent: set[TaskId] = set()
        self._awaited = Awaited()
        self._leases = Leases(settings.timeouts.lease_s)
        self._closed = threading.Event()
        self.queries = Queries(
            store=store, cluster=cluster, clock=clock, settings=settings, jobs=self.jobs, policy=self.queues.policy
        )

    # What comes in, from any thread

    def hear(
        self, task_id: TaskId, message: FromTask, number: int = 0, stored: Callable[[], None] | None = None
    ) -> None:
        """Take in a message of a task. It renews the task's lease; a pulse does nothing else and wakes nobody.

        By its `number`, if it has one, news is known to have been told before, perhaps by another server. `stored` is
        called, from any thread, when all that follows from the message is written.
        """
        self._leases.heard(task_id, message)
        if not isinstance(message, Pulse):
            self._inbox.put(Heard(task_id=task_id, message=message, number=number, stored=stored))

    def silent(self, task_id: TaskId, goodbye: bool = False) -> None:
        """Take note that the link of a task is closed, perhaps by the task itself, and all it said went to `hear`."""
        if goodbye:
            self._leases.parted(task_id)
        self._inbox.put(Silent(task_id=task_id))

    def listening(self) -> None:
        """Take note that the links are being read now; whoever reads them says so a few times a second."""
        listened = self._leases.listen(self._clock.now())
        if listened.slept_s:
            self._inbox.put(Slept(seconds=listened.slept_s))
        for task_id in listened.silent:
            self._inbox.put(Hung(task_id=task_id))
        self._leases.caught_up(self._clock.now())

    def wake(self) -> None:
        """Make the loop tick now."""
        self._inbox.ring()

    def verify_task(self, task_id: str, token: str) -> bool:
        """Tell whether a token opens the control link to this task."""
        return verify_task(self.settings.secret, task_id, token)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after events were stored, from any thread; returns what ends it."""
        return self._ledger.subscribe(listener)

    # Use cases

    def drain_all(self, cause: str) -> None:
        """Make all jobs save their state and leave at a step boundary; nothing is started from now on."""
        with self._ledger.lock:
            if self._draining:
                return
            self._draining = True
            changes.drained(draft := self._ledger.draft(), cause)
            self._ledger.commit(draft)

    def kill_all(self) -> None:
        """End every process that is left."""
        with self._ledger.lock:
            for live in self.jobs().values():
                for task in live.running:
                    self._cluster.kill(task.id)

    def drained(self) -> bool:
        """Tell whether no process is left."""
        with self._ledger.lock:
            return not any(live.running for live in self.jobs().values())

    def jobs(self) -> Mapping[JobId, LiveJob]:
        """Return what is in memory of the jobs that have not ended or still hold slots."""
        return self._ledger.jobs()

    # The loop

    def start(self) -> None:
        """Take up what the store remembers and the cluster shows; call once, before the first tick."""
        with self._ledger.lock:
            self.queues.load()
            changes.clean(self.settings.home / "jobs")
            self._cluster.watch(self._inbox.put)
            self._ledger.load(load(self._store, now=self._clock.now(), timeouts=self.settings.timeouts))
            missing = reconcile(draft := self._ledger.draft(), self._cluster.observe())
            self._awaited.exits(missing, self._clock.now() + self.settings.timeouts.messages_s)
            self._ledger.commit(draft)

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

    def healthy(self) -> bool:
        """Tell whether the loop ticks."""
        return self.tick_age_s() < STALLED_S

    def wake_at(self) -> float | None:
        """Return when time alone makes the next tick do something; None if it does not."""
        with self._ledger.lock:
            instants = [at for live in self.jobs().values() if (at := next_deadline(live)) is not None]
            instants += self._awaited.instants()
            if self._planner.wake_at is not None and not self._draining:
                instants.append(self._planner.wake_at)
            return min(instants, default=None)

    def _delay(self) -> float:
        if self._leases.deaf(self._clock.now()):
            return DEAF_SLEEP_S  # nothing is judged before the links are read again
        wake_at = self.wake_at()
        return MAX_SLEEP_S if wake_at is None else max(0.0, min(MAX_SLEEP_S, wake_at - self._clock.now()))

    def tick(self) -> None:
        """Take in what has happened by now, do what is due, decide anew if anything changed that the scheduler sees."""
        with self._ledger.lock:
            now = self._clock.now()
            num_items = len(self._inbox)  # of what comes in meanwhile there may be no end
            while num_items > 0:
                if told := self._inbox.take_told(min(num_items, MAX_TOLD)):
                    self._hear(*told)
                else:
                    self._take(self._inbox.take())
                num_items -= max(1, len(told))
            if not self._leases.deaf(now):  # else what would meet the deadlines may be still unread
                self._take_due(now)
            if not self._draining:
                self._planner.plan(now)
            self._ticked_at = now

    def _take_due(self, now: float) -> None:
        for ended in self._awaited.due_words(now):
            self._exit(ended)
        for task_id in self._awaited.due_exits(now):
            draft = self._ledger.draft()
            lose_vanished(draft, job_of(task_id), task_id)
            self._ledger.commit(draft)
            self._awaited.give_up(task_id)
        for live in self.jobs().values():
            at = next_deadline(live)
            if at is not None and at <= now:
                draft = self._ledger.draft()
                pass_time(draft, live)
                self._ledger.commit(draft)

    def _take(self, item: Item) -> None:
        match item:
            case Heard():
                self._hear(item)
            case Silent():
                if (live := self._ledger.get(job_of(item.task_id))) is not None and item.task_id in live.tasks:
                    self._silent.add(item.task_id)
                if (ended := self._awaited.spoken(item.task_id)) is not None:
                    self._exit(ended)
            case Hung():
                self._fence(item)
            case Slept():
                self._postpone(item)
            case TaskExit():
                self._exit_or_wait(item)
            case _:
                assert_never(item)

    def _hear(self, *items: Heard) -> None:
        draft = self._ledger.draft()
        for number, item in enumerate(items):
            if isinstance(item.message, Hello):
                self._silent.discard(item.task_id)
            try:
                hear(draft, job_of(item.task_id), item.task_id, item.message, item.number)
            except BaseException:
                self._inbox.put_back(*items[:number], *items[number + 1 :])
                raise
        self._commit_for(draft, *items)
        for item in items:
            if item.stored is not None:
                item.stored()

    def _exit_or_wait(self, ended: TaskExit) -> None:
        """A program that ended by itself may have said why: that is awaited for a moment before it is judged."""
        live = self._ledger.get(job_of(ended.task_id))
        by_itself = not ended.error and ended.exit_code is not None and ended.exit_code >= 0
        told = live is None or live.job.ended or live.job.spec.fixed or ended.task_id in self._silent
        if by_itself and not told:
            self._awaited.words(ended, self._clock.now() + self.settings.timeouts.messages_s)
            return
        self._exit(ended)

    def _exit(self, ended: TaskExit) -> None:
        self._awaited.spoken(ended.task_id)
        draft = self._ledger.draft()
        take_exit(draft, job_of(ended.task_id), ended)
        self._commit_for(draft, ended)
        self._silent.discard(ended.task_id)
        self._leases.drop(ended.task_id)
        self._links.close(ended.task_id)

    def _fence(self, item: Hung) -> None:
        if self._leases.lives(item.task_id):
            return  # it spoke after all
        draft = self._ledger.draft()
        silent = f"gave no sign of life for {self._leases.lease_s:.1f} s"
        fence(draft, job_of(item.task_id), item.task_id, silent, blame=True)
        self._commit_for(draft, item)

    def _postpone(self, item: Slept) -> None:
        log.warning("the server stood still for %.1f s; leases and deadlines are longer by that", item.seconds)
        draft = self._ledger.draft()
        postpone(draft, item.seconds)
        self._commit_for(draft, item)
        self._awaited.postpone(item.seconds)

    def _commit_for(self, draft: Draft, *items: Item) -> None:
        """Commit a decision; if it cannot be written, what led to it waits in the inbox."""
        try:
            self._ledger.commit(draft)
        except BaseException:
            self._inbox.put_back(*items)
            raise
