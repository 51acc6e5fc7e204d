"""Control: the one place that decides and acts. One lock; one thread that ticks; use cases callable from any thread.

observe → decide → write → act → show. Whatever a decision changes is written in one transaction before anything is
done; a decision that could not be written has changed nothing. What comes from tasks and from the cluster waits in an
inbox, so that those who bring it never wait for a decision. It knows no socket, no process and no SQL.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import assert_never

from pliant.control import workloads
from pliant.control.deadlines import next_deadline, pass_time
from pliant.control.draft import Draft, KillTask
from pliant.control.exits import lose_vanished, take_exit
from pliant.control.inbox import Heard, Inbox, Item, Silent
from pliant.control.ledger import Ledger
from pliant.control.live import LiveJob, job_of
from pliant.control.messages import hear
from pliant.control.orders import verify_task
from pliant.control.queries import Queries
from pliant.control.restore import load, reconcile
from pliant.control.scheduling import apply_plan, snapshot
from pliant.control.settings import ControlSettings
from pliant.control.transitions import leave
from pliant.core.errors import NotFound, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, JobSpec, TaskId
from pliant.core.link import FromTask, Hello
from pliant.core.plan import NodeView
from pliant.core.ports import Clock, Cluster, Links, Store, TaskExit
from pliant.policy.plan import plan
from pliant.wire.api import JobPatch

log = logging.getLogger(__name__)

MAX_SLEEP_S = 1.0
STALLED_S = 10.0


class Control:
    """Decides for all jobs and carries the decisions out."""

    def __init__(
        self, *, store: Store, cluster: Cluster, links: Links, clock: Clock, settings: ControlSettings
    ) -> None:
        self.settings = settings
        self._store = store
        self._cluster = cluster
        self._links = links
        self._inbox = Inbox()
        self._ledger = Ledger(
            store=store, cluster=cluster, links=links, clock=clock, settings=settings, inbox=self._inbox
        )
        self._clock = clock
        self._nodes: tuple[NodeView, ...] = ()
        self._draining = False
        self._plan_at: float | None = None
        self._ticked_at = clock.now()
        self._silent: set[TaskId] = set()
        self._late: dict[TaskId, tuple[TaskExit, float]] = {}
        """Exits whose task may have more to say, and until when it is waited for."""
        self._missing: dict[TaskId, float] = {}
        """Tasks that nobody saw when the server came back, and until when the news of their exit is waited for."""
        self._closed = threading.Event()
        self.queries = Queries(store=store, cluster=cluster, clock=clock, settings=settings, jobs=self.jobs)

    # What comes in, from any thread

    def hear(self, task_id: TaskId, message: FromTask) -> None:
        """Take in a message of a task."""
        self._inbox.put(Heard(task_id=task_id, message=message))

    def silent(self, task_id: TaskId) -> None:
        """Take note that the link of a task is closed and all that it said was handed to `hear`."""
        self._inbox.put(Silent(task_id=task_id))

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

    def submit(self, spec: JobSpec, archive: Path, owner: str) -> Job:
        """Check a submission and queue it.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: its code is over the limit.
            Unavailable: the server is going down, or its disk cannot take the code.
        """
        with workloads.unpacked(spec, archive, self.settings.home / "jobs") as code, self._ledger.lock:
            if self._draining:
                raise Unavailable("the server is shutting down; submit again when it is back")
            job_id = JobId(f"job-{self._store.next_id('job')}")
            folders = self.settings.folders(job_id)
            draft = self._ledger.draft()
            workloads.submitted(draft, job_id, spec, owner)
            try:
                workloads.keep(code, folders)
                self._ledger.commit(draft)
            except BaseException as error:
                shutil.rmtree(folders.root, ignore_errors=True)
                if isinstance(error, OSError):
                    raise Unavailable(f"the code cannot be kept in {folders.root}: {error.strerror}") from error
                raise
            return self.queries.job(job_id)

    def change(self, job_id: str, patch: JobPatch, revision: int | None = None) -> Job:
        """Change priority, minimum or maximum of a job that has not ended.

        Raises:
            NotFound, InvalidInput, Conflict: see `workloads.changed`.
        """
        with self._ledger.lock:
            live = self._unended(job_id)
            draft = self._ledger.draft()
            workloads.changed(draft, live, patch, revision)
            self._ledger.commit(draft)
            return self.queries.job(job_id)

    def stop(self, job_id: str, who: str = "a person") -> Job:
        """End a job at its next step boundary, at once if it holds no slots.

        Raises:
            NotFound: nothing of that name.
            Conflict: it has ended.
        """
        with self._ledger.lock:
            live = self._unended(job_id)
            draft = self._ledger.draft()
            workloads.stopped(draft, live, who)
            self._ledger.commit(draft)
            return self.queries.job(job_id)

    def _unended(self, job_id: str) -> LiveJob:
        workloads.refuse_ended(self.queries.job(job_id))
        live = self._ledger.get(JobId(job_id))
        if live is None:
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return live

    def drain_all(self, cause: str) -> None:
        """Make all jobs save their state and leave at a step boundary; nothing is started from now on."""
        with self._ledger.lock:
            if self._draining:
                return
            self._draining = True
            draft = self._ledger.draft()
            draft.say(EventKind.SERVER_STOPPING, f"the server stops ({cause}); jobs save their state and are paused")
            for live in draft.jobs():
                if live.competes and live.staying:
                    leave(draft, live, tuple(task.id for task in live.staying), cause)
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
            self._clean()
            self._cluster.watch(self._inbox.put)
            self._ledger.load(load(self._store, now=self._clock.now(), silent_s=self.settings.timeouts.silent_s))
            observed = self._cluster.observe()
            there = {task.task_id for task in observed.tasks}
            known = {task.id for live in self.jobs().values() for task in live.running}
            self._missing = dict.fromkeys(known - there, self._clock.now() + self.settings.timeouts.messages_s)
            draft = self._ledger.draft()
            num_jobs = sum(live.competes for live in self.jobs().values())
            draft.say(
                EventKind.SERVER_STARTED, f"the server is up; {num_jobs} job{'s' * (num_jobs != 1)} to go on with"
            )
            for task_id in sorted(there - known):
                draft.act(KillTask(task_id=task_id))
            reconcile(draft)
            self._ledger.commit(draft)

    def _clean(self) -> None:
        for folder in (self.settings.home / "jobs").glob(f"{workloads.NEW_PREFIX}*"):
            shutil.rmtree(folder, ignore_errors=True)

    def run(self) -> None:
        """Tick until `close`, whenever something happened or is due, once a second at least."""
        while not self._closed.is_set():
            try:
                self.tick()
                self._inbox.sleep(self._delay())
            except Exception:
                log.exception("a decision failed; it is tried again")
                self._closed.wait(MAX_SLEEP_S)

    def close(self) -> None:
        """End `run`."""
        self._closed.set()
        self.wake()

    def healthy(self) -> bool:
        """Tell whether the loop ticks."""
        return self._clock.now() - self._ticked_at < STALLED_S

    def wake_at(self) -> float | None:
        """Return when time alone makes the next tick do something; None if it does not."""
        with self._ledger.lock:
            instants = [at for live in self.jobs().values() if (at := next_deadline(live)) is not None]
            instants += [due for _, due in self._late.values()]
            instants += self._missing.values()
            if self._plan_at is not None and not self._draining:
                instants.append(self._plan_at)
            return min(instants, default=None)

    def _delay(self) -> float:
        wake_at = self.wake_at()
        return MAX_SLEEP_S if wake_at is None else max(0.0, min(MAX_SLEEP_S, wake_at - self._clock.now()))

    def tick(self) -> None:
        """Take in what happened, do what is due, decide anew if anything changed that the scheduler sees."""
        with self._ledger.lock:
            now = self._clock.now()
            self._take_inbox()
            self._take_late(now)
            for live in self.jobs().values():
                at = next_deadline(live)
                if at is not None and at <= now:
                    draft = self._ledger.draft()
                    pass_time(draft, live)
                    self._ledger.commit(draft)
            self._plan(now)
            self._ticked_at = now

    def _take_late(self, now: float) -> None:
        for ended, due in list(self._late.values()):
            if due <= now:
                self._late.pop(ended.task_id)
                self._exit(ended)
        for task_id, due in list(self._missing.items()):
            if due <= now:
                draft = self._ledger.draft()
                lose_vanished(draft, job_of(task_id), task_id)
                self._ledger.commit(draft)
                self._missing.pop(task_id)

    def _take_inbox(self) -> None:
        while (item := self._inbox.take()) is not None:
            self._take(item)

    def _take(self, item: Item) -> None:
        match item:
            case Heard():
                self._hear(item)
            case Silent():
                if (live := self._ledger.get(job_of(item.task_id))) is not None and item.task_id in live.tasks:
                    self._silent.add(item.task_id)
                if item.task_id in self._late:
                    self._exit(self._late.pop(item.task_id)[0])
            case TaskExit():
                self._exit_or_wait(item)
            case _:
                assert_never(item)

    def _hear(self, item: Heard) -> None:
        if isinstance(item.message, Hello):
            self._silent.discard(item.task_id)
        draft = self._ledger.draft()
        hear(draft, job_of(item.task_id), item.task_id, item.message)
        self._commit_for(item, draft)

    def _exit_or_wait(self, ended: TaskExit) -> None:
        """A program that ended by itself may have said why: that is awaited for a moment before it is judged."""
        live = self._ledger.get(job_of(ended.task_id))
        by_itself = not ended.error and ended.exit_code is not None and ended.exit_code >= 0
        told = live is None or live.job.ended or ended.task_id in self._silent
        if by_itself and not told:
            self._late[ended.task_id] = (ended, self._clock.now() + self.settings.timeouts.messages_s)
            return
        self._exit(ended)

    def _exit(self, ended: TaskExit) -> None:
        draft = self._ledger.draft()
        take_exit(draft, job_of(ended.task_id), ended)
        self._commit_for(ended, draft)
        self._silent.discard(ended.task_id)
        self._links.close(ended.task_id)

    def _plan(self, now: float) -> None:
        if self._draining:
            return
        observed = self._cluster.observe()
        due = self._plan_at is not None and self._plan_at <= now
        if not (self._ledger.dirty or due or observed.nodes != self._nodes):
            return
        decision = plan(snapshot(tuple(self.jobs().values()), observed), self.settings.policy, now)
        draft = self._ledger.draft()
        apply_plan(draft, decision)
        self._ledger.dirty = False  # if the plan changes something another follows, until they come to rest
        self._ledger.commit(draft)
        instants = [decision.wake_at, *(live.held_until for live in self.jobs().values())]
        self._plan_at = min((at for at in instants if at is not None and at > now), default=None)
        self._nodes = observed.nodes

    def _commit_for(self, item: Item, draft: Draft) -> None:
        """Commit a decision; if it cannot be written, what led to it waits in the inbox."""
        try:
            self._ledger.commit(draft)
        except BaseException:
            self._inbox.put_back(item)
            raise
