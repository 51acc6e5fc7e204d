"""The tasks of one node: they are started through its zygote, watched, ended, and recorded.

Exits come from the zygote; if it is gone or was an earlier agent's, from the task's pidfd and record. Knows no channel:
what is to be sent is handed to a function, and who calls `advance` often enough makes it all happen.
"""

import logging
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Final

from pliant.cluster import process
from pliant.cluster.agent import remains
from pliant.cluster.agent.devices import Devices, share_of_memory
from pliant.cluster.agent.exit_facts import lacks_pliant
from pliant.cluster.agent.exit_reports import ExitReports
from pliant.cluster.agent.file_mover import FileMover
from pliant.cluster.agent.limits import NodeLimits
from pliant.cluster.agent.messages import (
    EndSidecar,
    FromAgent,
    Noted,
    Observed,
    Spent,
    StartSidecar,
)
from pliant.cluster.agent.node_zygote import NodeZygote
from pliant.cluster.agent.orders import (
    MisfitError,
    check,
    check_environment,
    disk_folders,
    held_slots,
    job_of,
    program_of,
)
from pliant.cluster.agent.remains import Remains
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.agent.shared_memory import owner_of
from pliant.cluster.agent.sidecars import Sidecars
from pliant.cluster.agent.space import Spaces, TaskSpace
from pliant.cluster.agent.task_process import TaskProcess
from pliant.cluster.json_lines import encode
from pliant.cluster.zygote import records
from pliant.cluster.zygote.deadline import LEFT_ALONE
from pliant.cluster.zygote.handle import ZygoteProcess
from pliant.cluster.zygote.messages import Ended, Launch, Started, ZygoteMessage
from pliant.cluster.zygote.records import Record
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.ports import Clock, ExitFacts, LiveTask, StartOrder, TaskExit, TaskNote
from pliant.files.folder import write_whole

_log = logging.getLogger(__name__)

_KEEP_RECORDS_S: Final = 86_400.0
"""Records of acknowledged exits are kept this long, so that a task id of a server before is known to have lived."""
_EXIT_CODE_TIMEOUT_S: Final = 20.0
"""A process is gone this long before its exit code counts as unknown, though the zygote that writes it down lives."""
_POLL_S: Final = 0.005
_SPENT_IDS_PER_MESSAGE: Final = 1000
_NOT_BEGUN: Final = "was ended before its files were on this machine"
_NOT_BROUGHT: Final = "its files could not be brought to this machine: {}"
_UNSENT: Final = "has written what the server does not take; it is on its machine as long as it is not needed there: {}"
_NEVER_STARTED: Final = "the server ended before the task was started; a new task takes its place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Whom the tasks of a node have to do with."""

    send: Callable[[FromAgent], None]
    """Called with what the adapter shall learn; it only notes the message."""
    files: FileMover | None = None
    """Brings and sends their files; None: this machine sees the server's."""


class Tasks:
    """All tasks of a node that hold slots, and the exits that nobody has acknowledged."""

    def __init__(
        self,
        settings: AgentSettings,
        devices: Devices,
        selector: selectors.BaseSelector,
        *,
        term: int,
        clock: Clock,
        base_env: Mapping[str, str],
        outside: Outside,
    ) -> None:
        """Adopt what an earlier agent left running, start a zygote, and send how things stand.

        Args:
            settings: of the agent.
            devices: what its slots are.
            selector: gets the files to wait for; their `data` is to be called when they are ready.
            term: the agent's.
            clock: dates the exits in the records.
            base_env: what every task's environment starts from.
            outside: see there.
        """
        self._settings, self._devices = settings, devices
        self._selector, self._base_env = selector, base_env
        self._term, self._clock = term, clock
        self._send = send = outside.send
        self._files = outside.files
        if self._files is not None:
            selector.register(self._files, selectors.EVENT_READ, self._take_files)
        self._state_dir = settings.state_dir.absolute()
        self._tasks: dict[TaskId, TaskProcess] = {}
        self._spent: set[TaskId] = set()
        self.exits = ExitReports(self._state_dir, send)
        self._spaces = Spaces(self._state_dir, settings.memory_root)
        self._remains = Remains(owner_of(self._state_dir), base_env, settings.max_log_bytes)
        selector.register(self._remains, selectors.EVENT_READ, self._take_facts)
        self._limits = NodeLimits(settings, devices, base_env, tell=lambda task_id, words: send(_noted(task_id, words)))
        selector.register(self._limits, selectors.EVENT_READ, partial(self._limits.enforce, self._tasks))
        self._sidecars = Sidecars(settings, devices, base_env, send)
        self._adopt()
        self._zygote = NodeZygote(settings, selector, term=term, base_env=base_env, send=send)
        self._zygote.take, self._zygote.lost = self._take, self._note_lost
        self._zygote.get()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, order: StartOrder) -> None:
        """Note a task that is to be started; ignore one whose id lives or lived."""
        if order.task_id in self._spent:
            return
        self._spent.add(order.task_id)
        held = held_slots(task.record for task in self._tasks.values())
        try:
            check(order, self._settings.node_id, self._devices.num_slots, held)
            check_environment(order, self._settings)
        except ValueError as error:
            self.exits.report(_refusal(order, error), None)
            return
        space = self._spaces.of(job_of(order))
        program = program_of(order, self._settings, self._devices, self._base_env, space)
        record = _record_of(order, self._devices, space)
        task = self._tasks[order.task_id] = TaskProcess(record=record, program=program, space=space)
        if self._files is not None:
            task.is_coming = True
            self._files.bring(order)

    def send_signal(self, task_id: TaskId, number: int) -> None:
        """Send a signal to a task's process, now or as soon as there is one; ignore a task that does not live."""
        if (task := self._tasks.get(task_id)) is None:
            return
        if task.is_coming:
            self._end(task, None, "", _NOT_BEGUN)
        else:
            task.send_signal(number)

    def show_stacks(self, task_id: TaskId) -> None:
        """Make a task write where its threads are to its stderr; ignore one that does not live or cannot."""
        if (task := self._tasks.get(task_id)) is not None:
            task.show_stacks()

    def obey_about_sidecar(self, message: StartSidecar | EndSidecar) -> None:
        """Start a sidecar beside a task, or say so if that does not run here; or end one."""
        self._sidecars.obey(message, self._tasks, self._zygote.get)
        self._zygote.flush()

    def retain(self, job_ids: tuple[JobId, ...]) -> None:
        """Remove what tasks of all other jobs have left in their spaces; an old order may lack some that live."""
        living = (JobId(task.record.job or task.record.task_id) for task in self._tasks.values())
        retained = (*job_ids, *living)
        self._spaces.retain(retained)
        if self._files is not None:
            self._files.retain(retained)

    def give_account(self) -> None:
        """Send how things stand, to an adapter that knows nothing or something old."""
        for message in _spent(self._spent):
            self._send(message)
        for task in self._tasks.values():
            self._send(_observed(task.record, self._settings.node_id))
        self.exits.resend()
        self._zygote.tell()

    def end_all(self, cause: str) -> None:
        """Kill every task, for a reason in words that follow its name; those that are told so already are left."""
        for task in self._tasks.values():
            if task.is_coming:
                self._end(task, None, "", cause)
            elif task.end is None and not task.cause:
                task.cause = cause
                task.send_signal(signal.SIGKILL)

    def advance(self) -> None:
        """Do all that can be done now: start what is noted, finish what is gone, end what uses too much."""
        self._send_launches()
        self._finish_gone()
        self._look(self._tasks.values())
        self._take_facts()
        self._limits.enforce(self._tasks)
        if self._zygote.is_calm:  # else they would share the processors with what a task waits for
            self._remains.prepare()
            self._limits.prepare()

    def wait_s(self) -> float | None:
        """Return after how many seconds `advance` is to be called though no file is ready; None: whenever."""
        if any(task.gone_at is not None or (task.end and not task.is_inspected) for task in self._tasks.values()):
            return _POLL_S
        waits = (self._limits.wait_s(self._tasks.values()), self._remains.wait_s())
        return min((wait for wait in waits if wait is not None), default=None)

    def close(self, *, newest: bool) -> None:
        """Send the last launches, unless a later agent has begun. The tasks go on, and a zygote that has children."""
        if newest:
            self._send_launches()
        self._zygote.close(
            lambda zygote: any(task.record.zygote_pid in (None, zygote.pid) for task in self._tasks.values())
        )
        for task in self._tasks.values():
            self._unwatch(task)
        for looking in (self._remains, self._limits):
            self._selector.unregister(looking)
            looking.close()
        self._spaces.close()

    # the zygote

    def ask_zygote(self, now: float) -> float:
        """Ask the zygote whether it is well; return how long it has not answered, seconds."""
        return self._zygote.ask(now)

    def _take(self, message: ZygoteMessage, zygote: ZygoteProcess) -> None:
        if not isinstance(message, Started | Ended):
            return
        if (task := self._tasks.get(message.task_id)) is None:
            self._sidecars.take(message)
        elif isinstance(message, Started):
            started = replace(task.record, pid=message.pid, stamp=message.stamp)
            self._watch(task, replace(started, zygote_pid=zygote.pid, zygote_stamp=zygote.stamp))
        else:
            self._end(task, message.exit_code, message.error, message.cause)

    def _note_lost(self, zygote: ZygoteProcess) -> None:
        """Learn what became of the tasks that a zygote was to start which has ended.

        Its children live on and are watched by their pidfds; what it had not started yet the next one is told to.
        """
        self._sidecars.lose(zygote)
        unknown = [task for task in self._tasks.values() if task.program is None and task.record.pid is None]
        for task in unknown:
            if not task.order_again(self._state_dir):
                times = f" {task.num_orders} times" * (task.num_orders > 1)
                self._resolve(task, f"the process that starts tasks has ended{times}; its log is {zygote.log_path}")

    def _send_launches(self) -> None:
        """Record the tasks that were ordered since the last tick, and pass them on to the zygote."""
        for task in [one for one in self._tasks.values() if one.program is not None and not one.is_coming]:
            program = task.take_program()
            task.record = replace(task.record, group=self._remains.make_group(task.record))
            try:
                if not records.begin(self._state_dir, task.record, term=self._term):
                    return
                self._spaces.make(task.space)
                path = records.program_path(self._state_dir, program.task_id)
                write_whole(path, encode(program), durable=False)
                self._zygote.order(Launch(task_id=program.task_id, slots=task.record.slots))
            except (OSError, ValueError) as error:
                self._end(task, None, f"this machine cannot start a process: {error}")
        self._zygote.flush()

    # tasks and their ends

    def _adopt(self) -> None:
        """Take up what an earlier agent left: living tasks, and exits that were not acknowledged."""
        records.forget(self._state_dir, reported_before=self._clock.now() - _KEEP_RECORDS_S)
        found = records.read_all(self._state_dir)
        self._spent.update(record.task_id for record in found)
        for message in _spent(self._spent):
            self._send(message)
        for record in found:
            if not record.reported:
                space = self._spaces.of(record.job or record.task_id)
                task = self._tasks[record.task_id] = TaskProcess(record=record, space=space)
                self._send(_observed(record, self._settings.node_id))
                if self._files is not None and record.pid is not None:
                    self._files.adopt(record)
                self._resolve(task, _NEVER_STARTED)

    def _resolve(self, task: TaskProcess, never_started: str) -> None:
        """Learn from its record what became of a task of which no zygote reports."""
        record = records.read(self._state_dir, task.record.task_id) or task.record
        if record.ended_at is not None:
            self._end(task, record.exit_code, record.error, record.cause)
        elif record.pid is None:
            self._end(task, None, never_started)
        else:
            self._watch(task, record)

    def _watch(self, task: TaskProcess, record: Record) -> None:
        """Watch the process that a record names from now on."""
        pidfd = task.watch(record)
        if pidfd is None:
            task.gone_at = time.monotonic()
        else:
            self._selector.register(pidfd, selectors.EVENT_READ, partial(self._note_gone, task))
        self._send(_observed(record, self._settings.node_id))

    def _note_gone(self, task: TaskProcess) -> None:
        if task.pidfd is not None:  # else the zygote reported its exit in the same moment, and was read first
            task.gone_at = time.monotonic()
            self._unwatch(task)
            self._sidecars.end_beside(task)

    def _finish_gone(self) -> None:
        """Finish the tasks whose processes are gone, as soon as their exit codes are known or will never be."""
        gone = [(task.gone_at, task) for task in self._tasks.values() if task.gone_at is not None]
        for gone_at, task in sorted(gone, key=itemgetter(0)):  # who died of another's death is reported after it
            record = task.read_end(self._state_dir)
            if record is not None:
                self._end(task, record.exit_code, record.error, record.cause)
            elif not task.is_zygote_alive() or time.monotonic() > gone_at + _EXIT_CODE_TIMEOUT_S:
                if task.record.pid is not None:
                    process.sweep_session(task.record.pid)
                self._end(task, None, "")

    def _end(self, task: TaskProcess, exit_code: int | None, error: str, cause: str = "") -> None:
        """Note how a task's process ended; it keeps its slots while anything in its control group lives."""
        self._unwatch(task)
        task.gone_at, task.program, task.is_coming = None, None, False
        task.end, task.cause = (exit_code, error), task.cause or cause
        remains.end(task.record)
        self._sidecars.end_beside(task)
        self._look([task])

    def _look(self, tasks: Iterable[TaskProcess]) -> None:
        """Have the files read of those that have ended and of which nothing lives any more."""
        self._remains.look(task for task in tasks if task.end is None or not self._sidecars.is_beside(task))

    def _take_facts(self) -> None:
        for task_id, facts in self._remains.receive():
            if (task := self._tasks.get(task_id)) is not None and task.end is not None:
                task.cause = task.cause or remains.memory_cause(task.record)
                is_large = task.cause not in ("", LEFT_ALONE) and not task.is_over_disk
                found = replace(facts, out_of_memory=is_large, over_disk=task.is_over_disk)
                if self._files is None or (task.record.pid is None and not task.num_orders):
                    self._finish(task, task.end, found)
                else:
                    task.outcome = found
                    self._files.send_back(task.record)

    def _take_files(self) -> None:
        """Begin the tasks whose files are here, and report those whose files are with the server."""
        assert self._files is not None, "there is something to receive"
        for ready in self._files.receive():
            task = self._tasks.get(ready.task_id)
            if task is None or (task.outcome is None and not task.is_coming):
                self._files.forget(ready.task_id)  # it was to end before it had begun
            elif task.outcome is not None and task.end is not None:
                if ready.trouble:
                    self._send(_noted(ready.task_id, _UNSENT.format(ready.trouble)))
                self._finish(task, task.end, task.outcome)
            elif task.is_coming:
                task.is_coming, task.is_unfit = False, ready.is_unfit
                if ready.trouble:
                    self._files.forget(ready.task_id)
                    self._end(task, None, _NOT_BROUGHT.format(ready.trouble))

    def _finish(self, task: TaskProcess, end: tuple[int | None, str], facts: ExitFacts) -> None:
        """Free the slots of a task of which nothing lives, and report it."""
        del self._tasks[task.record.task_id]
        remains.discard(task.record)
        records.program_path(self._state_dir, task.record.task_id).unlink(missing_ok=True)
        self.exits.report(*_outcome(task, end, facts, at=self._clock.now()))

    def _unwatch(self, task: TaskProcess) -> None:
        if task.pidfd is not None:
            self._selector.unregister(task.pidfd)
            task.close()


def _noted(task_id: TaskId, words: str) -> Noted:
    return Noted(note=TaskNote(task_id=task_id, words=words))


def _refusal(order: StartOrder, error: ValueError) -> TaskExit:
    is_unfit = isinstance(error, MisfitError)
    return TaskExit(task_id=order.task_id, exit_code=None, error=str(error), is_unfit=is_unfit)


def _outcome(task: TaskProcess, end: tuple[int | None, str], facts: ExitFacts, *, at: float) -> tuple[TaskExit, Record]:
    """Return a task's exit, and what its record says from now on."""
    exit_code, error = end
    if lacks := lacks_pliant(task.record, exit_code, facts):
        exit_code, error = None, lacks
    ended = TaskExit(
        task_id=task.record.task_id,
        exit_code=exit_code,
        error=error,
        is_unfit=task.is_unfit,
        cause=task.cause,
        facts=facts,
    )
    return ended, replace(task.record, ended_at=at, exit_code=exit_code, error=error)


def _spent(task_ids: Iterable[TaskId]) -> Iterator[Spent]:
    spent = tuple(task_ids)
    for first in range(0, len(spent), _SPENT_IDS_PER_MESSAGE):
        yield Spent(task_ids=spent[first : first + _SPENT_IDS_PER_MESSAGE])


def _observed(record: Record, node_id: NodeId) -> Observed:
    return Observed(
        task=LiveTask(
            task_id=record.task_id, node_id=node_id, slots=record.slots, slot_share=record.slot_share, pid=record.pid
        )
    )


def _record_of(order: StartOrder, devices: Devices, space: TaskSpace) -> Record:
    return Record(
        task_id=order.task_id,
        slots=order.slots,
        job=job_of(order),
        folders=disk_folders(order, space),
        slot_share=order.slot_share,
        memory_bytes=order.memory_bytes or share_of_memory(devices, order.slot_share),
        log_dir=order.log_dir,
        result_dir=order.result_dir,
        model=order.model,
        python=order.python,
    )
