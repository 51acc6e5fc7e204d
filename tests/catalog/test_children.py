"""Child processes: so many at a time, ended with all that they started, and bounded in what they say."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.waiting import until

from pliant.catalog.children.child import Child, ChildProgram, ChildStopped
from pliant.catalog.children.queue import ChildQueue
from pliant.catalog.children.sinks import LineSink, LogSink, TailSink
from pliant.cluster import process

SLOW = "sleep 600 & echo $! > {0}/pid; wait"
"""Starts another process, writes its number down, and is not done for ten minutes."""
SERVER = """
import sys
from pliant.catalog.children.child import Child, ChildProgram
Child().run(ChildProgram(command=[sys.executable, "-c", sys.argv[1], sys.argv[2]]), print)
"""
ENDS_WITH_SERVER = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
sys.stdin.read()
"""


def shell(script: str, given: bytes = b"", limit_s: float | None = None) -> ChildProgram:
    return ChildProgram(command=["sh", "-c", script], input=given, limit_s=limit_s)


def slow(folder: Path, limit_s: float | None = None) -> ChildProgram:
    folder.mkdir(exist_ok=True)
    return shell(SLOW.format(folder), limit_s=limit_s)


def noted(folder: Path) -> str:
    """Return the number that was written down; empty if none was, or not yet."""
    return (folder / "pid").read_text().strip() if (folder / "pid").exists() else ""


def is_gone(folder: Path) -> bool:
    return process.stamp(int(noted(folder))) is None


@pytest.fixture
def queue() -> Iterator[ChildQueue]:
    made = ChildQueue(2, "test")
    yield made
    made.close()


def test_a_program_gets_its_input_and_what_it_prints_goes_where_it_shall() -> None:
    lines: list[bytes] = []
    out, err = TailSink(), TailSink()
    script = 'read line; echo "got $line"; echo bad >&2; printf end; exit 3'
    assert Child().run(shell(script, b"the input\n"), out, err) == 3
    assert (out.text, err.text) == ("got the input\nend", "bad\n")
    assert Child().run(shell("echo one; echo two >&2"), LineSink(lines.append)) == 0
    assert sorted(lines) == [b"one", b"two"]


def test_a_program_that_ends_without_its_input_has_an_exit_code_all_the_same() -> None:
    assert Child().run(shell("exec 0<&-; exit 4", b"x" * 60_000), TailSink()) == 4
    out = TailSink()
    assert Child().run(ChildProgram(command=["/nowhere/program"]), out) == 127
    assert out.text == "/nowhere/program cannot be run: No such file or directory\n"


def test_a_program_is_nice_and_leads_a_group_of_its_own() -> None:
    out = TailSink()
    show = "import os; print(os.nice(0), os.getpgid(0) == os.getpid(), os.getcwd())"
    Child().run(ChildProgram(command=[sys.executable, "-c", f"import time; time.sleep(0.2); {show}"]), out)
    assert out.text.split() == [str(min(19, os.nice(0) + 10)), "True", "/"]


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    limit_s = 0.3
    while not noted(tmp_path):  # where little time is to be had it is ended before it has written anything
        assert Child().run(slow(tmp_path, limit_s), TailSink()) is None
        limit_s *= 2
    until(lambda: is_gone(tmp_path))


def test_what_a_program_leaves_running_is_ended_and_its_pipe_is_not_awaited(tmp_path: Path) -> None:
    out = TailSink()
    assert Child().run(shell(f"(sleep 600; echo late) & echo $! > {tmp_path}/pid; echo done"), out) == 0
    assert out.text == "done\n"
    until(lambda: is_gone(tmp_path))


DETACHES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        open(sys.argv[1] + "/new", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + "/new", sys.argv[1] + "/pid")
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1] + "/pid"):
    time.sleep(0.001)
exec(sys.argv[2])
"""


@pytest.mark.parametrize("then", ["", "os.kill(os.getpid(), 9)", "time.sleep(600)"], ids=["ends", "dies", "is stopped"])
def test_what_detaches_itself_is_ended_too(tmp_path: Path, then: str) -> None:
    child = Child()
    program = ChildProgram(command=[sys.executable, "-c", DETACHES, str(tmp_path), then])
    if then.startswith("time"):

        def stop() -> None:
            until(lambda: noted(tmp_path))
            child.stop("ada")

        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(ChildStopped):
            child.run(program, TailSink())
        stopper.join()
    else:
        assert child.run(program, TailSink()) == (-9 if then else 0)
    assert is_gone(tmp_path)


def test_what_detaches_itself_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    script = f"import sys; sys.argv[1:] = [{str(tmp_path)!r}, 'time.sleep(600)']\n{DETACHES}"
    server = subprocess.Popen([sys.executable, "-c", SERVER, script, ""])
    until(lambda: noted(tmp_path))
    server.send_signal(signal.SIGKILL)
    server.wait()
    until(lambda: is_gone(tmp_path))


def test_the_end_of_the_queue_ends_what_runs_at_once_and_never_begins_what_waits(
    queue: ChildQueue, tmp_path: Path
) -> None:
    stopped: list[str] = []

    def run(child: Child, folder: Path) -> None:
        try:
            child.run(slow(folder), TailSink())
        except ChildStopped as error:
            stopped.append(error.reason)

    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        queue.submit(folder.name, lambda child, folder=folder: run(child, folder))  # type: ignore[misc]
    until(lambda: all(map(noted, folders[:2])))
    began = time.monotonic()
    queue.close()
    assert time.monotonic() - began < 5
    assert stopped == ["", ""]
    assert not folders[2].exists()
    until(lambda: all(map(is_gone, folders[:2])))
    queue.submit("late", lambda child: stopped.append("never"))
    assert not queue.is_active("late")


def test_so_many_run_at_a_time_and_the_others_wait_in_their_order(queue: ChildQueue) -> None:
    go, ran = threading.Event(), list[str]()

    def work(key: str) -> Callable[[Child], object]:
        def wait(child: Child) -> None:
            ran.append(key)
            go.wait(40)

        return wait

    for key in "abcd":
        queue.submit(key, work(key))
    until(lambda: queue.num_ahead("d") == 2)
    assert sorted(ran) == ["a", "b"]
    assert (queue.num_ahead("a"), queue.num_ahead("other")) == (0, 0)
    assert queue.is_active("d")
    assert queue.stop("c", "ada", 1), "it had not begun"
    assert not queue.is_active("c")
    go.set()
    until(lambda: not queue.is_active("d"))
    assert sorted(ran) == ["a", "b", "d"]


def test_who_stops_a_child_waits_until_its_work_is_over(queue: ChildQueue, tmp_path: Path) -> None:
    reasons: list[str] = []

    def work(child: Child) -> None:
        with pytest.raises(ChildStopped) as first:
            child.run(slow(tmp_path), TailSink())
        with pytest.raises(ChildStopped):
            child.run(shell("true"), TailSink())
        reasons.append(first.value.reason)

    queue.submit("one", work)
    until(lambda: noted(tmp_path))
    assert not queue.stop("one", "ada", 30)
    assert reasons == ["ada"]
    until(lambda: is_gone(tmp_path))
    assert not queue.stop("one", "ada", 30), "nothing is left to be stopped"


def test_a_key_that_was_released_is_free_for_the_next(queue: ChildQueue) -> None:
    go = threading.Event()
    queue.submit("one", lambda child: go.wait(40))
    queue.release("one")
    assert not queue.is_active("one")
    queue.submit("one", lambda child: go.wait(40))
    go.set()
    until(lambda: not queue.is_active("one"))


def test_work_that_fails_leaves_the_queue_as_it_was(queue: ChildQueue) -> None:
    queue.submit("one", lambda child: [][1])
    until(lambda: not queue.is_active("one"))
    done = threading.Event()
    queue.submit("two", lambda child: done.set())
    assert done.wait(40)


def test_a_program_whose_server_is_killed_notices_it(tmp_path: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER, ENDS_WITH_SERVER, str(tmp_path / "pid")])
    until(lambda: noted(tmp_path))
    server.send_signal(signal.SIGKILL)
    server.wait()
    until(lambda: is_gone(tmp_path))


@given(pieces=st.lists(st.binary(max_size=8)), max_bytes=st.integers(1, 6))
def test_lines_are_handed_on_whole_or_cut_however_they_arrive(pieces: list[bytes], max_bytes: int) -> None:
    lines: list[bytes] = []
    sink = LineSink(lines.append, max_bytes)
    for piece in pieces:
        sink(piece)
    assert lines == [line[:max_bytes] for line in b"".join(pieces).split(b"\n")[:-1]]


@given(pieces=st.lists(st.binary(max_size=8)), max_bytes=st.integers(1, 20))
def test_a_tail_is_the_end_of_what_was_said(pieces: list[bytes], max_bytes: int) -> None:
    sink = TailSink(max_bytes)
    for piece in pieces:
        sink(piece)
    assert sink.text == b"".join(pieces)[-max_bytes:].decode("utf-8", "replace")


def test_a_log_ends_at_its_limit_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with closing(LogSink(path, 100)) as sink:
        assert Child().run(shell("head -c 60 /dev/zero; sleep 0.1; head -c 100000 /dev/zero"), sink) == 0
    written = path.read_bytes()
    assert (written.count(b"\0"), b"the rest is left out" in written, len(written) < 200) == (100, True, True)
