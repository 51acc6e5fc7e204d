"""Renewals are read and answered without the general coder, and mean the same."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.cluster.joined.connection import RENEW_LINE, RENEWED_LINE
from pliant.cluster.json_lines import encode
from pliant.cluster.link.messages import Renew, Renewed


@given(number=st.integers(0, 10**15 - 1), received=st.integers(0, 10**15 - 1))
def test_what_agents_write_is_recognised_and_the_answer_is_what_they_read(number: int, received: int) -> None:
    found = RENEW_LINE.fullmatch(encode(Renew(number=number, received=received)).rstrip(b"\n"))

    assert found is not None
    assert (int(found[1]), int(found[2])) == (number, received)
    assert RENEWED_LINE % number == encode(Renewed(number=number))
