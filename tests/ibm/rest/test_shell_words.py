"""Words: as a shell splits them, whatever the text."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ibm.rest.conftest import outcome

from pliant.core.errors import InvalidInput
from pliant.ibm.rest.translate.shell_words import MAX_CHARACTERS, split


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("  \t\n ", ()),
        ("a b", ("a", "b")),
        ("'a b' c", ("a b", "c")),
        ('"a b"c', ("a bc",)),
        ("''", ("",)),
        ("a'' b", ("a", "b")),
        (r"a\ b", ("a b",)),
        (r"'a\b'", (r"a\b",)),
        (r'"a\"b\\c\$d\`e\f"', (r'a"b\c$d`e\f',)),
        ("a \\\n b", ("a", "b")),
        ("a\\\nb", ("ab",)),
        ("a\\\r\nb", ("ab",)),
        ('"a\\\nb"', ("ab",)),
        ("$HOME `date` $(date) ~ *.py a;b|c>d&e #f", ("$HOME", "`date`", "$(date)", "~", "*.py", "a;b|c>d&e", "#f")),
        ("--x _QUOTE_a b_QUOTE_", ("--x", "a b")),
        ("ä ö", ("ä", "ö")),
        ("a\u00a0b", ("a\u00a0b",)),
    ],
)
def test_text_is_split_as_a_shell_would(text: str, words: tuple[str, ...]) -> None:
    assert split(text) == words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 'b", "the quote at character 3 is not closed"),
        ('"', "the quote at character 1"),
        ('"a\\"', "the quote at character 1"),
        ("a\\", "ends with a backslash"),
        ("a _QUOTE_b", "not closed"),
        ("a\0b", "NUL"),
        ("a" * (MAX_CHARACTERS + 1), f"{MAX_CHARACTERS} are the most"),
    ],
)
def test_what_cannot_be_split_is_told(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        split(text)


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)))
def test_what_a_shell_would_quote_comes_back(words: list[str]) -> None:
    if not any("_QUOTE_" in word for word in words):
        assert split(shlex.join(words)) == tuple(words)


@given(st.text(max_size=200) | st.text(alphabet="ab '\"\\\n_QUOTE-=", max_size=60))
def test_nothing_else_is_ever_raised(text: str) -> None:
    found = outcome(split, text)
    if isinstance(found, InvalidInput):
        assert [problem.field for problem in found.problems] == ["args"]
    else:
        assert all(isinstance(word, str) for word in found)
