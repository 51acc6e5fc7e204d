"""Large bodies between a gateway and a kernel of one machine: they lie in memory that both have, not in the socket.

Theory of operation
===================
The kernel makes the memory and hands its descriptor over with HELLO. One half is for requests, the other for answers.
Whoever sends a large body puts it there, in one piece, and says in the frame where (`at`, `bytes`). Whoever gets the
frame copies it out at once, so nobody's array changes later, and says so (COPIED). Until then the place is not used
again. Pieces are put and taken in one order, so a half is a ring:

    put 60     ######......          a piece of 60 at 0
    put 30     #########...          at 60
    put 40     no place              it goes through the socket, as all bodies do where there is no memory
    taken 1    ......###...
    put 40     ####..###...          at 0 again
    taken 2    ............          empty: the next one begins at 0, where the memory is warm

When a half was not used for `REST_S`, what is beyond its first `_KEPT_BYTES` is given back to the system.

The other side runs people's code, or is to be taken for it: memory that could shrink would end this process by SIGBUS,
so only a file in memory is taken that is sealed against that (memfd_create(2), F_SEAL_SHRINK). What lies in it may
change at any moment: nothing is read in place.

Law: a place is not written to between `put` and the `freed` that belongs to it. Knows no frame and no socket.
"""

import fcntl
import mmap
import os
from collections import deque
from typing import Final, Self

SHARED_FROM_BYTES: Final = 512 << 10
"""Shorter bodies go through the socket, which costs as much."""
HALF_BYTES: Final = 64 << 20
"""Of each direction. None of it is there before it is used."""
_MAX_BYTES: Final = 512 << 20
_KEPT_BYTES: Final = 1 << 20
REST_S: Final = 10.0
"""After which memory that nobody has used is given back: to have it anew costs as much as the socket."""
_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_OTHER_SEALS: Final = fcntl.F_SEAL_WRITE | 0x10
"""0x10: F_SEAL_FUTURE_WRITE, <linux/fcntl.h>. With it memory could not be given back."""
Piece = bytes | bytearray | memoryview


class BadSharedBody(ValueError):
    """The other side has said what cannot be: nothing that it says can be understood any more."""


class SharedHalf:
    """The places of one direction, as its writer sees them. Pure.

    Args:
        num_bytes: how long it is.
    """

    def __init__(self, num_bytes: int) -> None:
        self.num_held = 0
        """Bytes that were put and not taken."""
        self._num_bytes = num_bytes
        self._pieces: deque[tuple[int, int]] = deque()
        """Where each begins and ends, in the order in which they were put."""
        self.top = 0
        """What lies beyond was not used since memory was given back."""

    def place(self, num_bytes: int) -> int | None:
        """Return where a piece goes, which takes the place; None if there is none for it."""
        at = self._find(num_bytes)
        if at is not None:
            self._pieces.append((at, at + num_bytes))
            self.num_held += num_bytes
            self.top = max(self.top, at + num_bytes)
        return at

    def free(self, num: int) -> None:
        """Take note that so many pieces were taken.

        Raises:
            BadSharedBody: there are not so many.
        """
        if not 0 < num <= len(self._pieces):
            raise BadSharedBody(f"{num} bodies are said to be taken, and {len(self._pieces)} are there")
        for _ in range(num):
            begin, end = self._pieces.popleft()
            self.num_held -= end - begin

    def _find(self, num_bytes: int) -> int | None:
        if not self._pieces:
            return 0 if num_bytes <= self._num_bytes else None
        first, end = self._pieces[0][0], self._pieces[-1][1]
        if self._pieces[-1][0] < first:  # it goes round: only what is between is free
            return end if end + num_bytes <= first else None
        if end + num_bytes <= self._num_bytes:
            return end
        return 0 if num_bytes <= first else None


class SharedBodies:
    """Both halves, as one of the two sides has them.

    Args:
        memory: mapped.
        is_kernel: this side reads the first half and writes to the second one; a gateway the other way round.
    """

    def __init__(self, memory: mmap.mmap, *, is_kernel: bool) -> None:
        self._memory = memory
        self._half_bytes = len(memory) // 2
        self._write_at = self._half_bytes if is_kernel else 0
        self._read_at = 0 if is_kernel else self._half_bytes
        self._half = SharedHalf(self._half_bytes)
        self._is_used = False
        self._used_at = 0.0

    @property
    def is_warm(self) -> bool:
        """There is memory that `rest` would give back in a while."""
        return self._half.top > _KEPT_BYTES

    @property
    def num_held(self) -> int:
        """Bytes that this side has put, and the other one has not taken."""
        return self._half.num_held

    def put(self, body: Piece) -> int | None:
        """Put a body where the other side finds it; return its place, or None if there is no room."""
        at = self._half.place(len(body))
        if at is not None:
            self._is_used = True
            self._memory[self._write_at + at : self._write_at + at + len(body)] = body
        return at

    def freed(self, num: object) -> None:
        """Take note that the other side has taken so many more.

        Raises:
            BadSharedBody: that cannot be.
        """
        if not isinstance(num, int):
            raise BadSharedBody("a number of bodies that is none")
        self._half.free(num)

    def rest(self, now: float) -> None:
        """Give memory back that was not used for a while; to be called now and then.

        Args:
            now: seconds that only grow.
        """
        if self._is_used:
            self._is_used, self._used_at = False, now
        elif self.is_warm and not self.num_held and now - self._used_at >= REST_S:
            begin = self._write_at + _KEPT_BYTES
            self._memory.madvise(mmap.MADV_REMOVE, begin, _pages(self._half.top - _KEPT_BYTES))
            self._half.top = 0

    def take(self, at: object, num_bytes: object) -> bytes:
        """Return a copy of a body that the other side has put.

        Raises:
            BadSharedBody: it cannot lie there.
        """
        if not isinstance(at, int) or not isinstance(num_bytes, int) or not 0 <= at <= at + num_bytes:
            raise BadSharedBody("a place of a body that is none")
        if at + num_bytes > self._half_bytes:
            raise BadSharedBody(f"a body of {num_bytes} bytes at {at}, where only {self._half_bytes} bytes are")
        return self._memory[self._read_at + at : self._read_at + at + num_bytes]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    @classmethod
    def open(cls, file: int) -> Self:
        """Map what a kernel has handed over; the caller closes the file.

        Raises:
            BadSharedBody: it is not sealed memory of a sensible length.
        """
        try:
            seals, num_bytes = fcntl.fcntl(file, fcntl.F_GET_SEALS), os.fstat(file).st_size
        except OSError as error:
            raise BadSharedBody(f"a file that is no memory: {error.strerror}") from error
        has_small_pages = os.fstatvfs(file).f_bsize == mmap.PAGESIZE
        if seals & _SEALS != _SEALS or seals & _OTHER_SEALS or not has_small_pages:
            raise BadSharedBody("memory that may shrink, may not be written to, or has large pages")
        if not 2 * SHARED_FROM_BYTES <= num_bytes <= _MAX_BYTES or num_bytes % (2 * mmap.PAGESIZE):
            raise BadSharedBody(f"memory of {num_bytes} bytes, which has no two halves, or too small or large ones")
        try:
            return cls(mmap.mmap(file, num_bytes), is_kernel=False)
        except (OSError, ValueError) as error:
            raise BadSharedBody(f"memory that cannot be mapped: {error}") from error


def make_shared_bodies(half_bytes: int = HALF_BYTES) -> tuple[SharedBodies, int]:
    """Make memory for a kernel; return it, and the file to hand over, which the caller closes.

    Raises:
        OSError: there is none to be had.
    """
    file = os.memfd_create("pliant-bodies", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, 2 * half_bytes)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
        return SharedBodies(mmap.mmap(file, 2 * half_bytes), is_kernel=True), file
    except OSError:
        os.close(file)
        raise


def _pages(num_bytes: int) -> int:
    return -(-num_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
