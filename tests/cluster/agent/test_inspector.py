"""A process looks at tasks' files; whatever happens to it, the agent waits for nothing."""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pliant.cluster.agent.inspection import Inspect, Inspected
from pliant.cluster.agent.inspector import COMMAND, Inspector
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.ports import ExitFacts
from pliant.files import step_file

HANGS_AT_STUCK = """
import socket, sys, time
from pliant.cluster.agent import inspection
look = inspection.collect
def collect(record, **more):
    while record.task_id == "stuck":
        time.sleep(60)
    return look(record, **more)
inspection.collect = collect
inspection.serve(socket.socket(fileno=int(sys.argv[1])))
"""
DIES_AT_STUCK = HANGS_AT_STUCK.replace("while record", "if record").replace("time.sleep(60)", "sys.exit(1)")
HANG_S = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@contextmanager
def inspector_of(clock: Clock, command: Sequence[str] = COMMAND) -> Iterator[Inspector]:
    inspector = Inspector(os.environ, command=command, deadline_s=10.0, monotonic=clock)
    yield inspector
    inspector.close()


@pytest.fixture
def result(tmp_path: Path) -> Path:
    log = tmp_path / "job" / "result" / "log"
    log.mkdir(parents=True)
    (log / "stderr").write_text("it broke\n")
    os.utime(log / "stderr", (5.0, 5.0))
    (log / step_file.NAME).write_bytes(step_file.pack(7))
    return tmp_path / "job" / "result"


def left(result: Path, task_id: str = "job-1.1") -> Inspect:
    """Return the question what a task left."""
    record = Record(task_id=TaskId(task_id), slots=(0,), log_dir=str(result / "log"), result_dir=str(result))
    return Inspect(record=record)


def receive(inspector: Inspector, number: int = 1) -> list[tuple[str, ExitFacts | None]]:
    """Wait for so many answers."""
    found: list[tuple[str, ExitFacts | None]] = []
    deadline = time.monotonic() + HANG_S
    while len(found) < number and time.monotonic() < deadline:
        select.select([inspector], [], [], 0.2)
        found += answered(inspector)
    assert len(found) == number
    return found


def answered(inspector: Inspector) -> list[tuple[str, ExitFacts | None]]:
    return [
        (asked.record.task_id, answer.facts if isinstance(answer, Inspected) else None)
        for asked, answer in inspector.receive()
        if isinstance(asked, Inspect)
    ]


FACTS = ExitFacts(step=7, stderr="it broke\n", stderr_at=5.0)


def test_it_finds_what_tasks_left_in_their_order(clock: Clock, result: Path) -> None:
    with inspector_of(clock) as inspector:
        for number in range(20):
            inspector.ask(left(result, f"job-1.{number}"))
        assert receive(inspector, 20) == [(f"job-1.{number}", FACTS) for number in range(20)]
        assert inspector.wait_s() is None
        inspector.ask(left(result))
        assert receive(inspector) == [("job-1.1", FACTS)]


@pytest.mark.parametrize("program", [HANGS_AT_STUCK, DIES_AT_STUCK])
def test_one_that_is_held_up_or_ends_is_replaced_and_the_others_are_looked_at(
    clock: Clock, result: Path, program: str
) -> None:
    with inspector_of(clock, [sys.executable, "-P", "-c", program]) as inspector:
        for task_id in ("job-1.1", "stuck", "job-1.2", "job-1.3"):
            inspector.ask(left(result, task_id))
        assert receive(inspector) == [("job-1.1", FACTS)]
        if program == HANGS_AT_STUCK:
            assert inspector.receive() == []
            assert inspector.wait_s() == 10.0
            clock.now += 10.5
            assert inspector.wait_s() == 0.0
        assert receive(inspector, 3) == [("stuck", None), ("job-1.2", FACTS), ("job-1.3", FACTS)]


def test_many_questions_to_one_that_reads_nothing_hold_up_nobody(clock: Clock, result: Path) -> None:
    with inspector_of(clock, [sys.executable, "-c", "import time; time.sleep(600)"]) as inspector:
        for number in range(3000):  # far more than a socket holds
            inspector.ask(left(result, f"job-1.{number}"))
        assert inspector.receive() == []
        clock.now += 10.5
        assert answered(inspector) == [("job-1.0", None)]


def test_one_that_cannot_be_started_leaves_nothing_known(clock: Clock, result: Path) -> None:
    with inspector_of(clock, ["/no/such/program"]) as inspector:
        inspector.ask(left(result))
        assert inspector.receive() == []
        clock.now += 10.5
        assert answered(inspector) == [("job-1.1", None)]


def test_one_that_answers_nonsense_is_replaced(clock: Clock, result: Path) -> None:
    program = "import socket, sys; end = socket.socket(fileno=int(sys.argv[1])); end.recv(1); end.send(b'{}\\n')"
    with inspector_of(clock, [sys.executable, "-c", program]) as inspector:
        inspector.ask(left(result))
        assert receive(inspector) == [("job-1.1", None)]


@pytest.mark.parametrize("noticed", [True, False])
def test_one_that_is_killed_between_questions_costs_none_of_them(clock: Clock, result: Path, noticed: bool) -> None:
    with inspector_of(clock) as inspector:
        inspector.ask(left(result))
        receive(inspector)
        assert inspector._running is not None
        process = inspector._running.process
        process.send_signal(signal.SIGKILL)
        process.wait()
        if noticed:
            assert inspector.receive() == []
        inspector.ask(left(result))
        assert receive(inspector) == [("job-1.1", FACTS)]


def test_it_ends_with_its_agent(clock: Clock, result: Path) -> None:
    with inspector_of(clock) as inspector:
        inspector.ask(left(result))
        receive(inspector)
        assert inspector._running is not None
        inspector._running.channel.close()
        assert inspector._running.process.wait(HANG_S) == 0
        inspector._running = None
