"""Finds environments that somebody else made, as far as the server may look: names of conda's, and what is refused.

Conda itself is not run, and only the places that the operator's own environment names are looked at. What lies at a
path that a person gives, a process of that person finds out (`probe.py`).
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_ROOTS: Final = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")


class EnvironmentNotFound(Exception):
    """There is no such environment; says what was looked for, and what to do."""


def require_outside(path: str, closed: Path) -> None:
    """Refuse a path in Pliant's own folder, or above it; looks at the path's words alone.

    Raises:
        EnvironmentNotFound: it is one, or it is no whole path.
    """
    given, own = Path(os.path.normpath(path)), (closed.absolute(), closed.resolve())
    if "\0" in path or not given.is_absolute():
        raise EnvironmentNotFound(f"{path!r} is no whole path; give one that begins with /")
    if any(given.is_relative_to(folder) or folder.is_relative_to(given) for folder in own):
        raise EnvironmentNotFound(
            f"{path!r} lies in Pliant's own folder, or above it: what jobs write there is no environment; give the "
            f"path of one elsewhere, or bring requirements with the job"
        )


def find_conda(name: str, env: Mapping[str, str]) -> str:
    """Return the folder of a conda environment, given its name.

    It is looked for where conda keeps environments: the folders of `CONDA_ENVS_PATH` (or `CONDA_ENVS_DIRS`), those
    in `~/.conda/environments.txt`, and `envs` below the installations that the server's environment points to.

    Raises:
        EnvironmentNotFound: there is none.
    """
    known = dict.fromkeys(path for path in _prefixes(env) if (path / "conda-meta").is_dir())
    named = [path for path in known if path.name == name or (name == "base" and path in _installations(env))]
    if not named:
        others = ", ".join(sorted(path.name for path in known)[:8]) or "none at all"
        raise EnvironmentNotFound(
            f"there is no conda environment {name!r} here ({others} found); give `conda:/path` of one"
        )
    return str(named[0])


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
