"""One task that holds slots: its record, and its process as soon as there is one. Knows no zygote and no messages."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.cluster import process
from pliant.cluster.agent.space import TaskSpace
from pliant.cluster.zygote import records
from pliant.cluster.zygote.messages import TaskProgram
from pliant.cluster.zygote.records import Record
from pliant.core.ports import ExitFacts
from pliant.core.task_environment import STACKS_SIGNAL

MAX_ORDERS: Final = 3
"""A task that so many zygotes did not live to start is given up."""


@dataclass(slots=True, kw_only=True, eq=False)
class TaskProcess:
    """A task that holds slots. Two of them are never equal."""

    record: Record
    program: TaskProgram | None = None
    """Until the zygote is told."""
    ordered: TaskProgram | None = None
    """From then on, until there is a process."""
    num_orders: int = 0
    """Zygotes that were told."""
    space: TaskSpace = field(default_factory=TaskSpace)
    is_inspected: bool = False
    """Nothing of it lives any more, and somebody looks at what it left."""
    end: tuple[int | None, str] | None = None
    """Exit code and error, once its process is gone; what is left of it may live."""
    pidfd: int | None = None
    """While the process is watched."""
    cause: str = ""
    """Why this agent has ended it."""
    beside: set[int] = field(default_factory=set)
    """Processes of sidecars, which use its memory and its job's disk."""
    is_over_disk: bool = False
    """That is because its job holds too much of the disk."""
    is_coming: bool = False
    """What it needs is being brought to this machine."""
    is_unfit: bool = False
    """It cannot be started for a reason of this machine's."""
    outcome: ExitFacts | None = None
    """What it left behind, while what it wrote is being sent to the server."""
    gone_at: float | None = None
    """When the process was seen to be gone (monotonic time); its exit code is still to be learnt."""
    _signals: list[int] = field(default_factory=list)
    """To be sent as soon as the process exists."""

    def take_program(self) -> TaskProgram:
        """Return what a zygote is told now."""
        program = self.program
        assert program is not None, "only a task with a program can be ordered"
        self.program, self.ordered, self.num_orders = None, program, self.num_orders + 1
        return program

    def order_again(self, state_dir: Path) -> bool:
        """Have the next zygote told, since the one that was is dead; return whether that makes sense.

        It does not if there was a process, or if too many have died before.
        """
        record = records.read(state_dir, self.record.task_id)
        is_unborn = record is None or (record.pid is None and record.ended_at is None)
        if not is_unborn or self.ordered is None or self.num_orders >= MAX_ORDERS:
            return False
        self.program, self.ordered = self.ordered, None
        return True

    def watch(self, record: Record) -> int | None:
        """Open the process that a record names and send it the signals that have waited; return its pidfd.

        None if it has ended already.
        """
        self.record, self.ordered = record, None
        if record.pid is not None:
            self.pidfd = process.open_process(record.pid, record.stamp)
        if self.pidfd is not None:
            for number in self._signals:
                process.send_signal(self.pidfd, number)
            self._signals.clear()
        return self.pidfd

    def send_signal(self, number: int) -> None:
        """Send a signal, now or as soon as the process exists."""
        if self.pidfd is None:
            self._signals.append(number)
        else:
            process.send_signal(self.pidfd, number)

    def show_stacks(self) -> None:
        """Make the process write where its threads are to its stderr, if it is made for that."""
        pid = self.record.pid
        if self.pidfd is not None and pid is not None and process.catches(pid, STACKS_SIGNAL):
            process.send_signal(self.pidfd, STACKS_SIGNAL)

    def close(self) -> None:
        """Stop watching the process; do nothing if it is not watched."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None

    def read_end(self, state_dir: Path) -> Record | None:
        """Return the record that says how the task ended; None if nobody has written that down."""
        record = records.read(state_dir, self.record.task_id)
        return record if record is not None and record.ended_at is not None else None

    def is_zygote_alive(self) -> bool:
        """Return whether the zygote that writes down this task's end still runs."""
        record = self.record
        return record.zygote_pid is not None and process.stamp(record.zygote_pid) == record.zygote_stamp
