"""Of a log that is too long beginning and end are kept, while its task writes and when it has ended."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contracts.process_stage import ProcessStage

from pliant.cluster.node import NodeCluster
from pliant.core.job import TaskId
from pliant.core.ports import TaskExit, TaskNote

Stage = ProcessStage[NodeCluster]

KEPT = 1 << 20
WRITES = """
import sys
print("the first line")
for number in range(16):
    sys.stdout.write(("%08d" % number) * (1 << 17))
print()
print("the last line", flush=True)
"""
WAITS = "(folder / 'orders').open().readline()\n"


@pytest.fixture
def stage(tmp_path: Path, bring_up: Callable[..., Stage]) -> Stage:
    return bring_up(tmp_path, max_log_bytes=KEPT)


def log_of(stage: Stage, task_id: TaskId) -> Path:
    (found,) = Path(stage.order(task_id, (0,)).log_dir).glob("stdout")
    return found


def assert_cut(log: Path) -> None:
    assert log.stat().st_size > 16 << 20
    assert log.stat().st_blocks * 512 <= KEPT + (1 << 16)
    text = log.read_bytes()
    assert text.startswith(b"the first line\n")
    assert text.endswith(b"the last line\n")


def test_a_log_is_cut_while_its_task_writes_and_its_owner_is_told(stage: Stage) -> None:
    exits: list[TaskExit] = []
    notes: list[TaskNote] = []
    stage.cluster.watch(exits.append, notes.append)
    task_id = stage.start("job-1.1", (0,), WRITES + WAITS)

    stage.until(lambda: bool(notes), "its owner is told")

    (note,) = notes
    assert note.task_id == task_id
    assert "/s to its stdout, which may hold 1.0 MiB (pliant up --max-log)" in note.words
    assert_cut(log_of(stage, task_id))
    stage.finish(task_id, 0)
    stage.until(lambda: bool(exits), "it has ended")


def test_a_log_is_cut_when_its_task_has_ended(stage: Stage) -> None:
    exits = stage.exits()
    task_id = stage.start("job-1.1", (0,), WRITES)
    stage.until(lambda: bool(exits), "it has ended")
    assert_cut(log_of(stage, task_id))
