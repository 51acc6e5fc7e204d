"""Bodies in shared memory: none is overwritten before it is taken, and no memory is mapped that could end us."""

import fcntl
import mmap
import os
import socket
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.serve.protocol.frame_bodies import FrameBodies
from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind
from pliant.serve.protocol.shared_bodies import (
    REST_S,
    SHARED_FROM_BYTES,
    BadSharedBody,
    SharedBodies,
    SharedHalf,
    make_shared_bodies,
)

HALF = 8 << 20
SEALED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@contextmanager
def both_sides(half_bytes: int = HALF) -> Iterator[tuple[SharedBodies, SharedBodies]]:
    """Yield a kernel's side and a gateway's."""
    kernel, file = make_shared_bodies(half_bytes)
    with closing(kernel):
        try:
            gateway = SharedBodies.open(file)
        finally:
            os.close(file)
        with closing(gateway):
            yield kernel, gateway


@given(st.lists(st.one_of(st.integers(1, 60), st.none()), max_size=80))
def test_no_two_pieces_that_are_there_at_once_share_a_byte(steps: list[int | None]) -> None:
    """A number puts a piece of this length; None takes the oldest one."""
    half, there = SharedHalf(100), deque[tuple[int, int]]()
    for num_bytes in steps:
        if num_bytes is None:
            if there:
                there.popleft()
                half.free(1)
        elif (at := half.place(num_bytes)) is not None:
            assert 0 <= at <= at + num_bytes <= 100
            assert all(at + num_bytes <= begin or end <= at for begin, end in there)
            there.append((at, at + num_bytes))
        else:
            assert there, "an empty half has room for all that it can hold"
        assert half.num_held == sum(end - begin for begin, end in there)


def test_a_piece_that_is_longer_than_the_half_has_no_place() -> None:
    assert SharedHalf(100).place(101) is None


@pytest.mark.parametrize("num", [0, -1, 2])
def test_more_pieces_than_there_are_cannot_be_taken(num: int) -> None:
    half = SharedHalf(100)
    half.place(10)
    with pytest.raises(BadSharedBody):
        half.free(num)


def test_bodies_go_both_ways_at_once() -> None:
    with both_sides() as (kernel, gateway):
        request, answer = os.urandom(SHARED_FROM_BYTES), os.urandom(3 << 20)
        at, back_at = gateway.put(bytearray(request)), kernel.put(memoryview(answer))
        assert kernel.take(at, len(request)) == request
        assert gateway.take(back_at, len(answer)) == answer


def test_memory_of_large_bodies_is_given_back_and_serves_again() -> None:
    with both_sides() as (kernel, gateway):
        for fill in (b"a", b"b"):
            at = gateway.put(fill * HALF)
            assert kernel.take(at, HALF) == fill * HALF
            assert gateway.put(b"c") is None, "the half is full"
            gateway.rest(0.0)
            gateway.rest(1000.0)
            assert kernel.take(at, HALF) == fill * HALF, "it is held"
            gateway.freed(1)
            gateway.rest(1000.0 + REST_S)
            assert not gateway.is_warm
            assert kernel.take(HALF - 10, 10) == bytes(10)


def test_memory_that_is_used_now_and_then_is_kept() -> None:
    with both_sides() as (kernel, gateway):
        for now in range(0, 100, 5):
            at = gateway.put(b"a" * HALF)
            gateway.freed(1)
            gateway.rest(now)
            gateway.rest(now + 4)
            assert gateway.is_warm
            assert kernel.take(at, HALF) == b"a" * HALF


@pytest.mark.parametrize(
    ("at", "num_bytes"), [(-1, 10), (0, -1), (HALF, 1), (HALF - 5, 6), (1 << 62, 1), ("0", 1), (0, None), (0.0, 1)]
)
def test_a_place_outside_of_the_memory_is_refused(at: object, num_bytes: object) -> None:
    with both_sides() as (_, gateway), pytest.raises(BadSharedBody):
        gateway.take(at, num_bytes)


def sealed(num_bytes: int, seals: int, flags: int = 0) -> int:
    file = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | flags)
    os.ftruncate(file, num_bytes)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


@pytest.mark.parametrize(
    ("num_bytes", "seals"),
    [
        (2 * HALF, 0),
        (2 * HALF, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL),
        (2 * HALF, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK),
        (mmap.PAGESIZE, SEALED),
        (2 * HALF + mmap.PAGESIZE, SEALED),
        (4 << 30, SEALED),
        (2 * HALF, SEALED | fcntl.F_SEAL_WRITE),
        (2 * HALF, SEALED | 0x10),
    ],
    ids=["not", "may shrink", "more seals", "small", "no two halves", "large", "not to be written", "nor from now on"],
)
def test_memory_that_could_end_this_process_or_is_no_use_is_not_mapped(num_bytes: int, seals: int) -> None:
    file = sealed(num_bytes, seals)
    try:
        with pytest.raises(BadSharedBody):
            SharedBodies.open(file)
    finally:
        os.close(file)


def test_a_file_that_is_no_memory_is_not_mapped(tmp_path: Path) -> None:
    here, there = socket.socketpair()
    with tempfile.TemporaryFile(dir=tmp_path) as on_disk, tempfile.TemporaryFile(dir="/dev/shm") as in_memory:
        for file in (on_disk, in_memory):
            file.truncate(2 * HALF)
        with here, there:
            for number in (on_disk.fileno(), in_memory.fileno(), here.fileno()):
                with pytest.raises(BadSharedBody):
                    SharedBodies.open(number)


def test_memory_of_a_kernel_cannot_be_made_smaller() -> None:
    kernel, file = make_shared_bodies(HALF)
    with closing(kernel):
        try:
            with pytest.raises(PermissionError):
                os.ftruncate(file, HALF)
        finally:
            os.close(file)


# -- frames -----------------------------------------------------------------------------------------------------------


def test_a_short_body_and_one_for_which_there_is_no_room_stay_with_their_frames() -> None:
    with both_sides() as (_, gateway):
        bodies = FrameBodies(gateway)
        for body in (b"x" * (SHARED_FROM_BYTES - 1), b"x" * (HALF + 1)):
            assert bodies.put({"id": 1}, body) == ({"id": 1}, body)


def test_a_frame_gets_its_body_back_and_nobody_sees_where_it_was() -> None:
    with both_sides() as (kernel, gateway):
        there, here = FrameBodies(kernel), FrameBodies(gateway)
        header, left = there.put({"id": 1, "status": 200}, b"x" * HALF)
        assert left == b""
        frame = here.take(KernelFrame(KernelFrameKind.RESULT, header, left))
        assert frame == KernelFrame(KernelFrameKind.RESULT, {"id": 1, "status": 200}, b"x" * HALF)
        assert there.num_held == HALF
        assert there.take(KernelFrame(KernelFrameKind.COPIED, {"num": here.num_to_say()})) is None
        assert (there.num_held, here.num_to_say()) == (0, 0)


def test_a_body_that_nobody_waits_for_is_not_copied_but_counts() -> None:
    with both_sides() as (kernel, gateway):
        there, here = FrameBodies(kernel), FrameBodies(gateway)
        header, left = there.put({"id": 1}, b"x" * HALF)
        frame = here.take(KernelFrame(KernelFrameKind.RESULT, header, left), is_wanted=False)
        assert frame is not None
        assert frame.body == b""
        assert here.num_to_say() == 1


@pytest.mark.parametrize(
    "frame",
    [
        KernelFrame(KernelFrameKind.RESULT, {"id": 1, "at": 0, "bytes": HALF + 1}),
        KernelFrame(KernelFrameKind.RESULT, {"id": 1, "at": 0, "bytes": 5}, b"hello"),
        KernelFrame(KernelFrameKind.RESULT, {"id": 1, "at": []}),
        KernelFrame(KernelFrameKind.COPIED, {"num": 1}),
        KernelFrame(KernelFrameKind.COPIED, {}),
    ],
)
def test_frames_that_lie_about_memory_are_none(frame: KernelFrame) -> None:
    with both_sides() as (_, gateway):
        for bodies in (FrameBodies(gateway), FrameBodies(None)):
            with pytest.raises(BadKernelFrame):
                bodies.take(frame)
