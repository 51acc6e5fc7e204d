"""A task in a process that has imported torch and Pliant already, as those have that the zygote forks."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.forks import FORKS

from pliant.entry.task import main


@contextmanager
def warm_task(code: Path, env: Mapping[str, str], *argv: str) -> Iterator[ForkServerProcess]:
    """Run a script of this folder; whatever happens, it does not outlive the block."""
    process = FORKS.Process(target=_become_task, args=(code, env, argv))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def end(process: ForkServerProcess, code: Path, timeout_s: float) -> tuple[int, str, str]:
    """Wait for the end of a task; return its exit code and what it has printed."""
    process.join(timeout_s)
    assert process.exitcode is not None, "it does not end"
    return process.exitcode, (code / "stdout").read_text(), (code / "stderr").read_text()


def _become_task(code: Path, env: Mapping[str, str], argv: tuple[str, ...]) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(code / name, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(code)
    os.environ.clear()
    os.environ.update(env)
    sys.exit(main(argv))
