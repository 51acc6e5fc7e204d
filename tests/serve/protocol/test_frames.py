"""Frames: whatever way the bytes are cut, the same frames come out, and no bytes do harm."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.serve.protocol.frames import (
    HEAD_BYTES,
    BadKernelFrame,
    KernelFrame,
    KernelFrameKind,
    KernelFrameReader,
    encode_frame,
    encode_head,
)

_headers = st.dictionaries(
    st.text(max_size=5), st.integers() | st.text(max_size=5) | st.lists(st.integers()), max_size=4
)
_WITH_BODY = (KernelFrameKind.RESULT, KernelFrameKind.PART, KernelFrameKind.REQUEST)
_frames = st.builds(KernelFrame, st.sampled_from(KernelFrameKind), _headers) | st.builds(
    KernelFrame, st.sampled_from(_WITH_BODY), _headers, st.binary(max_size=300)
)


@given(st.lists(_frames, max_size=5), st.lists(st.integers(1, 200), min_size=1))
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames: list[KernelFrame], sizes: list[int]) -> None:
    stream = b"".join(encode_frame(one.kind, one.header, one.body) for one in frames)
    reader, found, at, turn = KernelFrameReader(), [], 0, 0

    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += reader.feed(memoryview(stream)[at : at + size])
        at, turn = at + size, turn + 1

    assert found == frames
    assert reader.num_missing == 0


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_do_harm(data: bytes, cut: int) -> None:
    reader = KernelFrameReader(max_bytes=100)
    try:
        frames = reader.feed(data[:cut]) + reader.feed(data[cut:])
    except BadKernelFrame:
        return
    assert all(isinstance(frame.header, dict) for frame in frames)
    assert reader.num_missing <= 100 + HEAD_BYTES


@pytest.mark.parametrize("text", [b"[]", b"{", b"[" * 100_000, b"\xff", b"7"])
def test_a_header_that_is_no_object_is_refused(text: bytes) -> None:
    head = bytearray(encode_head(KernelFrameKind.READY, {}, 0)[:HEAD_BYTES])
    head[0:4] = head[5:9] = len(text).to_bytes(4, "big")

    with pytest.raises(BadKernelFrame):
        KernelFrameReader().feed(bytes(head) + text)


def test_a_frame_is_refused_by_its_head_alone_and_the_limit_can_be_raised() -> None:
    head = encode_head(KernelFrameKind.RESULT, {"id": 1}, 5000)
    with pytest.raises(BadKernelFrame, match="frame of 5008 bytes"):
        KernelFrameReader(max_bytes=1000).feed(head)

    reader = KernelFrameReader(max_bytes=1000)
    reader.max_bytes = 10_000
    assert reader.feed(head) == []
    assert reader.num_missing == 5000


@pytest.mark.parametrize("kind", [kind for kind in KernelFrameKind if kind not in _WITH_BODY])
def test_only_requests_and_answers_have_a_body_which_is_seen_by_the_head_alone(kind: KernelFrameKind) -> None:
    with pytest.raises(BadKernelFrame, match="with a body"):
        KernelFrameReader().feed(encode_head(kind, {}, 1 << 30)[:HEAD_BYTES])


def test_an_unknown_kind_is_refused() -> None:
    frame: Any = bytearray(encode_frame(KernelFrameKind.PONG, {}))
    frame[4] = 99

    with pytest.raises(BadKernelFrame, match="cannot be read"):
        KernelFrameReader().feed(frame)
