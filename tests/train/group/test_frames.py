"""A frame is taken apart as it was put together, and nothing else passes for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.train.group.frames import MAX_BYTES, pack, take_frame, unpack


def test_a_frame_is_its_length_and_its_parts_each_after_its_own() -> None:
    frame = pack([b"set", b"a", b"xy"])

    assert frame == b"\0\0\0\x12\0\0\0\x03set\0\0\0\x01a\0\0\0\x02xy"
    assert len(frame) == 22
    assert unpack(frame[4:]) == [b"set", b"a", b"xy"]


@given(st.lists(st.lists(st.binary(max_size=20), max_size=5), max_size=5), st.integers(1, 7))
def test_frames_that_come_in_pieces_come_whole_and_in_order(frames: list[list[bytes]], size: int) -> None:
    wire, buffer, came = b"".join(map(pack, frames)), bytearray(), []
    for at in range(0, len(wire), size):
        buffer += wire[at : at + size]
        while (body := take_frame(buffer)) is not None:
            came.append(unpack(body))

    assert came == frames
    assert not buffer


@given(st.binary(max_size=64))
def test_bytes_that_are_no_frame_are_taken_apart_or_refused_and_nothing_is_made_up(body: bytes) -> None:
    try:
        parts = unpack(body)
    except ValueError:
        return
    assert pack(parts)[4:] == body


def test_a_frame_that_is_too_long_is_refused_before_it_is_there() -> None:
    with pytest.raises(ValueError, match=f"{MAX_BYTES + 1} bytes; at most {MAX_BYTES}"):
        take_frame(bytearray((MAX_BYTES + 1).to_bytes(4, "big")))
