"""Starts the processes of a peer and sees that none is left behind, whatever they start themselves.

Every process of a session carries a mark in its environment, which its children inherit; the sweep at the end finds
whoever still carries it, and ends it by its id.
"""

import compileall
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pliant.entry.heap import BLOCK_BYTES, KEPT_BYTES

MARK = "PLIANT_BENCH_SESSION"
ROOT = Path(__file__).parents[2]
END_S = 10.0


@dataclass(slots=True)
class Processes:
    """The processes of one session; their output goes to one file."""

    output: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        clean_up_on_sigterm()
        compileall.compile_dir(ROOT / "src", quiet=2)  # as pip does: else every process would compile what it imports

    def start(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, pipe: bool = False
    ) -> "subprocess.Popen[bytes]":
        """Start a program; its standard input is a pipe or nothing."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PLIANT_", "RAY_"))}
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                list(map(str, argv)),
                stdin=subprocess.PIPE if pipe else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.output.parent,
                env={**inherited, **SETTINGS, **(env or {}), MARK: self.mark},
            )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End everything that was started and what it started: politely first, then not."""
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + END_S
        for process in self.started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
        while pids := marked(self.mark):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.started:
                process.poll()  # or it would stay as a zombie
            time.sleep(0.05)

    def tail(self, num_lines: int = 12) -> str:
        """Return the end of what they printed."""
        return "\n".join(self.output.read_text(errors="replace").splitlines()[-num_lines:])


def clean_up_on_sigterm() -> None:
    """See that a benchmark which is ended leaves nothing behind: SIGTERM unwinds it like an error."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(143)


COMPUTING = {
    "OMP_NUM_THREADS": "1",
    "THP_MEM_ALLOC_ENABLE": "1",
    "MALLOC_MMAP_THRESHOLD_": str(BLOCK_BYTES),
    "MALLOC_TRIM_THRESHOLD_": str(KEPT_BYTES),
}
"""One thread computes, large tensors lie in large pages, and freed memory is kept, as in tasks."""
SETTINGS = {
    **COMPUTING,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "PYTHONUNBUFFERED": "1",
}
"""Of every process; everything stays on this machine."""


def marked(mark: str) -> list[int]:
    """Return the live processes that carry this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found
