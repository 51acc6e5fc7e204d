"""Runs the script of a plug-in that makes its command: once, at submission, as a limited process.

The script is the administrator's; what it is given is the person's. It gets the program's arguments as its own, and its
environment holds APP_NAME, MODEL (the program, relative to the code folder), GPU_PER_WORKER, NUM_WORKER, DLI_SHARED_FS
(the folder of frameworks), and REDIS_HOST and REDIS_PORT, which are empty: there is no Redis, processes meet at
MASTER_ADDR and MASTER_PORT. Of what it prints the last line counts that is a JSON object with `CMD`: a list of words,
or a text that is split as a shell would.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pliant.core.errors import InvalidInput
from pliant.ibm.rest.translate.arguments import split_words
from pliant.ibm.rest.translate.frameworks import Framework

PATIENCE_S: Final = 30.0
MAX_OUTPUT_BYTES: Final = 1 << 20
_LIMITS: Final = 'ulimit -t 10 && ulimit -v 2097152 && ulimit -f 4096 && ulimit -n 64 && exec "$@"'
"""Seconds of CPU, KiB of memory, blocks (of 512 or 1024 bytes) that it may write to a file, open files."""


def command(
    framework: Framework, *, model: str, num_workers: int, slots_per_worker: int, program: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that the generator of a framework makes.

    Raises:
        InvalidInput: it takes too long, fails, or prints no command.
    """
    script = framework.generator
    assert script is not None
    start = [str(script)] if os.access(script, os.X_OK) else [sys.executable, str(script)]
    env = {
        "PATH": os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH")))),
        "LANG": "C.UTF-8",
        "APP_NAME": framework.app_name,
        "MODEL": model,
        "GPU_PER_WORKER": str(slots_per_worker),
        "NUM_WORKER": str(num_workers),
        "DLI_SHARED_FS": str(script.parent),
        "REDIS_HOST": "",
        "REDIS_PORT": "",
    }
    with tempfile.TemporaryDirectory() as folder:
        text = _run([*start, *program], env, Path(folder), script.name)
    return _command(text, script.name)


def _run(argv: Sequence[str], env: Mapping[str, str], folder: Path, name: str) -> str:
    with (folder / "out").open("w+b") as out, (folder / "err").open("w+b") as err:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _LIMITS, "sh", *argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(env),
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _wrong(name, f"cannot be started: {error}") from error
        try:
            code = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise _wrong(name, f"was not done after {PATIENCE_S:g} s and was ended") from error
        finally:
            _end(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace"))
    if code != 0:
        said = (texts[1].strip() or texts[0].strip())[-300:]
        raise _wrong(name, f"ended with exit code {code}" + (f" and said {said!r}" if said else ""))
    return texts[0]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a process and its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def _command(text: str, name: str) -> tuple[str, ...]:
    for line in reversed(text.splitlines()):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        made = found.get("CMD") if isinstance(found, dict) else None
        words = split_words(made, field="CMD") if isinstance(made, str) else made
        if isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words):
            return tuple(words)
    raise _wrong(name, f'printed no line like {{"CMD": "PROGRAM ARGUMENTS"}}, but {text[-200:]!r}')


def _wrong(name: str, message: str) -> InvalidInput:
    return InvalidInput.at("frameworkCmdGenerator", f"{name} {message}")
