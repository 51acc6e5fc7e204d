"""How many values a stranger's JSON may hold, seen before it is parsed.

A value takes two bytes of a text and up to 70 of memory, so 64 MiB of `[],[],` would become 1.5 GiB. Before every value
but the first stands a comma, a colon or a bracket: to count those takes a few milliseconds.
"""

from typing import Final

from pliant.core.errors import InvalidInput

MAX_VALUES: Final = 8 << 20
"""They take 0.6 GiB at most. As many numbers of seven digits fill the usual limit of a body."""
_MARKS: Final = (b",", b":", b"[", b"{")


def require_few_values(text: bytes, field: str = "") -> None:
    """Raise if a text may hold very many values; marks within its strings count, too.

    Raises:
        InvalidInput: it may.
    """
    if len(text) > MAX_VALUES and (num := sum(map(text.count, _MARKS))) > MAX_VALUES:
        message = f"the JSON holds about {num} values; at most {MAX_VALUES} are taken, so send tensors as binary data"
        raise InvalidInput.at(field, message)
