"""All memory of a task counts, whatever its processes do to be looked at no more."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pliant.cluster.agent.memory_use import used_bytes
from pliant.cluster.process import process_table

HOLD = "x = b'1' * (64 << 20); print(flush=True); import signal; signal.pause()"
NOBODY = 65534
UNSEEN = f"""
import ctypes, os, signal
os.geteuid() or os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
"""
DETACH = f"""
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        exec({HOLD!r})
    os._exit(0)
os.wait()
import signal; signal.pause()
"""


@contextmanager
def process_of(source: str) -> Iterator[int]:
    """Run a program in a session of its own until it has said something; end it with all its children."""
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
    finally:
        for pid in process_table().family(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_what_a_process_holds_counts() -> None:
    with process_of(HOLD) as pid:
        assert 64 << 20 < used_bytes(pid, None, process_table()) < 100 << 20


def test_a_process_that_nobody_may_look_into_counts_with_all_that_it_has_in_memory() -> None:
    with process_of(UNSEEN + HOLD) as pid:
        assert used_as_nobody(pid) > 64 << 20


def used_as_nobody(pid: int) -> int:
    """Return what somebody finds who is not root."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(writing, str(used_bytes(pid, None, process_table())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        used = told.read()
    os.waitpid(child, 0)
    return int(used)


def test_what_it_detached_into_a_session_of_its_own_counts_without_a_control_group() -> None:
    with process_of(DETACH) as pid:
        assert used_bytes(pid, None, process_table()) > 64 << 20
        (detached,) = [one for one in process_table().family(pid) if one != pid]
        assert os.getsid(detached) != pid


def test_what_has_ended_counts_as_nothing() -> None:
    with process_of(HOLD) as pid:
        pass
    deadline = time.monotonic() + 10.0
    while pid in process_table().family(pid):
        assert time.monotonic() < deadline
    assert used_bytes(pid, None, process_table()) == 0
