"""What a model says of itself: of `platform`, `inputs`, `outputs`, `max_batch_size` and `decoupled` what makes sense.

People's code says it, and it is shown on terminals and pages: a text is one line of printable characters, and all
together is short.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

_MOST: Final = 1000
"""Tensors."""
_MOST_DIMENSIONS: Final = 32
_MOST_CHARACTERS: Final = 200
_MOST_BYTES: Final = 64 << 10
"""Of all tensors as JSON: the server is told of every kernel's, and remembers them."""


def clean_metadata(said: object) -> dict[str, Any]:
    """Return what of it makes sense; what does not is left out."""
    if not isinstance(said, Mapping):
        return {}
    cleaned: dict[str, Any] = {}
    if (platform := _text(said.get("platform"))) is not None:
        cleaned["platform"] = platform
    for key in ("inputs", "outputs"):
        if isinstance(said.get(key), list | tuple):
            cleaned[key] = [one for one in map(_tensor, said[key][:_MOST]) if one is not None]
    most = said.get("max_batch_size")
    if isinstance(most, int) and not isinstance(most, bool) and 0 <= most < 1 << 31:
        cleaned["max_batch_size"] = most
    if said.get("decoupled") is True:
        cleaned["decoupled"] = True
    if len(json.dumps(cleaned)) > _MOST_BYTES:
        cleaned.pop("inputs", None)
        cleaned.pop("outputs", None)
    return cleaned


def _tensor(said: object) -> dict[str, Any] | None:
    if not isinstance(said, Mapping):
        return None
    name, datatype, shape = _text(said.get("name")), _text(said.get("datatype")), said.get("shape")
    if name is None or datatype is None or not isinstance(shape, list | tuple) or len(shape) > _MOST_DIMENSIONS:
        return None
    if not all(isinstance(size, int) and -1 <= size < 1 << 63 for size in shape):
        return None
    return {"name": name, "datatype": datatype, "shape": list(shape)}


def _text(said: object) -> str | None:
    return said if isinstance(said, str) and len(said) <= _MOST_CHARACTERS and said.isprintable() else None
