"""A job that holds more of the disk than it may is ended, all of it and nothing else, also if another agent began it.

The tasks write files of 1 MiB each, so that no file is too long by itself.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.process_stage import ProcessStage, until

from pliant.cluster.agent import limits
from pliant.cluster.agent.inspector import Inspector
from pliant.cluster.node import NodeCluster
from pliant.core.job import TaskId
from pliant.core.ports import TaskExit

BringUp = Callable[..., ProcessStage[NodeCluster]]
Stage = ProcessStage[NodeCluster]

LIMIT = 8 << 20
WAITS = "(folder / 'orders').open().readline()\n"
WRITES = "[(folder / ('part-%d' % number)).write_bytes(bytes(1 << 20)) for number in range({num})]\n"
HIDES = """
import tempfile
kept = [tempfile.TemporaryFile(dir=folder, buffering=0) for _ in range(16)]
for file in kept:
    file.write(bytes(1 << 20))
"""
ENDED = re.compile(
    r"was ended because its job's files hold [0-9.]+ MiB, more than the 8\.0 MiB that a job may have on this machine's "
    r"disk \(pliant up --max-disk\)"
)


@pytest.fixture
def stage(tmp_path: Path, bring_up: BringUp) -> Stage:
    return bring_up(tmp_path, max_disk_bytes=LIMIT)


def start(stage: Stage, task_id: str, slot: int, source: str = WAITS, *, job: str = "job-1") -> TaskId:
    order = stage.order(TaskId(task_id), (slot,), source)
    stage.cluster.start(replace(order, env={**order.env, "PLIANT_JOB_ID": job}))
    return order.task_id


def assert_ended_for_it(ended: TaskExit) -> None:
    assert ended.exit_code == -9
    assert ENDED.fullmatch(ended.cause), ended.cause
    assert (ended.facts.over_disk, ended.facts.out_of_memory) == (True, False)


@pytest.mark.parametrize("source", [WRITES.format(num=16), HIDES], ids=["many files", "removed and still open"])
def test_a_job_that_holds_too_much_is_ended_with_all_its_tasks_and_no_other_is(stage: Stage, source: str) -> None:
    exits = stage.exits()
    neighbour = start(stage, "job-2.1", 0, WRITES.format(num=4) + WAITS, job="job-2")
    other = start(stage, "job-1.1", 1)
    writes = start(stage, "job-1.2", 2, source + WAITS)

    for task_id in (writes, other):
        assert_ended_for_it(stage.exit_of(task_id, exits))
    assert (len(list(stage.folder(writes).glob("part-*"))) > 8) == (source != HIDES), "what it wrote stays"
    stage.finish(neighbour, 0)
    ended = stage.exit_of(neighbour, exits)
    assert (ended.exit_code, ended.cause, ended.facts.over_disk) == (0, "", False)


def test_what_lies_in_tmp_and_home_counts(stage: Stage) -> None:
    exits = stage.exits()
    source = (
        "import os, pathlib\n"
        "for place in (os.environ.get('TMPDIR', '/tmp'), os.environ['HOME']):\n"
        "    [(pathlib.Path(place) / ('part-%d' % number)).write_bytes(bytes(1 << 20)) for number in range(5)]\n"
    )
    task_id = start(stage, "job-1.1", 0, source + WAITS)

    assert_ended_for_it(stage.exit_of(task_id, exits))


def test_a_later_agent_goes_on_measuring(tmp_path: Path, bring_up: BringUp) -> None:
    first = bring_up(tmp_path, max_disk_bytes=LIMIT)
    task_id = start(first, "job-1.1", 0, WAITS + WRITES.format(num=16) + WAITS)
    until(lambda: first.running(task_id), "the program has begun")
    first.cluster.close()
    second = bring_up(tmp_path, max_disk_bytes=LIMIT)
    exits = second.exits()

    second.finish(task_id, 0)

    assert_ended_for_it(second.exit_of(task_id, exits))


def test_one_file_cannot_be_longer_than_all_that_a_job_may_have(stage: Stage) -> None:
    source = (
        "try:\n"
        "    with (folder / 'one').open('wb') as file:\n"
        "        file.truncate(9 << 20)\n"
        "except OSError as error:\n"
        "    note(folder / 'report', error.strerror)\n"
    )
    task_id = start(stage, "job-1.1", 0, source)

    assert stage.read(task_id) == "File too large"


def test_a_measurement_that_does_not_end_ends_nobody_and_holds_up_no_exit(
    tmp_path: Path, bring_up: BringUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hanging(env: object, *, deadline_s: float) -> Inspector:
        assert deadline_s == limits.DISK_DEADLINE_S
        return Inspector({}, command=["/bin/sleep", "600"], deadline_s=0.2)

    monkeypatch.setattr(limits, "Inspector", hanging)
    stage = bring_up(tmp_path, max_disk_bytes=LIMIT)
    exits = stage.exits()
    large = start(stage, "job-1.1", 0, WRITES.format(num=16) + "note(folder / 'report', 1)\n" + WAITS)
    stage.read(large)
    for number in range(3):
        task_id = start(stage, f"job-2.{number}", 1, job="job-2")
        stage.finish(task_id, 0)
        assert stage.exit_of(task_id, exits).exit_code == 0

    stage.finish(large, 0)
    assert stage.exit_of(large, exits).cause == ""
