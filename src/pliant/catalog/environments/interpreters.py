"""Finds the interpreter of an environment that somebody else made: a virtual environment, or one of conda's.

It looks at files only; conda itself is not run. What the interpreter can do is tried elsewhere.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_ROOTS: Final = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")


class EnvironmentNotFound(Exception):
    """There is no such environment; says what was looked for, and what to do."""


def find_venv_python(path: str) -> str:
    """Return the interpreter of a virtual environment, given the whole path of its folder or of the interpreter.

    Raises:
        EnvironmentNotFound: there is none.
    """
    found = Path(path)
    python = found / "bin" / "python" if found.is_dir() else found
    if not python.is_file():
        what = "has no bin/python" if found.is_dir() else "is not there"
        raise EnvironmentNotFound(
            f"{path!r} {what}; give the whole path of a virtual environment on the server's machine"
        )
    return _require_program(python)


def find_conda_python(which: str, env: Mapping[str, str]) -> str:
    """Return the interpreter of a conda environment, given its name or its whole path.

    A name is looked for where conda keeps environments: the folders of `CONDA_ENVS_PATH` (or `CONDA_ENVS_DIRS`), those
    in `~/.conda/environments.txt`, and `envs` below the installations that the server's environment points to.

    Raises:
        EnvironmentNotFound: there is none.
    """
    if which.startswith("/"):
        prefix = Path(which)
        if not (prefix / "conda-meta").is_dir():
            raise EnvironmentNotFound(f"{which!r} is no conda environment: it has no folder conda-meta; check the path")
        return _require_program(prefix / "bin" / "python")
    known = dict.fromkeys(path for path in _prefixes(env) if (path / "conda-meta").is_dir())
    named = [path for path in known if path.name == which or (which == "base" and path in _installations(env))]
    if not named:
        others = ", ".join(sorted(path.name for path in known)[:8]) or "none at all"
        raise EnvironmentNotFound(
            f"there is no conda environment {which!r} here ({others} found); give `conda:/path` of one"
        )
    return _require_program(named[0] / "bin" / "python")


def _require_program(python: Path) -> str:
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise EnvironmentNotFound(f"{str(python)!r} is not a program here; install Python in this environment")
    return str(python)


def _prefixes(env: Mapping[str, str]) -> Iterator[Path]:
    folders = f"{env.get('CONDA_ENVS_PATH', '')}:{env.get('CONDA_ENVS_DIRS', '')}".split(":")
    roots = list(_installations(env))
    for folder in (*(Path(folder) for folder in folders if folder), *(root / "envs" for root in roots)):
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if path.is_dir())
    yield from roots
    if (home := env.get("HOME")) and (listed := Path(home) / ".conda" / "environments.txt").is_file():
        yield from (Path(line.strip()) for line in listed.read_text(errors="replace").splitlines() if line.strip())


def _installations(env: Mapping[str, str]) -> Iterator[Path]:
    if root := env.get("MAMBA_ROOT_PREFIX"):
        yield Path(root)
    if program := env.get("CONDA_EXE"):
        yield Path(program).parent.parent
    if prefix := env.get("CONDA_PREFIX"):
        yield Path(prefix).parent.parent if Path(prefix).parent.name == "envs" else Path(prefix)
    if home := env.get("HOME"):
        yield from (Path(home) / name for name in _ROOTS)
