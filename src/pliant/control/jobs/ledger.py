"""What control remembers, and the one way to change it: write a draft to the store, remember it, then act on it.

Theory of operation. A server may die between any two lines. What is written but not done, the next server sees in the
store and does; what is done but not written, nobody would ever know of. So `commit` writes first, in one transaction;
then memory takes over what was written; then come the actions, each of which may be done twice without harm.

    draft      job-1 leaves state pending (revision 6 → 7); task job-1.3 starts on slot 2; one event
    write      all three rows, or none: if the disk is full nothing has happened, and the loop decides again
    remember   memory now shows revision 7, and slot 2 as taken
    act        the cluster is asked to start job-1.3; if it refuses, that is an exit of job-1.3 in the inbox

Dies the server before `act`, the next one finds job-1.3 in the store and no process, and loses the task to nobody's
blame. Invariants: memory never runs ahead of the store; nothing is done that is not written; a draft that cannot be
written has changed nothing. Callers hold the lock.
"""

import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from pliant.control.jobs.capacity import CapacityRecord
from pliant.control.jobs.colours import Colours
from pliant.control.jobs.counts import ControlCounts
from pliant.control.jobs.draft import Action, Draft, DrainTask, DumpStacks, KillTask, SendMessage, StartTask
from pliant.control.jobs.inbox import ControlInbox
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import follow
from pliant.control.settings import ControlSettings
from pliant.core.errors import InternalError
from pliant.core.job import JobId, Metric, TaskId
from pliant.core.plan import NodeView
from pliant.core.ports import Clock, Cluster, Links, Observation, Store, TaskExit
from pliant.core.workload import Workload

log = logging.getLogger(__name__)


class Ledger:
    """Memory in front of the store, and the hands of control."""

    def __init__(
        self,
        *,
        store: Store,
        cluster: Cluster,
        links: Links,
        clock: Clock,
        settings: ControlSettings,
        kinds: Kinds,
        inbox: ControlInbox,
    ) -> None:
        self.kinds = kinds
        self.counts = ControlCounts(clock.now)
        self.colours = Colours(store)
        self.capacity = CapacityRecord(store)
        self.lock = threading.RLock()
        self.dirty = True
        """Something changed that the scheduler sees."""
        self.draining = False
        """The server goes down: no job is taken, and no task started, any more."""
        self.labelled: Callable[[tuple[NodeView, ...]], tuple[NodeView, ...]] = lambda nodes: nodes
        """Returns hosts with the labels that they carry; who knows what people gave them lays that over."""
        self.nodes: Callable[[], tuple[NodeView, ...]] = lambda: self.observe().nodes
        """Returns the hosts, as decisions see them; who knows what is out of use leaves that out."""
        self._store = store
        self._cluster = cluster
        self._links = links
        self._clock = clock
        self._settings = settings
        self._inbox = inbox
        self._jobs: dict[JobId, LiveJob] = {}
        self._views: dict[JobId, tuple[LiveJob, Workload]] = {}
        """What the scheduler sees of those of them that it was shown, as they are."""
        self._changed: dict[JobId, None] = {}
        """Those that have changed since `take_changed`, in this order."""
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._metric_listeners: tuple[Callable[[Sequence[Metric]], None], ...] = ()

    def observe(self) -> Observation:
        """Return hosts and processes as they are now. Decisions and pages ask here, so that all see the same labels."""
        observed = self._cluster.observe()
        nodes = self.labelled(observed.nodes)
        return observed if nodes is observed.nodes else replace(observed, nodes=nodes)

    def jobs(self) -> Mapping[JobId, LiveJob]:
        """Return the jobs that have not ended or still hold slots."""
        with self.lock:
            return dict(self._jobs)

    def get(self, job_id: JobId) -> LiveJob | None:
        """Return one of them."""
        return self._jobs.get(job_id)

    def take_changed(self) -> Collection[JobId]:
        """Return which jobs have changed, come or gone since the call before, in this order."""
        changed, self._changed = self._changed, {}
        return changed

    def view(self, live: LiveJob) -> Workload:
        """Return what the scheduler sees of a job; of one in memory, made once as long as it is as it is."""
        kept = self._views.get(live.id)
        if kept is not None and kept[0] is live:
            return kept[1]
        view = self.kinds.of(live.job).view(live)
        if self._jobs.get(live.id) is live:
            self._views[live.id] = live, view
        return view

    def doubt_s(self, job_id: JobId, task_id: TaskId) -> float | None:
        """Return for how long a silent task may be well, as far as is known now, seconds; None: it is not.

        It may be if nobody hears its training, or its machine only just not.
        """
        live = self.get(job_id)
        if live is None or task_id not in live.tasks:
            return None
        if (unsteady_s := self._cluster.unsteady_nodes().get(live.tasks[task_id].node_id)) is not None:
            return unsteady_s
        return math.inf if live.is_out_of_reach(self._cluster.silent_nodes()) else None

    def load(self, jobs: Mapping[JobId, LiveJob]) -> None:
        """Begin with what the store remembers."""
        self._jobs = dict(jobs)
        self._changed = dict.fromkeys(jobs)
        self._cluster.retain(self._jobs)

    def draft(self) -> Draft:
        """Begin a decision."""
        return Draft(
            self._jobs,
            now=self._clock.now(),
            settings=self._settings,
            next_id=self._store.next_id,
            free_address=self._cluster.free_address,
            nodes=self.nodes,
            unheard=lambda: {*self._cluster.silent_nodes(), *self._cluster.unsteady_nodes()},
        )

    def commit(self, draft: Draft) -> None:
        """Write a decision with what it means for jobs that wait; remember it, act on it, call listeners of events."""
        follow(draft)
        writes = draft.writes()
        try:
            events = self._store.write(writes) if writes is not None else ()
        except BaseException:
            self.dirty = True
            raise
        if writes is not None:
            self.counts.take(writes)
        results = draft.results()
        for job_id, live in results.items():
            self._remember(job_id, live)
        if None in results.values():
            self._cluster.retain(self._jobs)  # whoever is started next is among them
        for action in draft.actions:
            self._perform(action)
        if self.dirty:
            self._inbox.wake()
        if events:
            for listener in self._listeners:
                listener()
        if writes is not None:
            self._tell_of_metrics(writes.metrics)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after events were stored, from any thread; returns what ends it."""
        with self.lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self.lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def subscribe_metrics(self, hear: Callable[[Sequence[Metric]], None]) -> None:
        """Call `hear` with what tasks have reported, after it was stored, from any thread and for good."""
        with self.lock:
            self._metric_listeners = (*self._metric_listeners, hear)

    def _tell_of_metrics(self, metrics: Sequence[Metric]) -> None:
        for hear in self._metric_listeners if metrics else ():
            hear(metrics)

    def _remember(self, job_id: JobId, live: LiveJob | None) -> None:
        self._changed.setdefault(job_id)
        before = self._seen_by_scheduler(self._jobs.get(job_id))
        if live is None:
            self._jobs.pop(job_id, None)
            self._views.pop(job_id, None)
        else:
            self._jobs[job_id] = live
        if self._seen_by_scheduler(live) != before:
            self.dirty = True

    def _seen_by_scheduler(self, live: LiveJob | None) -> object:
        if live is None:
            return None
        return live.competes, live.wants_slots, live.unprepared, live.proven, self.view(live)

    def _perform(self, action: Action) -> None:
        try:
            match action:
                case StartTask():
                    self._cluster.start(action.order)
                case SendMessage():
                    self._links.send(action.task_id, action.message)
                case DrainTask():
                    self._cluster.drain(action.task_id)
                case KillTask():
                    self._cluster.kill(action.task_id)
                case DumpStacks():
                    self._cluster.show_stacks(action.task_id)
                case _:
                    assert_never(action)
        except (ValueError, OSError, InternalError) as error:
            if isinstance(action, StartTask):
                self._inbox.put(TaskExit(task_id=action.order.task_id, exit_code=None, error=str(error)))
            else:
                log.warning("%s for %s failed: %s", type(action).__name__, action.task_id, error)
