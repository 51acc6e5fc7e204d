"""What is left of a task whose process is gone: processes that got away from it, and files.

The processes are in its control group, if there are such groups, and are ended there; what the files say is read by a
process of its own. Both take their time, and nobody waits for them here.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pliant.cluster.agent.inspection import CutLogs, Inspect, Inspected
from pliant.cluster.agent.inspector import Inspector
from pliant.cluster.agent.log_limits import logs_of
from pliant.cluster.agent.task_process import TaskProcess
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.ports import ExitFacts
from pliant.core.size import size
from pliant.core.slot import WHOLE_SLOT
from pliant.isolation import control_groups
from pliant.isolation.control_groups import ControlGroups

_MAX_PROCESSES: Final = 32_768
"""Of one task, threads among them."""


class Remains:
    """The control groups of a node's tasks, and who looks at their files.

    Args:
        owner: names the groups of this agent.
        env: what the process that looks is started with.
        max_log_bytes: what stays of each log, if there is a limit.
    """

    def __init__(self, owner: str, env: Mapping[str, str], max_log_bytes: int | None = None) -> None:
        self._max_log_bytes = max_log_bytes
        self._groups = ControlGroups(owner)
        self._inspector = Inspector(env)
        self.prepare = self._inspector.prepare
        self.fileno = self._inspector.fileno
        self.wait_s = self._inspector.wait_s

    def make_group(self, record: Record) -> str | None:
        """Make the control group of a task that is to be started; None if there are none."""
        memory = record.memory_bytes
        limits = {} if memory is None else {"memory.max": str(memory), "memory.oom.group": "1"}
        limits |= {"pids.max": str(_MAX_PROCESSES), "cpu.weight": str(_cpu_weight(record))}
        return self._groups.make(record.task_id, limits)

    def look(self, tasks: Iterable[TaskProcess]) -> None:
        """Have the files read of those that have ended and of which nothing lives any more."""
        for task in tasks:
            if task.end is not None and not task.is_inspected and control_groups.is_empty(task.record.group):
                task.is_inspected = True
                if self._max_log_bytes is not None and (logs := logs_of([task.record])):
                    self._inspector.ask(CutLogs(max_bytes=self._max_log_bytes, logs=logs))
                self._inspector.ask(Inspect(record=task.record))

    def receive(self) -> list[tuple[TaskId, ExitFacts]]:
        """Return what was found; of a task whose files nobody could look at, nothing."""
        return [
            (asked.record.task_id, answer.facts if isinstance(answer, Inspected) else ExitFacts())
            for asked, answer in self._inspector.receive()
            if isinstance(asked, Inspect)
        ]

    def close(self) -> None:
        """Let go; the groups of tasks that live stay."""
        self._inspector.close()
        self._groups.close()


def _cpu_weight(record: Record) -> int:
    """Return 100 for each slot, or what a part of one comes to; the kernel takes 1 to 10,000."""
    return max(1, min(100 * len(record.slots) * record.slot_share // WHOLE_SLOT, 10_000))


def end(record: Record) -> None:
    """End all that is left of a task."""
    if record.group is not None:
        control_groups.kill(record.group)


def memory_cause(record: Record) -> str:
    """Return why the kernel ended a task, if it did so for its memory, in words that follow its name."""
    if record.group is None or record.memory_bytes is None or not control_groups.num_out_of_memory(record.group):
        return ""
    return f"used more memory than its limit of {size(record.memory_bytes)}, and was ended for it"


def discard(record: Record) -> None:
    """Remove the control group of a task of which nothing lives."""
    if record.group is not None:
        control_groups.remove(record.group)
