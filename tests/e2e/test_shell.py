"""`pliant shell`, as people use it: real terminals and pipes, a real server, and the walls of this machine."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from tests.e2e.pool import PYTHON, Pool, clean_env

from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.event import EventKind
from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
HERE = Path(__file__).parent


@pytest.fixture
def job_id(pool: Pool, client: Client) -> str:
    """A job of one process that waits for ever."""
    return _submit(pool, client, 1)


def _submit(pool: Pool, client: Client, size: int, env: Mapping[str, str] | None = None) -> str:
    request = JobRequest(script="waits.py", min_tasks=size, max_tasks=size, fixed=True, env=dict(env or {}))
    made = client.submit(HERE / "waits.py", request).id
    pool.until(lambda: client.job(made).job.state is JobState.RUNNING, "it runs")
    return made


def command(pool: Pool, *args: str) -> list[str]:
    return [PYTHON, "-P", "-m", "pliant.cli.app", "--home", str(pool.home), "shell", *args]


def piped(pool: Pool, *args: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        command(pool, *args), input=given, capture_output=True, env=clean_env(), timeout=60, check=False
    )


@dataclass
class Terminal:
    """A terminal on which a command runs, and what it has shown."""

    process: "subprocess.Popen[bytes]"
    file: int
    theirs: int
    seen: bytes = b""

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def until(self, text: str, seconds: float = 30.0) -> None:
        """Read until a text is shown."""
        deadline = time.monotonic() + seconds
        while text.encode() not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.seen!r}"
            with suppress(BlockingIOError):
                self.seen += os.read(self.file, 65536)
            time.sleep(0.01)

    def run(self, text: str, shown: str) -> None:
        """Type a line and wait for what it shows, which is not in the line itself."""
        self.seen = b""
        self.type(text + "\r")
        self.until(shown)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.theirs)[3] & termios.ICANON


@contextmanager
def on_terminal(args: list[str]) -> Iterator[Terminal]:
    """Run a command on a terminal of its own."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        args,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=clean_env() | {"TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    try:
        yield Terminal(process, ours, theirs)
    finally:
        process.kill()
        process.wait(30)
        os.close(ours)
        os.close(theirs)


@contextmanager
def reading(args: list[str]) -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes]]]:
    """Run a command whose input stays open, and yield it with its output."""
    process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_env())
    assert process.stdout is not None
    with process:
        try:
            yield process, process.stdout
        finally:
            process.kill()


def test_on_a_terminal_it_is_a_terminal_with_its_size_and_its_keys(pool: Pool, job_id: str) -> None:
    with on_terminal(command(pool, job_id)) as terminal:
        terminal.until(f"{job_id}.1:")
        terminal.run("stty size; echo TERM=$TERM", "33 101\r\nTERM=xterm-256color")
        assert terminal.is_raw()
        terminal.resize(40, 120)
        pool.until(lambda: _size(terminal) == "40 120", "the new size is there")
        terminal.run("(trap 'exit 3' INT; echo wai''ts; while :; do sleep 0.1; done)", "waits")
        terminal.type("\x03")
        terminal.run("echo co''de $?", "code 3")
        terminal.type("exit 7\r")
        assert terminal.process.wait(30) == 7
        assert not terminal.is_raw()


def _size(terminal: Terminal) -> str:
    terminal.run("echo si''ze $(stty size) th''ere", " there\r\n")
    return str(re.findall(r"size (\d+ \d+) there", terminal.seen.decode())[-1])


def test_on_pipes_bytes_arrive_as_they_are_and_stderr_apart_and_the_code_is_passed_on(pool: Pool, job_id: str) -> None:
    data = os.urandom(3 << 20)
    back = piped(pool, job_id, "--", "cat", given=data)
    assert back.returncode == 0, back.stderr
    assert back.stdout == data

    apart = piped(pool, job_id, given=b"echo out; echo err >&2; tty; exit 5")
    assert (apart.stdout, apart.stderr, apart.returncode) == (b"out\nnot a tty\n", b"err\n", 5)
    assert piped(pool, job_id, "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9
    missing = piped(pool, job_id, "--", "no-such-program")
    assert (missing.returncode, missing.stdout) == (127, b"")
    assert missing.stderr == b"no-such-program cannot be run: No such file or directory\n"


def test_it_is_where_and_what_the_task_is_and_within_the_same_walls(pool: Pool, client: Client) -> None:
    job_id = _submit(pool, client, 1, env={"MY_VALUE": "v", "MY_SECRET": "s"})
    (task,) = client.job(job_id).tasks
    look = (
        "import json, os; s = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines());"
        "print(json.dumps({'cwd': os.getcwd(), 'env': dict(os.environ), 'uid': os.getuid(),"
        "'status': {k: s[k].strip() for k in ('CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters')},"
        "'groups': sorted(os.getgroups()), 'cgroup': open('/proc/self/cgroup').read(),"
        "'tmp': os.stat('/tmp').st_ino, 'shm': os.stat('/dev/shm').st_ino}))"
    )
    looked = piped(pool, job_id, "--", "python", "-c", look)
    assert looked.returncode == 0, looked.stderr
    found = json.loads(looked.stdout)

    assert task.pid is not None
    status = _status(task.pid)
    assert found["status"] == {name: status[name] for name in found["status"]}
    assert str(found["uid"]) == status["Uid"].split()[0]
    assert " ".join(map(str, found["groups"])) == " ".join(sorted(status["Groups"].split(), key=int))
    assert found["cgroup"] == Path(f"/proc/{task.pid}/cgroup").read_text()
    assert [found["tmp"], found["shm"]] == [
        os.stat(f"/proc/{task.pid}/root{place}").st_ino for place in ("/tmp", "/dev/shm")
    ]
    assert found["cwd"] == os.readlink(f"/proc/{task.pid}/cwd")
    env = found["env"]
    assert (env["MY_VALUE"], env["MY_SECRET"], env["PLIANT_TASK_ID"]) == ("v", "s", f"{job_id}.1")
    assert not [name for name in env if name.startswith("PLIANT_TUNNEL") or name in ("RANK", "MASTER_PORT")]
    outside = piped(pool, job_id, "--", "cat", str(pool.home / "token"))
    assert outside.returncode == 1
    assert b"No such file" in outside.stderr or b"Permission denied" in outside.stderr


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_all_that_it_has_started_ends_with_it_however_it_ends(pool: Pool, client: Client, job_id: str) -> None:
    away = "setsid sh -c 'trap \"\" HUP TERM; echo pid $$; sleep 1000; sleep 1000' & sleep 1000"
    for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        with reading(command(pool, job_id, "--", "sh", "-c", away)) as (process, out):
            assert out.readline().startswith(b"pid ")
            assert len(_processes_of(client, job_id)) >= 4
            process.send_signal(end)
            process.wait(30)
            pool.until(lambda: len(_processes_of(client, job_id)) == 1, "only the task is left")

    with on_terminal(command(pool, job_id)) as terminal:
        terminal.until(f"{job_id}.1:")
        terminal.run("(setsid sleep 1000 &); nohup sleep 1000 & echo go''es", "goes")
        terminal.type("exit\r")
        terminal.process.wait(30)
        pool.until(lambda: len(_processes_of(client, job_id)) == 1, "only the task is left after exit")


def _processes_of(client: Client, job_id: str) -> list[int]:
    """Return the processes that run in the code folder of a job, which is where all of its begin."""
    (task,) = client.job(job_id).tasks
    folder = os.readlink(f"/proc/{task.pid}/cwd")
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd") == folder:
                found.append(int(pid))
    return found


def test_it_ends_with_its_task_and_says_so(pool: Pool, client: Client, job_id: str) -> None:
    with on_terminal(command(pool, job_id)) as terminal:
        terminal.until(f"{job_id}.1:")
        client.stop(job_id, now=True)
        assert terminal.process.wait(30) == 4
        terminal.until("the shell was ended: its task has ended")
        assert not terminal.is_raw()
    client.wait(job_id, timeout_s=30.0)


def test_endless_output_that_nobody_reads_fills_nothing_and_ends_with_its_reader(pool: Pool, client: Client) -> None:
    job_id = _submit(pool, client, 1)
    with reading(command(pool, job_id, "--", "yes")) as (process, out):
        assert out.read(1 << 20) == b"y\n" * (1 << 19)
        before = _resident(pool)
        pool.until(lambda: _is_waiting(client, job_id), "it writes no more")
        assert _resident(pool) - before < 32 << 20
        out.close()
        assert process.wait(30) == 128 + signal.SIGPIPE
    pool.until(lambda: len(_processes_of(client, job_id)) == 1, "only the task is left")


def _resident(pool: Pool) -> int:
    assert pool.process is not None
    return int(_status(pool.process.pid)["VmRSS"].split()[0]) << 10


def _is_waiting(client: Client, job_id: str) -> bool:
    """Tell whether a `yes` of a job uses no processor any more."""

    def used() -> list[str]:
        stats = [Path(f"/proc/{pid}/stat").read_text() for pid in _processes_of(client, job_id)]
        return [stat.split()[13] for stat in stats if "(yes)" in stat]

    first = used()
    time.sleep(0.5)
    return bool(first) and used() == first


def test_which_task_is_meant_is_said_and_what_is_wrong_is_answered(pool: Pool, client: Client) -> None:
    job_id = _submit(pool, client, 2)

    assert pool.cli("shell", job_id, "--", "true", code=2) == (
        f"error: --task: {job_id} has {job_id}.1, {job_id}.2; say which one is meant by its number\n"
    )
    assert (
        piped(pool, job_id, "--task", "2", "--", "sh", "-c", "echo $PLIANT_TASK_ID").stdout == f"{job_id}.2\n".encode()
    )
    assert pool.cli("shell", job_id, "--task", "9", code=3).startswith(f"error: {job_id}.9 does not run; {job_id} has")
    assert "no job is named 'job-999'" in pool.cli("shell", "999", code=3)
    client.stop(job_id, now=True)
    client.wait(job_id, timeout_s=30.0)
    assert f"{job_id} has already been stopped" in pool.cli("shell", job_id, code=5)
    entered = [event for event in client.events(job_id=job_id).events if event.kind is EventKind.TASK_ENTERED]
    assert [event.task_id for event in entered] == [f"{job_id}.2"]
