"""Join tokens as texts, and names that machines may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.core.joining import JoinToken, hash_of_secret, join_token_text, machine_name_fault, parse_join_token

GOOD = "pliant-join-" + "0f" * 8 + "." + "1e" * 32 + "." + "2d" * 32


@given(st.binary(min_size=72, max_size=72))
def test_a_token_is_read_as_it_was_written(random: bytes) -> None:
    parts = random[:8].hex(), random[8:40].hex(), random[40:].hex()
    text = join_token_text(*parts)
    assert parse_join_token(text) == parts
    assert parse_join_token(f"  {text[:80]}\n{text[80:]}\n") == parts


@given(st.text() | st.sampled_from([GOOD[:-1], GOOD + "0", GOOD.upper(), GOOD[12:], GOOD.replace(".", "_"), GOOD * 9]))
def test_what_is_no_token_is_told_without_showing_it(text: str) -> None:
    with pytest.raises(InvalidInput, match="this is no join token") as told:
        parse_join_token(text)
    assert "1e1e" not in str(told.value)


def test_a_secret_is_not_shown_and_only_its_own_fits() -> None:
    token = JoinToken(name="0f" * 8, owner="ada", secret_hash=hash_of_secret("1e" * 32), expires_at=1.0)
    assert hash_of_secret("1e" * 32) not in repr(token)
    assert token.matches("1e" * 32)
    assert not any(map(token.matches, ("", "1e" * 31, token.secret_hash, "\ud800", "é")))


@pytest.mark.parametrize("name", ["gpu1", "GPU-1.rack_2", "1", "a" * 63, "localhost", "local.1"])
def test_a_name_that_machines_may_have(name: str) -> None:
    assert machine_name_fault(name) == ""


@pytest.mark.parametrize(
    "name", ["", "local", "Local", "tokens", "-a", ".", "..", "_a", "a/b", "a:1", "a b", "a\n", "é", "a\x00", "a" * 64]
)
def test_a_name_that_no_machine_may_have(name: str) -> None:
    assert "name" in machine_name_fault(name)
