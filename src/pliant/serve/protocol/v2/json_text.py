"""JSON of strangers: UTF-8, an object at the top, no NaN, no name twice, lists in lists only so deep, so many values.

Both are measured before Python's parser sees the text. The parser calls itself, and how deep it may do so is a setting
that a model's code can change.
"""

import json
from collections import Counter
from typing import Any, Final, NoReturn

import numpy as np

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.json_size import require_few_values
from pliant.serve.protocol.v2.fields import show

MAX_DEPTH: Final = 64
_MARKS: Final = b'[]{}"'
_NO_MARKS: Final = bytes(sorted(set(range(256)) - set(_MARKS)))
_STEP: Final = np.zeros(256, np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1


def parse_object(text: bytes, field: str = "") -> dict[str, Any]:
    """Return the object that a text is.

    Raises:
        InvalidInput: it is none.
    """
    if not text.strip():
        raise InvalidInput.at(field, "the JSON is empty; send an object with `inputs`")
    require_few_values(text, field)
    require_shallow(text, field)
    try:
        parsed = _DECODER.decode(text.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput.at(field, f"byte {error.start} of the JSON is not UTF-8; send UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput.at(field, f"this is no JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise InvalidInput.at(field, f"this is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidInput.at(field, f"the JSON is {show(parsed)}; send an object with `inputs`")
    return parsed


def require_shallow(text: bytes, field: str = "") -> None:
    """Raise if lists and objects are nested too deep in a text.

    Raises:
        InvalidInput: they are.
    """
    if (depth := measure_depth(text)) > MAX_DEPTH:
        raise InvalidInput.at(field, f"the JSON is nested {depth} levels deep; at most {MAX_DEPTH} are taken")


def measure_depth(text: bytes) -> int:
    """Return how deep lists and objects are nested, as a parser would find up to the first error."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return 0
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # every quote that is left begins or ends a text
    marks = np.frombuffer(text.translate(None, _NO_MARKS), np.uint8)
    is_quoted = np.bitwise_xor.accumulate((marks == ord('"')).view(np.uint8))
    steps = _STEP[marks[is_quoted == 0]]
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON; send the tensor as binary data")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object names {show(twice)} twice")
    return found


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)
