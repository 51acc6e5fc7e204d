"""The file `config.json` of a trial whose script reads its values from there: one JSON object, in the job's code.

It is put into the code that was just unpacked, before anybody else has written there, and before it is noted what was
submitted: so it is no result of the job, and a job that runs the trial again gets it with the code.
"""

import json
import os
from pathlib import Path
from typing import Final

from pliant.core.errors import Problem
from pliant.core.job import JobSpec
from pliant.files.folder import write_whole

CONFIG: Final = "config.json"
_MODE: Final = 0o644
"""As files have that were unpacked."""


def reads_config(spec: JobSpec) -> bool:
    """Tell whether the script of a job gets its values as a file."""
    return spec.trial is not None and "config" in spec.trial.pass_as


def put_config(spec: JobSpec, code: Path) -> tuple[Problem, ...]:
    """Write the values of a trial into its code, in the place of a file of that name; return what is wrong with that.

    Raises:
        OSError: the disk does not take it.
    """
    if spec.trial is None or not reads_config(spec):
        return ()
    place = code / CONFIG
    if place.is_dir() and not os.path.islink(place):
        message = f"the code has a folder {CONFIG!r}, where the values of a trial would be; call it otherwise"
        return (Problem(field="pass_as", message=message),)
    write_whole(place, json.dumps(dict(spec.trial.values), indent=2).encode() + b"\n", durable=False, mode=_MODE)
    return ()
