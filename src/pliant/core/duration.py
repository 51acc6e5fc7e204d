"""Lengths of time as people read and write them; here, because the server and the command line do the same."""

import re
from typing import Final

from pliant.core.errors import InvalidInput

_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_PART: Final = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>s|min|m|h|d|)", re.IGNORECASE)


def duration(seconds: float) -> str:
    """Return a length of time in the two largest units: `8 s`, `2 min 05 s`, `3 h 20 min`, `4 d 02 h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02} h"


def rough_duration(seconds: float) -> str:
    """Return an estimated length of time, no finer than anybody knows: `40 s`, `12 min`, `2 h 10 min`, `3 d 04 h`."""
    if seconds < 57.5:
        return f"{max(5, 5 * round(seconds / 5))} s"
    if (minutes := round(seconds / 60)) < 60:
        return f"{minutes} min"
    if (tens := round(seconds / 600)) < 24 * 6:
        return f"{tens // 6} h {tens % 6 * 10:02} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02} h"


def seconds_of(text: str, field: str) -> float:
    """Return how many seconds a length of time like `90`, `90s`, `30m`, `1h30m` or `2d` is.

    Raises:
        InvalidInput: it is none; names the field.
    """
    total, rest = 0.0, text.strip()
    while found := _PART.match(rest):
        total += float(found["number"]) * _UNITS[found["unit"].lower()]
        rest = rest[found.end() :].strip()
    if rest or not text.strip():
        raise InvalidInput.at(field, f"{text!r} is no length of time; give one like 90s, 30m, 1h30m or 2d")
    return total
