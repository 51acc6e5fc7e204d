"""What a task, and a job, may use of the node, and the end of those that use more.

Memory is looked at here. What jobs hold on the disk is measured by a process of its own, which is started when there is
a first job to measure (`pliant.cluster.agent.disk_watch`); it also cuts logs that are too long (`log_limits`).
"""

import logging
import signal
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from pliant.cluster.agent.devices import Devices
from pliant.cluster.agent.disk_watch import DiskFindings, JobFiles
from pliant.cluster.agent.gpu_memory_use import GpuMemoryCheck
from pliant.cluster.agent.inspection import CutLogs, DiskMeasured, LogsCut, MeasureDisk
from pliant.cluster.agent.inspector import Inspector
from pliant.cluster.agent.log_limits import LogNotes, logs_of
from pliant.cluster.agent.memory_use import CHECK_EVERY_S, MemoryCheck
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.agent.task_process import TaskProcess
from pliant.core.job import TaskId

_log = logging.getLogger(__name__)

DISK_EVERY_S: Final = 1.0
DISK_DEADLINE_S: Final = 60.0
"""A measurement that takes longer finds nothing; it is tried again."""


class NodeLimits:
    """Holds the tasks of a node to their limits.

    Args:
        settings: what a job may have on the disk, and a task in a log.
        devices: of the node.
        env: what the process that measures is started with.
        tell: called with what the owner of a task is to know of it.
    """

    def __init__(
        self,
        settings: AgentSettings,
        devices: Devices,
        env: Mapping[str, str],
        *,
        tell: Callable[[TaskId, str], None],
    ) -> None:
        self._max_disk_bytes = settings.max_disk_bytes
        self._max_log_bytes = settings.max_log_bytes
        self._log_notes = LogNotes(settings.max_log_bytes or 0)
        self._tell = tell
        self._memory = MemoryCheck()
        self._gpu_memory = GpuMemoryCheck(devices)
        self._inspector = Inspector(env, deadline_s=DISK_DEADLINE_S)
        self._num_asked = 0
        self._disk_at: float | None = None
        """When to look next; None: there was no task yet."""
        self.fileno = self._inspector.fileno
        self.close = self._inspector.close

    def prepare(self) -> None:
        """Start the process that measures, if there is something to measure, before there is a first task."""
        if self._max_disk_bytes is not None or self._max_log_bytes is not None:
            self._inspector.prepare()

    def enforce(self, tasks: Mapping[TaskId, TaskProcess]) -> None:
        """End the tasks that use too much, and all tasks of jobs that do; no call waits for a disk."""
        living = [task for task in tasks.values() if task.pidfd is not None and not task.cause]
        for task_id, cause in self._memory.over_limit((task.record, task.beside) for task in living):
            _end(tasks[task_id], cause)
        for task_id, cause in self._gpu_memory.over_limit((task.record, task.beside) for task in living):
            _end(tasks[task_id], cause)
        for _, answer in self._inspector.receive():
            if isinstance(answer, DiskMeasured):
                _end_jobs(answer.findings, tasks.values())
            elif isinstance(answer, LogsCut):
                for task_id, words in self._log_notes.take(answer.cuts, time.monotonic()).items():
                    self._tell(task_id, words)
        self._measure(living)

    def wait_s(self, tasks: Collection[TaskProcess]) -> float | None:
        """Return after how many seconds `enforce` is to be called; None: whenever."""
        limited = any(task.record.memory_bytes for task in tasks)
        return CHECK_EVERY_S if limited or self._gpu_memory.concerns(task.record for task in tasks) else None

    def _measure(self, living: Collection[TaskProcess]) -> None:
        """Have logs cut, and ask which jobs hold too much of the disk, unless that was asked a moment ago."""
        now = time.monotonic()
        if not living or self._inspector.is_asked:
            return
        if self._disk_at is None:
            self._disk_at = now + DISK_EVERY_S  # the process that looks would begin beside the first task
        if now < self._disk_at:
            return
        self._disk_at = now + DISK_EVERY_S
        if self._max_log_bytes is not None:
            self._log_notes.begin((task.record.task_id for task in living), now)
            self._inspector.ask(CutLogs(max_bytes=self._max_log_bytes, logs=logs_of([task.record for task in living])))
        if self._max_disk_bytes is not None and (jobs := files_of_jobs(living)):
            first = self._num_asked % len(jobs)  # one that cannot be measured is not always in the way of the others
            self._num_asked += 1
            asked = MeasureDisk(max_bytes=self._max_disk_bytes, jobs=(*jobs[first:], *jobs[:first]))
            self._inspector.ask(asked)


def files_of_jobs(tasks: Collection[TaskProcess]) -> tuple[JobFiles, ...]:
    """Return where the jobs of these tasks keep files, and by which processes."""
    found: dict[str, list[TaskProcess]] = {}
    for task in tasks:
        if task.record.folders:
            found.setdefault(task.record.job, []).append(task)
    return tuple(
        JobFiles(
            job=job,
            folders=tuple(dict.fromkeys(folder for task in own for folder in task.record.folders)),
            pids=tuple(pid for task in own for pid in (task.record.pid, *task.beside) if pid is not None),
            groups=tuple(task.record.group for task in own if task.record.group is not None),
        )
        for job, own in found.items()
    )


def _end_jobs(findings: DiskFindings, tasks: Collection[TaskProcess]) -> None:
    """End all tasks of the jobs that hold too much, also those that are being started."""
    for job in findings.late:
        _log.warning("what %s holds on the disk is unknown: it takes too long to measure", job)
    why = {over.job: over.why for over in findings.over}
    for task in tasks:
        if task.record.job in why and task.end is None and not task.cause:
            task.is_over_disk = True
            _end(task, why[task.record.job])


def _end(task: TaskProcess, cause: str) -> None:
    task.cause = cause
    task.send_signal(signal.SIGKILL)
