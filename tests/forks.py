"""Processes that need not import torch and Pliant: forks of one that has, as every task is.

The servers of trainings that are hurt are cold: a warm one is there long before its zygote is, so what its tasks are at
when it is killed is another thing than with people. So is what a command starts, as `pliant up` does.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

FORKS: Final = multiprocessing.get_context("forkserver")
"""Where processes come from that need not import these."""
FORKS.set_forkserver_preload(
    ["torch", "torch._dynamo", "pliant.train", "pliant.entry.task", "pliant.entry.server.process"]
)


class WarmModule:
    """`python -P -m …`, with what `subprocess.Popen` tells of a process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        out: Path | None = None,
    ) -> None:
        """Start it.

        Args:
            command: a module and its arguments.
            env: its whole environment.
            out: the file that takes what it prints and logs.
        """
        place = os.getcwd(), _umask()
        self._process = FORKS.Process(target=_become_module, args=(list(command), dict(env), out, place))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, negative for the signal that it ended by; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


def _become_module(command: list[str], env: dict[str, str], out: Path | None, place: tuple[str, int]) -> None:
    if out is not None:
        for descriptor in (1, 2):
            os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    folder, mask = place
    os.chdir(folder)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)
