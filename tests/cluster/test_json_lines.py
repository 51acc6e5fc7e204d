"""Lines arrive whole and in order, however the socket cuts them, and none is longer than it may be."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.cluster import json_lines
from pliant.cluster.json_lines import LineSocket


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, LineSocket]]:
    """A socket, and the lines of its other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, LineSocket(theirs)


@given(st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line)), st.integers(1, 7))
def test_lines_arrive_whole_and_in_order_however_they_are_cut(lines: list[bytes], size: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sent, reader, found = b"".join(line + b"\n" for line in lines), LineSocket(theirs), list[bytes]()
        for start in range(0, len(sent), size):
            ours.sendall(sent[start : start + size])
            found += reader.receive() or ()

    assert found == lines


def test_what_the_socket_does_not_take_is_sent_later(pair: tuple[socket.socket, LineSocket]) -> None:
    theirs, lines = pair
    line = b"x" * (8 << 20) + b"\n"
    lines.put(line)
    assert lines.flush(), "nobody reads"

    received = 0
    while received < len(line):
        lines.flush()
        received += len(theirs.recv(1 << 20))
    assert not lines.flush()


def test_nothing_to_read_is_not_the_end_of_the_stream(pair: tuple[socket.socket, LineSocket]) -> None:
    ours, lines = pair
    assert lines.receive() == []

    ours.close()
    assert lines.receive() is None
    lines.put(b"nobody reads this\n")
    assert not lines.flush()


def test_a_line_without_end_is_refused(pair: tuple[socket.socket, LineSocket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE_BYTES", 1000)
    ours, lines = pair
    ours.sendall(b"short\n" + b"x" * 1001)

    with pytest.raises(ValueError, match="longer than 1000 bytes"):
        lines.receive()
