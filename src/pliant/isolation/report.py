"""What walls this machine can build around people's code: tried in a process of its own, not guessed from versions."""

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from typing import Final

from pliant.core.confinement import Confinement, IsolationMode, RunAs
from pliant.isolation import control_groups
from pliant.isolation.launcher import probing
from pliant.isolation.variables import allowed

_LIMIT_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationReport:
    """What people's processes on this machine get."""

    walls: tuple[str, ...]
    """Those there are, in words."""
    missing: tuple[str, ...]
    """Those that are not, in words; empty: all that matters is there."""


_NO_WALLS: Final = IsolationReport(walls=(), missing=("isolation is turned off",))


def walls_for(mode: IsolationMode, uid: int | None) -> IsolationReport:
    """Return what people's processes get here from somebody who was told this mode; see `report`."""
    return report(uid) if mode != "off" else _NO_WALLS


@cache
def report(uid: int | None) -> IsolationReport:
    """Return what the processes of a person get; it is tried once.

    Args:
        uid: such as people's processes run as; None: the server's own user.
    """
    folder = tempfile.mkdtemp(prefix="pliant-")
    try:
        command = probing(Confinement(user=None if uid is None else RunAs(uid=uid), hides=(folder,)))
        env = allowed(os.environ, ())  # the process becomes a person's, and what it knows they could read
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        if ran.returncode == 0:
            return _in_words(json.loads(ran.stdout), uid)
        why = ran.stderr.strip()[-200:]
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        why = str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return IsolationReport(walls=(), missing=(f"people's code cannot be kept apart at all ({why})",))


def _in_words(found: dict[str, object], uid: int | None) -> IsolationReport:
    walls = [
        "a user of its own for every person" if uid is not None else "",
        "/tmp, /dev/shm and a view of the disk of its own" if found["has_mounts"] else "",
        f"Landlock {found['landlock']}" if found["landlock"] else "",
        "a filter of system calls" if found["is_filtered"] else "",
        "control groups" if control_groups.find_parent() is not None else "",
    ]
    missing = found["missing"]
    assert isinstance(missing, list), "the launcher prints a list"
    return IsolationReport(walls=tuple(filter(None, walls)), missing=tuple(missing))
