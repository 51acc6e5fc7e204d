"""What a job means by its environment: its one string taken apart. Pure."""

import re
from dataclasses import dataclass
from typing import Final

from pliant.core.errors import Problem
from pliant.core.registry import NAME

REQUIREMENTS: Final = "requirements:"
CONDA: Final = "conda:"


@dataclass(frozen=True, slots=True)
class Named:
    """A registered environment."""

    name: str


@dataclass(frozen=True, slots=True)
class Venv:
    """A virtual environment, or the Python of one."""

    path: str


@dataclass(frozen=True, slots=True)
class Conda:
    """A conda environment by name or by path."""

    which: str


@dataclass(frozen=True, slots=True)
class RequirementsFile:
    """A file of the submitted code."""

    file: str


Source = Named | Venv | Conda | RequirementsFile


def parse_source(text: str) -> Source | Problem:
    """Return what a job's environment means, or why it means nothing."""
    if text.startswith(REQUIREMENTS):
        file = text.removeprefix(REQUIREMENTS)
        return RequirementsFile(file) if file else _wrong(f"{text!r} names no file; give `requirements:FILE`")
    if text.startswith(CONDA):
        which = text.removeprefix(CONDA)
        if which.startswith("/") or re.fullmatch(NAME, which):
            return Conda(which)
        return _wrong(f"{text!r} names no conda environment; give `conda:NAME` or `conda:/path`")
    if text.startswith("/"):
        return Venv(text)
    if re.fullmatch(NAME, text):
        return Named(text)
    return _wrong(
        f"{text!r:.200} is no environment; give the name of a registered one, the whole path of a virtual environment, "
        f"`conda:NAME`, or `requirements:FILE` with a file of the code folder"
    )


def _wrong(message: str) -> Problem:
    return Problem(field="environment", message=message)
