"""Sizes in bytes as people read and write them; here, because an agent, a server and the command line do the same."""

import re
from typing import Final

from pliant.core.errors import InvalidInput

_SIZE: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[KMGT])?(?P<binary>i)?B?", re.IGNORECASE)


def size(num_bytes: int) -> str:
    """Return a size in bytes, KiB, MiB or GiB, with a decimal below a hundred: `1 byte`, `2.0 KiB`, `150 MiB`."""
    if num_bytes < 1024:
        return f"{num_bytes} byte" if num_bytes == 1 else f"{num_bytes} bytes"
    value, unit = num_bytes / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if value >= 1024:
            value, unit = value / 1024, larger
    return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"


def num_bytes_of(text: str, field: str) -> int:
    """Return how many bytes a size like 4GB, 512MiB or 1000 is.

    Raises:
        InvalidInput: it is no size; names the field.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput.at(field, f"{text!r} is no size; give one like 4GB or 512MiB")
    base = 1024 if found["binary"] else 1000
    power = "KMGT".index(found["unit"].upper()) + 1 if found["unit"] else 0
    return round(float(found["number"]) * float(base**power))
