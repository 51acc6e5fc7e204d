"""Texts of people show what they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.core.input import read_line, read_text

HIDDEN = {
    "U+202E (RIGHT-TO-LEFT OVERRIDE)": "gpj.\u202eexe",
    "U+2066 (LEFT-TO-RIGHT ISOLATE)": "a\u2066b",
    "U+200B (ZERO WIDTH SPACE)": "da\u200bta",
    "U+FEFF (ZERO WIDTH NO-BREAK SPACE)": "\ufeffdata",
    "U+00AD (SOFT HYPHEN)": "da\u00adta",
    "U+001B (a control character)": "\x1b[31mred",
    "U+009B (a control character)": "\x9b31m",
    "U+007F (a control character)": "a\x7f",
    "U+2028 (LINE SEPARATOR)": "a\u2028b",
    "U+D800 (a control character)": "\ud800",
    "U+E0041 (TAG LATIN CAPITAL LETTER A)": "a\U000e0041",
}


@pytest.mark.parametrize(("named", "text"), HIDDEN.items(), ids=HIDDEN.keys())
def test_what_hides_or_turns_something_is_refused_by_its_name(named: str, text: str) -> None:
    for read in (read_line, read_text):
        with pytest.raises(InvalidInput) as refused:
            read(text)
        assert named in str(refused.value)


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\tb", "a\u200db", "नमस्\u200cते"])
def test_a_text_may_have_lines_and_joiners_and_a_name_may_not(text: str) -> None:
    assert read_text(text) == text
    with pytest.raises(InvalidInput):
        read_line(text)


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_whatever_is_seen_may_be_in_both(text: str) -> None:
    assert read_line(text) == read_text(text) == text
