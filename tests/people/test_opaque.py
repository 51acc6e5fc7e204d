"""The form of tokens, and what is kept of them."""

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.people.opaque import PERSONAL, SESSION, Opaque, is_id, mint, parse


@pytest.mark.parametrize("kind", [SESSION, PERSONAL])
def test_a_token_comes_back_from_its_text(kind: str) -> None:
    made = mint(kind, secrets.token_hex)
    assert made.text == f"plt_{made.id}_{made.secret}"
    assert parse(made.text) == made
    assert is_id(made.id)
    assert (made.id[0], len(made.id), len(made.secret)) == (kind, 17, 48)
    assert made.secret not in repr(made)


def test_only_its_own_digest_matches() -> None:
    one, other = mint(SESSION, secrets.token_hex), mint(SESSION, secrets.token_hex)
    assert one.matches(one.digest)
    assert not one.matches(other.digest)
    assert not one.matches(None)
    assert one.secret not in one.digest


def test_a_token_whose_digest_is_all_zeros_is_not_the_one_that_nobody_has() -> None:
    class Zeros(Opaque):
        @property
        def digest(self) -> str:
            return "0" * 64

    assert not Zeros(id="s" + "0" * 16, secret="").matches(None)


@given(st.text() | st.from_regex(r"plt_[st][0-9a-f]{16}_[0-9a-f]{47,49}[\n ]?", fullmatch=True))
def test_what_has_another_form_is_no_token(text: str) -> None:
    found = parse(text)
    assert found is None or found.text == text
    assert is_id(text) is False
