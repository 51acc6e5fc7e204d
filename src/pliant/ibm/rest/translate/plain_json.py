"""What of strangers' JSON can be kept: text that every database takes, finite numbers, and no deep nesting. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pliant.core.errors import InvalidInput

MAX_DEPTH: Final = 20


def require_plain(value: Mapping[str, Any], field: str) -> None:
    """Refuse JSON that cannot be kept as it is.

    Raises:
        InvalidInput: with the first reason.
    """
    if not _is_flat(value, MAX_DEPTH):
        raise InvalidInput.at(field, f"it is nested deeper than {MAX_DEPTH} levels; send less deep objects")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as error:
        message = f"it holds what is no JSON of others ({error}); send finite numbers, and text in Unicode"
        raise InvalidInput.at(field, message) from error
    if "\\u0000" in text.replace("\\\\", ""):  # without the backslashes that a text itself holds
        raise InvalidInput.at(field, "it holds a NUL character, which nothing here keeps; remove it")


def _is_flat(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(one, levels - 1) for one in inner)
