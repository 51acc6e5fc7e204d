"""The memory in which the buckets of a step are summed over the members of a generation.

New memory is dear: the kernel clears every page when it is touched for the first time, and on a virtual machine the
host may have to find it first. For 100 MB that takes longer than the sum itself. So what a training has is kept:

- buffers that receive are as large as a bucket, for whatever number of members, and each generation uses what it needs;
- those of a lost generation may still be written to. They are put aside, and used again if all of its operations have
  ended when the next step begins. gloo may hold some for hours; their pages are moved to other addresses then, and used
  there;
- what the first step of a generation will need beyond that is made and touched while the generation still connects
  (`prepare`), when nobody waits for it.

Knows nothing of groups but whether they have ended.
"""

import ctypes
import mmap
import threading
import weakref
from contextlib import suppress
from typing import Final, Protocol

import torch

from pliant.core.job import MAX_VIRTUAL_WORKERS
from pliant.train.sum.buckets import BucketLayout, BufferSet, GradientBucket

MAX_PREPARED_BYTES: Final = 2 << 30
"""More is not touched beforehand: the other members wait for who connects, and not for long."""

_MORE: Final = MAX_VIRTUAL_WORKERS
"""Elements that a buffer which receives is longer than its bucket. The pieces that members own differ by an element, so
that what comes to one from all in a turn is longer by less than their number."""

_MREMAP_MAYMOVE: Final = 1
_MREMAP_DONTUNMAP: Final = 4
_libc: Final = ctypes.CDLL(None)
_libc.mremap.restype = ctypes.c_void_p

_Received = dict[tuple[int, int], torch.Tensor]
"""By the number of the bucket and the turn."""


class Ending(Protocol):
    """A group, as far as this needs to know it."""

    @property
    def has_ended(self) -> bool: ...


class SumMemory:
    """All buffers of one training, for one step at a time. One thread uses them; any thread may call `prepare`."""

    def __init__(self, layout: BucketLayout) -> None:
        self._layout = layout
        self.sets: list[BufferSet] = []
        """One for every partial sum that this task sends, at least one; the first one receives the sum."""
        self._received: _Received = {}
        self._aside: tuple[Ending, list[BufferSet], _Received] | None = None
        """What a lost generation has used, and that generation's group."""
        self._lock = threading.Lock()
        """Of what follows, of which a connecting thread knows."""
        self._num_sets = 0
        """So many were ever there at once, and so many turns."""
        self._num_turns = 0
        self._spare_sets: list[BufferSet] = []
        self._spare_received: _Received = {}

    def prepare(self, *, num_sets: int, num_turns: int) -> None:
        """Make and touch what a step will need with so many partial sums here, and so many turns of receiving.

        Does nothing where the training has had as much before: then that is used again. Only main memory is touched.
        """
        buckets = self._layout.buckets
        num_bytes = sum(bucket.num_elements * bucket.dtype.itemsize for bucket in buckets)
        with self._lock:
            new_sets, new_turns = range(self._num_sets, num_sets), range(self._num_turns, num_turns)
            too_much = num_bytes * (len(new_sets) + len(new_turns)) > MAX_PREPARED_BYTES
            if too_much or any(bucket.device.type != "cpu" for bucket in buckets):
                return
            self._note(num_sets, num_turns)
        with suppress(RuntimeError, MemoryError):  # the first step will meet it, and say so
            sets = [self._layout.allocate() for _ in new_sets]
            places = [(number, turn) for turn in new_turns for number in range(len(buckets))]
            received = {place: self._new(buckets[place[0]], buckets[place[0]].num_elements + _MORE) for place in places}
            for buffer in (*(buffer for one in sets for buffer in one.buffers), *received.values()):
                buffer.zero_()  # without the interpreter's lock
            with self._lock:
                self._spare_sets += sets
                self._spare_received |= received

    def _note(self, num_sets: int, num_turns: int) -> None:
        self._num_sets, self._num_turns = max(self._num_sets, num_sets), max(self._num_turns, num_turns)

    def begin(self, num_sets: int) -> None:
        """Have so many sets, of undefined contents, for the next step."""
        if self._aside is not None:
            (group, sets, received), self._aside = self._aside, None
            if group.has_ended:
                self.sets, self._received = sets, received
            elif all(bucket.device.type == "cpu" for bucket in self._layout.buckets):
                self.sets = [self._layout.divide([_move_pages(buffer) for buffer in one.buffers]) for one in sets]
                self._received = {place: _move_pages(one) for place, one in received.items() if len(one)}
        if len(self.sets) == num_sets:
            return
        del self.sets[num_sets:]
        with self._lock:
            self._note(num_sets, 0)
            while self._spare_sets and len(self.sets) < num_sets:
                self.sets.append(self._spare_sets.pop())
        while len(self.sets) < num_sets:
            self.sets.append(self._layout.allocate())

    def received(self, number: int, turn: int, num_elements: int) -> torch.Tensor:
        """Return a flat buffer for what comes of a bucket in a turn; the same one in every step of a generation."""
        memory = self._received.get((number, turn))
        if memory is None or memory.numel() < num_elements:
            bucket = self._layout.buckets[number]
            is_whole = num_elements >= bucket.num_elements  # less comes while newcomers rest, and at an epoch's end
            with self._lock:
                self._note(0, turn + 1 if is_whole else 0)
                memory = self._spare_received.pop((number, turn), None)
            if memory is None or memory.numel() < num_elements:
                memory = self._new(bucket, bucket.num_elements + _MORE if is_whole else num_elements)
            self._received[number, turn] = memory
        return memory[:num_elements]

    def _new(self, bucket: GradientBucket, num_elements: int) -> torch.Tensor:
        return torch.empty(num_elements, dtype=bucket.dtype, device=bucket.device)

    def put_aside(self, group: Ending) -> None:
        """Hold no buffers any more: those of this group, which is lost, may still be written to."""
        if self.sets:
            self._aside = (group, self.sets, self._received)
        self.sets, self._received = [], {}

    def close(self) -> None:
        """Drop all buffers."""
        self.sets, self._received, self._aside = [], {}, None
        with self._lock:
            self._spare_sets, self._spare_received = [], {}


def _move_pages(buffer: torch.Tensor) -> torch.Tensor:
    """Return a buffer like this one at other addresses, which has this one's pages; next to no memory is taken.

    The old addresses stay mapped, to pages that the kernel makes when they are touched, so that who still writes there
    does no harm. Contents are undefined. Where the kernel does not move them (Linux before 5.7), the old pages are
    given back to it, and the new buffer is made as any other.
    """
    first = -(-buffer.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE  # whole pages alone: others have the rest
    length = (buffer.data_ptr() + buffer.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length <= 0:
        return torch.empty_like(buffer)
    moved = _remap(first, length, length, _MREMAP_MAYMOVE | _MREMAP_DONTUNMAP)
    if moved is None:
        _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), mmap.MADV_DONTNEED)
        return torch.empty_like(buffer)
    size = -(-buffer.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    whole = _remap(moved, length, size, _MREMAP_MAYMOVE)
    if whole is None:
        _unmap(moved, length)
        return torch.empty_like(buffer)
    memory = (ctypes.c_char * size).from_address(whole)
    weakref.finalize(memory, _unmap, whole, size).atexit = False  # the kernel does it then, when no thread goes on
    return torch.frombuffer(memory, dtype=buffer.dtype, count=buffer.numel())


def _remap(address: int, length: int, new_length: int, flags: int) -> int | None:
    """Return where whole pages are now; None if they are where they were (`man 2 mremap`)."""
    anywhere = ctypes.c_void_p(None)
    found: int = _libc.mremap(
        ctypes.c_void_p(address), ctypes.c_size_t(length), ctypes.c_size_t(new_length), ctypes.c_int(flags), anywhere
    )
    return None if found == ctypes.c_void_p(-1).value else found


def _unmap(address: int, length: int) -> None:
    _libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(length))
