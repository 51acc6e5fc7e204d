"""A script as a program of its own that need not import torch: a fork of a process that has, as every task is.

What a script does where nothing at all is imported is shown where it is run by an interpreter: once per kind of script.
"""

import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import torch
from tests.forks import FORKS

LIMIT_S: Final = 120.0


def run_script(
    script: Path, *args: str, folder: Path, env: Mapping[str, str], warnings_fail: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder with nothing but this environment; return how it ended and what it printed.

    Raises:
        AssertionError: it has not ended after `LIMIT_S`.
    """
    with TemporaryDirectory() as told:
        out, err = Path(told, "out"), Path(told, "err")
        program = FORKS.Process(
            target=_become, args=(str(script), args, str(folder), dict(env), str(out), str(err), warnings_fail)
        )
        program.start()
        program.join(LIMIT_S)
        if program.exitcode is None:
            program.kill()
            program.join()
            raise AssertionError(f"{script.name} ran for {LIMIT_S:g} s\n{out.read_text()}\n{err.read_text()}")
        return subprocess.CompletedProcess(args, program.exitcode, out.read_text(), err.read_text())


def _become(
    script: str, args: tuple[str, ...], folder: str, env: dict[str, str], out: str, err: str, warnings_fail: bool
) -> None:
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    paths = [str(Path(script).parent), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
    sys.argv = [script, *args]
    if "OMP_NUM_THREADS" in env:
        torch.set_num_threads(int(env["OMP_NUM_THREADS"]))  # torch has read the environment already
    if warnings_fail:
        warnings.simplefilter("error")
    runpy.run_path(script, run_name="__main__")
