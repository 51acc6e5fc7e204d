"""A program of its own that looks whether a path is an environment: a virtual one, or one of conda's.

`python -I look_program.py`, with one line of JSON on its standard input (`Place`); it answers with one (`Sight`). It
runs as the person who named the path, so that its answer tells nothing that the person could not see without it. It
executes nothing of what it finds. Standard library only: it runs as a file, with nothing of Pliant imported.
"""

import glob
import hashlib
import json
import os
import re
import sys
from typing import Final, TypedDict

_MAX_LINE: Final = 1 << 16
_PYTHON: Final = re.compile(r"python[\d.]*t?")
_MAX_PACKAGES: Final = 100_000
_MARKS: Final = {"venv": ("pyvenv.cfg", "conda-meta"), "conda": ("conda-meta",)}


class Place(TypedDict):
    """Where to look."""

    kind: str
    """`venv` or `conda`."""
    path: str
    """A whole path: of the environment's folder, or of its interpreter."""


class Sight(TypedDict):
    """What is there."""

    prefix: str
    """The environment's folder, with no link on the way to it; empty if it is none."""
    python: str
    """The interpreter in it; this may be a link."""
    base: list[str]
    """What that link leads to, outside of the environment: a program and its libraries."""
    fingerprint: str
    """A digest of the interpreter and of the names and times of the packages: what was installed or removed shows."""
    problem: str
    """Why it cannot be used; empty if it can."""


def main() -> int:
    """Answer what is asked on standard input."""
    place: Place = json.loads(sys.stdin.buffer.readline(_MAX_LINE))
    print(json.dumps(look(place)), flush=True)
    return 0


def look(place: Place) -> Sight:
    """Return what lies at a path."""
    path = place["path"]
    is_folder = os.path.isdir(path)
    python = os.path.join(path, "bin", "python") if is_folder else path
    if not os.path.isfile(python):
        what = "has no bin/python" if is_folder else "is not there"
        return _refuse(f"{path!r} {what}; give the whole path of a virtual environment on the server's machine")
    programs = os.path.realpath(os.path.dirname(python))
    prefix = os.path.dirname(programs)
    if not any(os.path.exists(os.path.join(prefix, mark)) for mark in _MARKS[place["kind"]]):
        if place["kind"] == "conda":
            return _refuse(f"{path!r} is no conda environment: it has no folder conda-meta; check the path")
        return _refuse(
            f"{path!r} belongs to no virtual environment: {prefix!r} has no pyvenv.cfg; make one there "
            f"(`python -m venv`), or give the interpreter itself with `--python`"
        )
    found = os.path.join(programs, os.path.basename(python))
    if not (os.path.isfile(found) and os.access(found, os.X_OK)):
        return _refuse(f"{found!r} is not a program here; install Python in this environment")
    base = _base_of(found, prefix)
    return Sight(prefix=prefix, python=found, base=base, fingerprint=_fingerprint(prefix, found), problem="")


def _base_of(python: str, prefix: str) -> list[str]:
    """Return what a virtual environment's interpreter leads to, if that is another Python with its libraries."""
    real = os.path.realpath(python)
    folder, name = os.path.split(real)
    libraries = os.path.join(os.path.dirname(folder), "lib")
    outside = not real.startswith(f"{prefix}/")
    if outside and os.path.basename(folder) == "bin" and _PYTHON.fullmatch(name) and os.path.isdir(libraries):
        return [real, libraries]
    return []


def _fingerprint(prefix: str, python: str) -> str:
    """Return a digest of what an environment consists of, as far as names, sizes and times tell."""
    marks = sorted({mark for marks in _MARKS.values() for mark in marks})
    digest = hashlib.sha256()
    for path in (python, *(os.path.join(prefix, mark) for mark in marks)):
        digest.update(_facts(path))
    for folder in sorted(glob.glob(os.path.join(glob.escape(prefix), "lib", "python*", "site-packages"))):
        for name in _packages(folder):
            digest.update(_facts(os.path.join(folder, name)))
    return digest.hexdigest()


def _packages(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [name for name in names if name != "__pycache__"][:_MAX_PACKAGES]


def _facts(path: str) -> bytes:
    try:
        found = os.stat(path)
    except OSError:
        return f"{path!r} is not there\n".encode()
    return f"{path!r} {found.st_ino} {found.st_size} {found.st_mtime_ns}\n".encode()


def _refuse(problem: str) -> Sight:
    return Sight(prefix="", python="", base=[], fingerprint="", problem=problem)


if __name__ == "__main__":
    sys.exit(main())
