"""What of strangers' JSON is kept: every text but NUL, numbers that are some, and no deep nesting."""

import math
from typing import Any

import pytest

from pliant.core.errors import InvalidInput
from pliant.ibm.rest.translate.plain_json import MAX_DEPTH, require_plain


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1) if depth > 1 else 1}


@pytest.mark.parametrize("text", ["", "ü", "\\u0000", "C:\\\\u0000\\x", '"\n'])
def test_texts_are_kept_also_those_that_write_about_nul(text: str) -> None:
    require_plain({text: [text]}, "model")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": "\0"}, "NUL"),
        ({"\\\0": 1}, "NUL"),
        ({"a": "\ud800"}, "Unicode"),
        ({"a": math.nan}, "finite"),
        (nested(MAX_DEPTH + 1), "deeper than 20 levels"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(value: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        require_plain(value, "model")


def test_what_is_just_deep_enough_is_kept() -> None:
    require_plain(nested(MAX_DEPTH), "model")
