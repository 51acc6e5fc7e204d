"""Runs the script of a plug-in that makes its command: once, at submission, as a limited process of the person's.

The script is the administrator's; what it is given is the person's, and may mislead it: so it runs as that person, and
reads the folder of frameworks and nothing else of the server's. It gets the program's arguments as its own, and its
environment holds APP_NAME, MODEL (the program, relative to the code folder), GPU_PER_WORKER, NUM_WORKER, DLI_SHARED_FS
(the folder of frameworks), and REDIS_HOST and REDIS_PORT, which are empty: there is no Redis, processes meet at
MASTER_ADDR and MASTER_PORT. Of what it prints the last line counts that is a JSON object with `CMD`: a list of words,
or a text that is split as a shell would.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pliant.catalog.children.child import Child, ChildProgram
from pliant.catalog.children.reach import AsPerson, ChildIsolation, ChildReach
from pliant.catalog.children.sinks import TailSink
from pliant.catalog.children.work_folder import work_folder
from pliant.core.errors import InvalidInput, Unavailable
from pliant.ibm.rest.translate.arguments import split_words
from pliant.ibm.rest.translate.frameworks import Framework

PATIENCE_S: Final = 30.0
MAX_OUTPUT_BYTES: Final = 1 << 20
_LIMITS: Final = 'ulimit -t 10 && ulimit -v 2097152 && ulimit -f 4096 && ulimit -n 64 && exec "$@"'
"""Seconds of CPU, KiB of memory, blocks (of 512 or 1024 bytes) that it may write to a file, open files."""


def command(
    framework: Framework,
    *,
    model: str,
    num_workers: int,
    slots_per_worker: int,
    program: Sequence[str],
    person: str,
    isolation: ChildIsolation,
) -> tuple[str, ...]:
    """Return the command that the generator of a framework makes for a person.

    Raises:
        InvalidInput: it takes too long, fails, or prints no command.
        Unavailable: there is no room to run it.
    """
    script = framework.generator
    assert script is not None
    start = [str(script)] if os.access(script, os.X_OK) else [sys.executable, str(script)]
    made = ChildProgram(
        command=["/bin/sh", "-c", _LIMITS, "sh", *start, *program],
        env={
            "PATH": os.pathsep.join(filter(None, (str(Path(sys.executable).parent), os.environ.get("PATH")))),
            "LANG": "C.UTF-8",
            "APP_NAME": framework.app_name,
            "MODEL": model,
            "GPU_PER_WORKER": str(slots_per_worker),
            "NUM_WORKER": str(num_workers),
            "DLI_SHARED_FS": str(script.parent),
            "REDIS_HOST": "",
            "REDIS_PORT": "",
        },
        limit_s=PATIENCE_S,
        niceness=0,
    )
    return _command(_run(made, script, AsPerson(person), isolation), script.name)


def _run(program: ChildProgram, script: Path, person: AsPerson, isolation: ChildIsolation) -> str:
    out, err = TailSink(MAX_OUTPUT_BYTES), TailSink(MAX_OUTPUT_BYTES)
    try:
        with work_folder(Path(tempfile.gettempdir()), isolation, person) as home:
            reach = ChildReach(user=person, home=home, reads=(str(script.parent),))
            code = Child().run(isolation.confine(program, reach), out, err)
    except ValueError as error:
        raise _wrong(script.name, f"cannot be started: {error}") from error
    except OSError as error:
        raise Unavailable(f"{script.name} cannot be started: {error.strerror}; try again later") from error
    if code is None:
        raise _wrong(script.name, f"was not done after {PATIENCE_S:g} s and was ended")
    if code != 0:
        said = (err.text.strip() or out.text.strip())[-300:]
        raise _wrong(script.name, f"ended with exit code {code}" + (f" and said {said!r}" if said else ""))
    return out.text


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
