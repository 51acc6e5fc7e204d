"""The files of a trial whose script reads its values from there, in the job's code.

`config.json` is one JSON object with them. Of a model, `ps.conf` and `parameters.json` are what was entered for a
training, with the values of the trial in its place; the second has to be there already.

They are put into the code that was just unpacked, before anybody else has written there, and before it is noted what
was submitted: so they are no results of the job, and a job that runs the trial again gets them with the code.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pliant.core.entered import PARAMETERS, files_of, with_values
from pliant.core.errors import Problem
from pliant.core.job import JobSpec
from pliant.core.space import Values
from pliant.files.folder import write_whole
from pliant.files.untrusted.opening import open_file
from pliant.files.untrusted.path import UntrustedPath

CONFIG: Final = "config.json"
_MODE: Final = 0o644
"""As files have that were unpacked."""
_MAX_ENTERED_BYTES: Final = 4 << 20


def reads_files(spec: JobSpec) -> bool:
    """Tell whether the script of a job gets its values as files."""
    return spec.trial is not None and bool({"config", "model"} & {*spec.trial.pass_as})


def put_values(spec: JobSpec, code: Path) -> tuple[Problem, ...]:
    """Write the values of a trial into its code, in the place of files of those names; return what is wrong with that.

    Raises:
        OSError: the disk does not take it.
    """
    if spec.trial is None or not reads_files(spec):
        return ()
    files: dict[str, bytes] = {}
    problems: list[Problem] = []
    if "config" in spec.trial.pass_as:
        files[CONFIG] = json.dumps(dict(spec.trial.values), indent=2).encode() + b"\n"
    if "model" in spec.trial.pass_as:
        entered, wrong = _entered(code, spec.trial.values)
        files.update(entered)
        problems += wrong
    for name, content in files.items():
        place = code / name
        if place.is_dir() and not os.path.islink(place):
            message = f"the code has a folder {name!r}, where the values of a trial would be; call it otherwise"
            problems.append(Problem(field="pass_as", message=message))
        elif not problems:
            write_whole(place, content, durable=False, mode=_MODE)
    return tuple(problems)


def _entered(code: Path, values: Values) -> tuple[Mapping[str, bytes], tuple[Problem, ...]]:
    """Return the files of a model's training with the values of a trial, and what is wrong with that."""
    try:
        entered, problems = with_values(_read(code), values)
        return ({}, problems) if problems else (files_of(entered), ())
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        said = f"the code has no {PARAMETERS} that can be read ({why!s:.200}); take code that a model has run"
        return {}, (Problem(field="pass_as", message=said),)


def _read(code: Path) -> Mapping[str, Any]:
    with open_file(UntrustedPath(code, PARAMETERS)) as file:
        content = file.read_at(0, _MAX_ENTERED_BYTES + 1)
    if len(content) > _MAX_ENTERED_BYTES:
        raise ValueError(f"it is longer than {_MAX_ENTERED_BYTES:,} bytes")
    entered = json.loads(content)
    return entered if isinstance(entered, dict) else {}
