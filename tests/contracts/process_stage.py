"""The stage of `ClusterContract` for clusters that start real processes on this machine.

Its tasks run `tests.contracts.program`; each has a folder under the root, with a pipe that ends it. Knows no adapter.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from tests.contracts.cluster import MARKER, NUM_SLOTS

import pliant
from pliant.core.confinement import Confinement
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import UNSENT_FILE, Cluster, ExitFacts, StartOrder, TaskExit
from pliant.files import step_file

ENTRY: Final = "tests.contracts.program:main"
NODE: Final = NodeId("here")
PATHS: Final = f"{Path(pliant.__file__).parents[1]}:{Path(__file__).parents[2]}"
"""What PYTHONPATH must have so that other processes find this Pliant and this suite."""
DEADLINE_S: Final = 20.0
_POLL_S = 0.002

C = TypeVar("C", bound=Cluster)


def until(condition: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S) -> None:
    """Wait until the condition holds; fail with `what` if that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStage(Generic[C]):
    """A cluster whose tasks are processes of this machine, and pipes to them."""

    cluster: C
    root: Path
    node_id: NodeId = NODE
    pipes: list[int] = field(default_factory=list)

    def order(self, task_id: TaskId, slots: tuple[int, ...], source: str = "") -> StartOrder:
        """Return an order; with a source the task runs that and ends."""
        folder = self.folder(task_id)
        return StartOrder(
            task_id=task_id,
            node_id=self.node_id,
            slots=slots,
            argv=(str(folder), source) if source else (str(folder),),
            env={"GREETING": "hello"},
            cwd=str(folder),
            log_dir=str(folder / "log"),
            result_dir=str(folder),
            model=str(folder / "model" / "model.pt"),
            confinement=Confinement(writes=(str(folder),)),
        )

    def hopeless_order(self, task_id: TaskId, slots: tuple[int, ...]) -> StartOrder:
        return replace(self.order(task_id, slots), cwd=str(self.root / "not-there"))

    def finish(self, task_id: TaskId, exit_code: int) -> None:
        pipe = os.open(self.folder(task_id) / "orders", os.O_RDWR | os.O_NONBLOCK)
        self.pipes.append(pipe)  # what is written is lost if nobody has the pipe open
        os.write(pipe, f"{exit_code}\n".encode())

    def leave_behind(self, task_id: TaskId, facts: ExitFacts) -> None:
        folder = self.folder(task_id)
        for name in ("log", "model"):
            (folder / name).mkdir()
        if facts.step is not None:
            (folder / "log" / step_file.NAME).write_bytes(step_file.pack(facts.step))
        if facts.unsent:
            (folder / "log" / UNSENT_FILE).write_text(facts.unsent)
        (folder / "log" / "stderr").write_text(facts.stderr)
        os.utime(folder / "log" / "stderr", (facts.stderr_at, facts.stderr_at))
        if facts.saved_model:
            (folder / "model" / "model.pt").write_bytes(b"weights")

    def running(self, task_id: TaskId) -> bool:
        return (self.folder(task_id) / "began").exists()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, what)

    def pass_time(self) -> None:
        """Wait until a task that is started now has come and gone: the cluster deals with things in order."""
        free = set(range(NUM_SLOTS)) - {slot for task in self.cluster.observe().tasks for slot in task.slots}
        marker = self.start(f"{MARKER}{time.monotonic_ns()}", (min(free),))
        self.finish(marker, 0)
        until(lambda: all(task.task_id != marker for task in self.cluster.observe().tasks), "the marker is gone")

    def folder(self, task_id: TaskId) -> Path:
        """Return the task's folder, made if missing, with its pipe."""
        folder = self.root / task_id
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "orders").exists():
            os.mkfifo(folder / "orders")
        return folder

    def start(self, task_id: str, slots: tuple[int, ...] = (0,), source: str = "") -> TaskId:
        """Start a task; with a source it runs that and ends."""
        self.cluster.start(self.order(TaskId(task_id), slots, source))
        return TaskId(task_id)

    def pid_of(self, task_id: TaskId) -> int:
        """Wait for a task's process and return its number."""
        pids: list[int] = []

        def known() -> bool:
            pids.extend(task.pid for task in self.cluster.observe().tasks if task.task_id == task_id and task.pid)
            return bool(pids)

        until(known, f"the pid of {task_id}")
        return pids[0]

    def read(self, task_id: TaskId, name: str = "report") -> Any:
        """Wait for what a task's source noted, and return it."""
        path = self.folder(task_id) / name
        until(path.exists, f"{path} is written")
        return json.loads(path.read_text())

    def log(self, task_id: TaskId, stream: str = "stderr") -> str:
        return (self.folder(task_id) / "log" / stream).read_text()

    def exits(self) -> list[TaskExit]:
        """Watch from now on; return the list that gets the exits."""
        exits: list[TaskExit] = []
        self.cluster.watch(exits.append)
        return exits

    def exit_of(self, task_id: TaskId, exits: list[TaskExit]) -> TaskExit:
        """Wait for a task's exit and return it; fail if it is reported twice."""
        until(lambda: any(ended.task_id == task_id for ended in exits), f"the exit of {task_id} is reported")
        (ended,) = [ended for ended in exits if ended.task_id == task_id]
        return ended

    def end(self) -> None:
        """End all tasks and close the cluster; a cluster that is closed already keeps its tasks."""
        for task in self.cluster.observe().tasks:
            self.cluster.kill(task.task_id)
        try:
            until(lambda: not self.cluster.observe().tasks, "all tasks are gone")
        finally:
            self.cluster.close()
            while self.pipes:
                os.close(self.pipes.pop())
