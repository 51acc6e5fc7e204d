"""The cluster of one machine: an agent in a thread of the server's, and a zygote that is the parent of every task.

Callers only note what they want, under one lock; the thread (`tick`) does all that touches the zygote, the selector and
the listener. Exits come from the zygote; if it is gone or was an earlier server's, from the task's pidfd and record.
Knows no jobs and no gradients.
"""

import logging
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter

from pliant.cluster import process
from pliant.cluster.agent.devices import Devices, discover, single_threaded
from pliant.cluster.agent.exit_facts import collect
from pliant.cluster.agent.free_ports import FreePorts
from pliant.cluster.agent.memory import SharedMemory
from pliant.cluster.agent.memory_use import WEIGH_S, Scales
from pliant.cluster.agent.office import Office
from pliant.cluster.agent.orders import check, launch_of
from pliant.cluster.agent.outbox import Outbox
from pliant.cluster.settings import LocalSettings, Readiness
from pliant.cluster.zygote import records
from pliant.cluster.zygote.handle import ZygoteProcess
from pliant.cluster.zygote.messages import Ended, Launch, Message, Started
from pliant.cluster.zygote.records import Record
from pliant.cluster.zygote.run_as import refusal
from pliant.cluster.zygote.zygote import ZygoteSettings
from pliant.core.errors import Unavailable
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.plan import NodeView
from pliant.core.ports import Address, Clock, LiveTask, Observation, StartOrder, TaskExit

_log = logging.getLogger(__name__)

_KEEP_RECORDS_S = 86_400.0
"""Records of reported exits are kept this long, so that a task id of a server before is known to have lived."""
_LAST_WORDS_S = 20.0
"""A process is gone this long before its exit code counts as unknown, though whoever has to write it down lives."""
_IDLE_S = 1.0
_SETTLING_S = 0.005
_PAUSE_AFTER_ERROR_S = 0.1
_FLUSH_S = 2.0
_CLOSE_S = 8.0
_NEVER_STARTED = "the server ended before the task was started; a new task takes its place"


@dataclass(slots=True, kw_only=True)
class _Held:
    """A task that holds slots. Guarded by the agent's lock."""

    record: Record
    launch: Launch | None = None
    """Until the zygote has it."""
    pidfd: int | None = None
    cause: str = ""
    """Why this agent has ended it."""
    signals: list[int] = field(default_factory=list)
    """Sent as soon as the process exists."""
    gone_at: float | None = None
    """The process was seen to be gone (monotonic time); its exit code is still to be learnt."""

    def live(self, node_id: NodeId) -> LiveTask:
        record = self.record
        return LiveTask(task_id=record.task_id, node_id=node_id, slots=record.slots, pid=record.pid)


class LocalCluster:
    """This machine's slots; implements `pliant.core.ports.Cluster`."""

    def __init__(self, settings: LocalSettings, *, clock: Clock, base_env: Mapping[str, str]) -> None:
        """Adopt what an earlier agent left running, start a zygote and the agent's thread.

        Args:
            settings: see there.
            clock: dates the exits in the records.
            base_env: what every task's environment starts from; names that begin with PLIANT_ are left out.

        Raises:
            ValueError: fewer than one slot was declared.
        """
        self._settings = settings
        self._clock = clock
        self._base_env = {name: value for name, value in base_env.items() if not name.startswith("PLIANT_")}
        self._devices = discover(settings.num_slots, base_env)
        self._node = _node_view(settings, self._devices)
        self._state_dir = settings.state_dir.absolute()
        self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._tasks: dict[TaskId, _Held] = {}
        self._lived: set[TaskId] = set()
        self._outbox = Outbox(self._state_dir)
        self._ports = FreePorts(settings.node_id, settings.host)
        self._closing = False
        self._scales = Scales()
        self._selector = selectors.DefaultSelector()
        self._woken_end, self._wake_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._woken_end, selectors.EVENT_READ)
        self._office = Office(self._state_dir, settings.node_id)
        self._memory = SharedMemory(settings.memory_root, self._state_dir)
        self._adopt()
        self._zygote: ZygoteProcess | None = None
        self._bring_up_zygote()
        self._thread = threading.Thread(target=self._loop, name="pliant-agent", daemon=True)
        self._thread.start()

    # the port
    refuses_user = staticmethod(refusal)

    def observe(self) -> Observation:
        with self._lock:
            here = self._node
            return Observation(nodes=(here,), tasks=tuple(held.live(here.id) for held in self._tasks.values()))

    def free_address(self, node_id: NodeId) -> Address:
        return self._ports.address(node_id)

    def start(self, order: StartOrder) -> None:
        with self._lock:
            if self._closing:
                raise Unavailable(f"task {order.task_id} cannot be started: this cluster is closed")
            if order.task_id in self._lived:
                return
            holders = {slot: held.record.task_id for held in self._tasks.values() for slot in held.record.slots}
            check(order, self._settings, self._devices.num_slots, holders)
            launch = launch_of(order, self._settings.host, self._devices, self._base_env, self._memory.folder)
            self._lived.add(order.task_id)
            self._tasks[order.task_id] = _Held(record=_record_of(order), launch=launch)
            self._wake()

    def drain(self, task_id: TaskId) -> None:
        self._signal(task_id, signal.SIGTERM)

    def kill(self, task_id: TaskId) -> None:
        self._signal(task_id, signal.SIGKILL)  # whoever buries it ends the rest of its session

    def watch(self, listener: Callable[[TaskExit], None]) -> None:
        with self._lock:
            self._outbox.listener = listener
            self._wake()

    def retain(self, job_ids: Collection[JobId]) -> None:
        self._memory.retain(job_ids)

    def close(self) -> None:
        with self._lock:
            self._wake()
            self._closing = True
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)

    # beyond the port

    def readiness(self) -> Readiness:
        """Return how ready the zygote is."""
        return Readiness(pid=None, warm=False) if (zygote := self._zygote) is None else zygote.readiness()

    def tick(self, timeout_s: float) -> None:
        """Wait for something to happen, no longer than this, and deal with it. Only the agent's thread calls it."""
        for key, _ in self._selector.select(timeout_s):
            if key.fd == self._woken_end:
                with suppress(BlockingIOError):
                    os.read(self._woken_end, 4096)
            elif key.data is None:
                self._hear_zygote()
            else:
                self._see_gone(key.data)
        if not self._office.held():
            time.sleep(_PAUSE_AFTER_ERROR_S)
            return
        self._memory.tidy()
        self._send_orders()
        self._settle_gone()
        self._weigh()
        self._outbox.tell()

    # what callers do, under the lock

    def _signal(self, task_id: TaskId, number: int) -> None:
        with self._lock:
            if (held := self._tasks.get(task_id)) is None or not self._office.held():
                return
            if held.pidfd is None:
                held.signals.append(number)
            else:
                process.send(held.pidfd, number)

    def _wake(self) -> None:
        """Only under the lock: once closing, the pipe may be gone."""
        if not self._closing:
            with suppress(BlockingIOError):  # full: it will wake
                os.write(self._wake_end, b"\n")

    # what the thread does

    def _loop(self) -> None:
        while not self._closing:
            try:
                self.tick(self._patience())
            except Exception:  # noqa: BLE001 - the top of the loop
                _log.exception("the agent of node %s goes on after an error", self._settings.node_id)
                time.sleep(_PAUSE_AFTER_ERROR_S)
        self._let_go()

    def _patience(self) -> float:
        with self._lock:
            if any(held.gone_at is not None for held in self._tasks.values()):
                return _SETTLING_S
            return WEIGH_S if any(held.record.memory_bytes for held in self._tasks.values()) else _IDLE_S

    def _send_orders(self) -> None:
        with self._lock:
            waiting = [(held, held.launch) for held in self._tasks.values() if held.launch is not None]
        for held, launch in waiting:
            held.launch = None
            try:
                if not records.begin(self._state_dir, held.record, term=self._office.term):
                    return
                zygote = self._zygote or self._bring_up_zygote()
            except OSError as error:
                self._finish(held, None, f"this machine cannot start a process: {error}")
            else:
                self._memory.make(launch.env.get("PLIANT_MEMORY_DIR"))
                zygote.order(launch)
        if self._zygote is not None:
            more = selectors.EVENT_WRITE if self._zygote.flush() else 0
            self._selector.modify(self._zygote.channel, selectors.EVENT_READ | more)

    def _bring_up_zygote(self) -> ZygoteProcess:
        settings = ZygoteSettings(
            state_dir=self._state_dir,
            term=self._office.term,
            entry=self._settings.entry,
            preload=self._settings.preload,
        )
        self._zygote = ZygoteProcess(settings, {**self._base_env, **single_threaded()})
        self._selector.register(self._zygote.channel, selectors.EVENT_READ)
        return self._zygote

    def _hear_zygote(self) -> None:
        if (zygote := self._zygote) is None:
            return
        if (messages := zygote.hear()) is None:
            self._lose_zygote(zygote)
            return
        for message in messages:
            self._take(message, zygote)

    def _take(self, message: Message, zygote: ZygoteProcess) -> None:
        held = self._tasks.get(message.task_id) if isinstance(message, Started | Ended) else None
        if held is None:
            return
        if isinstance(message, Started):
            started = replace(held.record, pid=message.pid, stamp=message.stamp)
            self._follow(held, replace(started, zygote_pid=zygote.pid, zygote_stamp=zygote.stamp))
        elif isinstance(message, Ended):
            self._finish(held, message.exit_code, message.error)

    def _lose_zygote(self, zygote: ZygoteProcess) -> None:
        """Its children live on and are watched by their pidfds; what it had not started yet will never start."""
        self._selector.unregister(zygote.channel)
        zygote.end(_CLOSE_S, force=True)
        self._zygote = None
        _log.warning(
            "the zygote %s has ended; the next start brings up a new one (log: %s)", zygote.pid, zygote.log_path
        )
        with self._lock:
            unknown = [held for held in self._tasks.values() if held.launch is None and held.record.pid is None]
        for held in unknown:
            self._resolve(held, f"the process that starts tasks has ended; its log is {zygote.log_path}")

    def _adopt(self) -> None:
        """Take up what an earlier agent left: living tasks, and exits that nobody was told of."""
        records.forget(self._state_dir, reported_before=self._clock.now() - _KEEP_RECORDS_S)
        for record in records.read_all(self._state_dir):
            self._lived.add(record.task_id)
            if not record.reported:
                held = self._tasks[record.task_id] = _Held(record=record)
                self._resolve(held, _NEVER_STARTED)

    def _resolve(self, held: _Held, never_started: str) -> None:
        """Learn from its record what became of a task that nobody tells about."""
        record = records.read(self._state_dir, held.record.task_id) or held.record
        if record.ended_at is not None:
            self._finish(held, record.exit_code, record.error)
        elif record.pid is None:
            self._finish(held, None, never_started)
        else:
            self._follow(held, record)

    def _follow(self, held: _Held, record: Record) -> None:
        """Watch a task's process from now on."""
        pidfd = process.open_process(record.pid, record.stamp) if record.pid is not None else None
        with self._lock:
            held.record = record
            if pidfd is None:
                held.gone_at = time.monotonic()
                return
            held.pidfd = pidfd
            self._selector.register(pidfd, selectors.EVENT_READ, record.task_id)
            for number in held.signals:
                process.send(pidfd, number)
            held.signals.clear()

    def _see_gone(self, task_id: TaskId) -> None:
        with self._lock:
            held = self._tasks.get(task_id)
            if held is not None:  # else the zygote told of its exit in the same moment, and was heard first
                held.gone_at = time.monotonic()
                self._unfollow(held)

    def _settle_gone(self) -> None:
        """Learn the exit codes of processes that are gone, from whoever wrote them down."""
        with self._lock:
            gone = [(held.gone_at, held) for held in self._tasks.values() if held.gone_at is not None]
        for gone_at, held in sorted(gone, key=itemgetter(0)):  # who died of another's death is not told of before it
            record = records.read(self._state_dir, held.record.task_id)
            if record is not None and record.ended_at is not None:
                self._finish(held, record.exit_code, record.error)
            elif not _scribe_lives(held.record) or time.monotonic() > gone_at + _LAST_WORDS_S:
                if held.record.pid is not None:
                    process.sweep_session(held.record.pid)
                self._finish(held, None, "")

    def _weigh(self) -> None:
        """End tasks that use more memory than they may."""
        with self._lock:
            weighed = [held.record for held in self._tasks.values() if held.pidfd is not None and not held.cause]
        for task_id, cause in self._scales.too_heavy(weighed):
            self._tasks[task_id].cause = cause
            self.kill(task_id)

    def _finish(self, held: _Held, exit_code: int | None, error: str) -> None:
        """Free the slots of a task that has ended, and remember to report it."""
        task_id = held.record.task_id
        facts = collect(held.record, out_of_memory=bool(held.cause))
        ended = TaskExit(task_id=task_id, exit_code=exit_code, error=error, cause=held.cause, facts=facts)
        record = replace(held.record, ended_at=self._clock.now(), exit_code=exit_code, error=error)
        with self._lock:
            self._unfollow(held)
            del self._tasks[task_id]
            self._outbox.put(ended, record)

    def _unfollow(self, held: _Held) -> None:
        if held.pidfd is not None:
            self._selector.unregister(held.pidfd)
            os.close(held.pidfd)
            held.pidfd = None

    def _let_go(self) -> None:
        """Hand over the last orders and close everything; tasks go on, and a zygote that has children."""
        if self._office.held():
            self._send_orders()
        zygote = self._zygote
        if zygote is not None:
            deadline = time.monotonic() + _FLUSH_S
            while zygote.flush() and time.monotonic() < deadline:
                time.sleep(_SETTLING_S)
            idle = all(held.record.zygote_pid not in (None, zygote.pid) for held in self._tasks.values())
            zygote.end(_FLUSH_S if idle else 0.0, force=idle and zygote.warm is None)
        with self._lock:
            for held in self._tasks.values():
                self._unfollow(held)
            self._tasks.clear()
            self._memory.close()
            self._selector.close()
            os.close(self._wake_end)
            os.close(self._woken_end)


def _node_view(settings: LocalSettings, devices: Devices) -> NodeView:
    return NodeView(
        id=settings.node_id,
        slots=tuple(range(devices.num_slots)),
        labels=settings.labels,
        num_gpus=len(devices.gpus),
        num_cpus=devices.num_cpus,
    )


def _scribe_lives(record: Record) -> bool:
    """Tell whether the zygote that writes this task's end runs."""
    return record.zygote_pid is not None and process.stamp(record.zygote_pid) == record.zygote_stamp


def _record_of(order: StartOrder) -> Record:
    return Record(
        task_id=order.task_id,
        slots=order.slots,
        memory_bytes=order.memory_bytes,
        log_dir=order.log_dir,
        result_dir=order.result_dir,
        model=order.model,
    )
