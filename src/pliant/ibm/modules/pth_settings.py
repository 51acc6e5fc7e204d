"""Reads `ps.conf`: where it is, its lines, and values of a kind, each with an error that says what to do."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

from pliant.core.errors import InvalidInput, NotFound

FILE_NAME: Final = "ps.conf"
_TRUE: Final = frozenset({"1", "true", "yes"})

T = TypeVar("T", int, float)


def settings() -> dict[str, str]:
    """Return the keys and values of the first `ps.conf` that exists; empty if there is none.

    Raises:
        InvalidInput: a line of it is not `key=value`.
    """
    path = next((place for place in places() if place.is_file()), None)
    if path is None:
        return {}
    found: dict[str, str] = {}
    for line_number, line in enumerate(path.read_text().splitlines(), start=1):
        said = line.split("#", 1)[0].strip()
        if not said:
            continue
        key, sign, value = said.partition("=")
        if not sign:
            raise bad(f"{path}:{line_number}", f"expected key=value, found {said!r}")
        found[key.strip()] = value.strip()
    return found


def places(name: str = FILE_NAME) -> list[Path]:
    """Return where a file is looked for."""
    folders = (os.environ.get("PS_PATH"), str(Path.cwd()), os.environ.get("DLI_WORK_DIR"))
    return [place for folder in folders if folder for place in (Path(folder), Path(folder) / name)]


def text(found: Mapping[str, str], key: str) -> str:
    """Return the text of a key."""
    if not found.get(key):
        raise missing(key)
    return found[key]


def number(kind: type[T], found: Mapping[str, str], key: str) -> T:
    """Return the number of a key."""
    said = text(found, key)
    try:
        return kind(said)
    except ValueError as error:
        raise bad(key, f"{FILE_NAME} says {said!r}; give a number (Python's {kind.__name__})") from error


def numbers(kind: type[T], found: Mapping[str, str], key: str) -> list[T]:
    """Return the numbers of a key, separated by commas."""
    return [number(kind, {key: part.strip()}, key) for part in text(found, key).split(",")]


def flag(found: Mapping[str, str], key: str) -> bool:
    """Tell whether a key says yes; no if it is not there."""
    return found.get(key, "").lower() in _TRUE


def bad(field: str, message: str) -> InvalidInput:
    """Return the error for one wrong value."""
    return InvalidInput.at(field, message)


def missing(key: str, also: str = "") -> NotFound:
    """Return the error for a key that nobody set."""
    looked = ", ".join(str(place) for place in places() if place.name == FILE_NAME)
    return NotFound(
        f"the training asks for {key!r}, and no {FILE_NAME} sets it (looked for {looked}); add {key}=…{also}"
    )
