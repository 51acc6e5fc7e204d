"""What the code of an algorithm is (`FoundCode`), as its process says when it is looked at, and as it is understood."""

import json
from dataclasses import dataclass
from typing import Final

from pliant.tune.plugins.failures import shown

MAX_BYTES: Final = 1 << 16
_MAX_PROBLEM: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCode:
    """What was found in a folder."""

    problem: str = ""
    """Why it cannot be used; empty if it can."""
    name: str = ""
    """Of its class, or of the function that makes it."""
    has_state: bool = False
    """It says itself what it continues from."""


def encode_found(found: FoundCode) -> bytes:
    """Return the line that says it."""
    said = {"problem": found.problem, "class": found.name, "has_state": found.has_state}
    return json.dumps(said).encode() + b"\n"


def decode_found(line: bytes) -> FoundCode:
    """Return what a line says. It comes from a process that has loaded a stranger's code.

    Raises:
        ValueError: it says nothing of the kind.
    """
    try:
        if len(line) > MAX_BYTES:
            raise ValueError(f"it has {len(line)} bytes")
        match json.loads(line):
            case {"problem": str() as problem, "class": str() as name, "has_state": bool() as has_state}:
                return FoundCode(problem=shown(problem, _MAX_PROBLEM), name=shown(name, 100), has_state=has_state)
            case _:
                raise ValueError("other fields are there")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{line[:100]!r} does not say what code is: {error!s:.200}") from error
