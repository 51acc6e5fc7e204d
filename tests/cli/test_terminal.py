"""What is typed on a terminal that is lent to a program elsewhere."""

import pytest

from pliant.cli.terminal import KeyFilter


@pytest.mark.parametrize(
    ("typed", "passed", "hangs_up"),
    [
        ([b"ls ~.\r"], b"ls ~.\r", False),
        ([b"~."], b"", True),
        ([b"ls\r~", b".rest"], b"ls\r", True),
        ([b"~~.\r~x"], b"~.\r~x", False),
        ([b"\r~\r~."], b"\r~\r", True),
        ([b"\x00\xff\x1b[A~."], b"\x00\xff\x1b[A~.", False),
    ],
)
def test_a_tilde_and_a_dot_hang_up_at_the_beginning_of_a_line_alone(
    typed: list[bytes], passed: bytes, hangs_up: bool
) -> None:
    keys = KeyFilter()

    assert b"".join(keys.feed(one) for one in typed) == passed
    assert keys.hangs_up is hangs_up
