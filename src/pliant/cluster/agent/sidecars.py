"""Sidecars: programs of ours that run beside a task, within its walls, its control group and its limits.

A sidecar holds no slots and has no record: it is of use to the server that ordered it, and ends with it. It ends with
its task at the latest. Everything it is given is made as for a task (`pliant.cluster.agent.orders`), so nothing of its
walls can be weaker. Knows no tunnel.
"""

import os
import select
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pliant.cluster import process
from pliant.cluster.agent.devices import Devices
from pliant.cluster.agent.messages import EndSidecar, SidecarEnded, StartSidecar
from pliant.cluster.agent.orders import program_of
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.agent.task_process import TaskProcess
from pliant.cluster.json_lines import encode
from pliant.cluster.zygote import records
from pliant.cluster.zygote.handle import ZygoteProcess
from pliant.cluster.zygote.messages import Ended, Launch, Started
from pliant.core.job import TaskId
from pliant.core.ports import StartOrder
from pliant.files.folder import write_whole

ENTRY: Final = "pliant.entry.sidecar:main"
_ZYGOTE_GONE: Final = "the process that starts tasks has ended; try again"
_TASK_GONE: Final = "its task has ended"


@dataclass(slots=True, kw_only=True, eq=False)
class _Sidecar:
    task: TaskProcess
    zygote: ZygoteProcess
    pid: int | None = None
    stamp: str | None = None
    is_unwanted: bool = False
    """It is to be ended as soon as its process exists."""


class Sidecars:
    """The sidecars of a node.

    Args:
        settings: of the agent.
        devices: what its slots are.
        base_env: what every task's environment starts from.
        send: called once for every sidecar that was ordered, when it has ended or could not be started.
    """

    def __init__(
        self,
        settings: AgentSettings,
        devices: Devices,
        base_env: Mapping[str, str],
        send: Callable[[SidecarEnded], None],
    ) -> None:
        self._settings = settings
        self._devices = devices
        self._base_env = base_env
        self._send = send
        self._sidecars: dict[TaskId, _Sidecar] = {}

    def obey(
        self,
        message: StartSidecar | EndSidecar,
        tasks: Mapping[TaskId, TaskProcess],
        zygote: Callable[[], ZygoteProcess],
    ) -> None:
        """Start a sidecar beside one of these tasks, or end one."""
        if isinstance(message, EndSidecar):
            self.end(message.sidecar_id)
        else:
            self.start(message.order, tasks.get(message.beside), zygote)

    def start(self, order: StartOrder, task: TaskProcess | None, zygote: Callable[[], ZygoteProcess]) -> None:
        """Have a sidecar forked beside a task that runs; else say why not.

        Args:
            order: its task id is the sidecar's own, and its slots are ignored: it sees the devices of the task's.
            task: beside which it runs, if that is there.
            zygote: returns who forks it; called if there is something to fork.
        """
        if task is None or task.pidfd is None or task.cause:
            self._tell(order.task_id, "its task has no process here" if task is None else "its task does not run")
            return
        order = replace(order, slots=task.record.slots)
        program = program_of(order, self._settings, self._devices, self._base_env, task.space)
        program = replace(program, python=None, entry=ENTRY)  # ours; what it starts is the job's
        launch = Launch(task_id=order.task_id, slots=(), beside=task.record.task_id, group=task.record.group)
        path = self._program(order.task_id)
        try:
            forking = zygote()
            write_whole(path, encode(program), durable=False)
            forking.order(launch)
        except (OSError, ValueError) as error:
            path.unlink(missing_ok=True)
            self._tell(order.task_id, f"this machine cannot start a process: {error}")
            return
        self._sidecars[order.task_id] = _Sidecar(task=task, zygote=forking)

    def take(self, message: Started | Ended) -> None:
        """Take in what the zygote says of one; ignore what it says of others."""
        sidecar = self._sidecars.get(message.task_id)
        if sidecar is None:
            return
        if isinstance(message, Ended):
            self._finish(message.task_id, message.error)
            return
        sidecar.pid, sidecar.stamp = message.pid, message.stamp
        sidecar.task.beside.add(message.pid)
        if sidecar.is_unwanted:
            _kill(sidecar)

    def end(self, sidecar_id: TaskId) -> None:
        """End one; ignore one that does not live."""
        if (sidecar := self._sidecars.get(sidecar_id)) is not None:
            sidecar.is_unwanted = True
            _kill(sidecar)

    def end_beside(self, task: TaskProcess) -> None:
        """End those of a task."""
        for sidecar_id in [sidecar_id for sidecar_id, one in self._sidecars.items() if one.task is task]:
            self.end(sidecar_id)

    def is_beside(self, task: TaskProcess) -> bool:
        """Tell whether something lives beside a task that its zygote has still to report."""
        return any(one.task is task for one in self._sidecars.values())

    def lose(self, zygote: ZygoteProcess) -> None:
        """Give up what a zygote that has ended would have told of; what it has left has no parent and is ended."""
        for sidecar_id in [sidecar_id for sidecar_id, one in self._sidecars.items() if one.zygote is zygote]:
            self.end(sidecar_id)
            if (pid := self._sidecars[sidecar_id].pid) is not None:
                process.sweep_session(pid)
            self._finish(sidecar_id, _ZYGOTE_GONE)

    def _finish(self, sidecar_id: TaskId, error: str) -> None:
        sidecar = self._sidecars.pop(sidecar_id)
        self._program(sidecar_id).unlink(missing_ok=True)
        if sidecar.pid is not None:
            sidecar.task.beside.discard(sidecar.pid)
        self._tell(sidecar_id, error or (_TASK_GONE if _has_ended(sidecar.task) else ""))

    def _tell(self, sidecar_id: TaskId, error: str) -> None:
        self._send(SidecarEnded(sidecar_id=sidecar_id, error=error))

    def _program(self, sidecar_id: TaskId) -> Path:
        return records.program_path(self._settings.state_dir.absolute(), sidecar_id)


def _has_ended(task: TaskProcess) -> bool:
    """Tell whether the process of a task is no more; the zygote may have told of its sidecar's end first."""
    if task.pidfd is None:
        return True
    poll = select.poll()
    poll.register(task.pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _kill(sidecar: _Sidecar) -> None:
    if sidecar.pid is not None and (pidfd := process.open_process(sidecar.pid, sidecar.stamp)) is not None:
        process.send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
