"""Numbers that all gateway processes of a server count together, so that a limit holds for all of them as for one.

Every key (an endpoint, a token, a queue) has a row of shared memory: one number for each process, which it alone
writes, and a time that all may move. Example, of 3 processes, for a token that may have 4 requests under way:

    key            due        0  1  2
    token 5f3a…    81.250     2  0  1       3 are under way: one more may begin, at whichever process it comes

A row belongs to the first key that wants it, and is free again once all its numbers are 0 and its time has passed; who
takes it over, and who counts in it, look once more after they have written. A check and what follows from it happen
under a lock of the system's, which a process that dies gives back. One that is stopped in the middle of those
microseconds holds up nobody: after 2 ms the others go on without it, and may then let more pass than the limit says,
one each. If no row is free for a key, every process counts for itself.

Numbers of gateways on other machines have columns, too, which one process of this machine writes when it hears of them
(`pliant.serve.gateway.use_news`); what is spent there moves the time here.

The memory is anonymous, and the lock is a file without a name: nobody else can reach either. Knows no limits.
"""

import fcntl
import hashlib
import math
import mmap
import os
import struct
from collections.abc import Callable, Collection, Iterator
from typing import Final

from pliant.serve.protocol.frames import MAX_GATEWAYS

_NUM_SETS: Final = 2048
_ROWS_PER_SET: Final = 8
_KEY: Final = 16
_DUE_AT: Final = _KEY
_NUMS_AT: Final = _KEY + 8
_ROW: Final = _NUMS_AT + 8 * MAX_GATEWAYS
_DUE: Final = struct.Struct("=d")
_NUM: Final = struct.Struct("=q")
_NUMS: Final = struct.Struct(f"={MAX_GATEWAYS}q")
_ROWS: Final = range(0, _NUM_SETS * _ROWS_PER_SET * _ROW, _ROW)
_HEARER_AT: Final = _ROWS.stop
_PATIENCE_S: Final = 0.002
_SPINS: Final = 20


class SharedTable:
    """The memory. It is made before the processes, which inherit it."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, _HEARER_AT + _NUM.size)
        self.locks = os.memfd_create("pliant-gateways", os.MFD_CLOEXEC)

    def clear(self, number: int) -> None:
        """Forget what a process has counted that is dead."""
        at = _NUMS_AT + 8 * number
        for row in _ROWS:
            _NUM.pack_into(self.memory, row + at, 0)

    def close(self) -> None:
        """Give it back."""
        self.memory.close()
        os.close(self.locks)


class SharedCounts:
    """The table, as one of the processes sees it. Belongs to one event loop.

    Args:
        table: of all.
        number: of this process.
        clock: seconds that only grow, the same for all processes.
    """

    def __init__(self, table: SharedTable, number: int, clock: Callable[[], float]) -> None:
        self.number = number
        self._clock = clock
        self._memory = table.memory
        self._locks = table.locks
        self._held: dict[int, int] = {}
        self.noted: dict[bytes, float] | None = None
        """By key: what this process has counted since somebody emptied it, and the seconds that it has spent; None:
        nobody wants to know."""

    def of(self, kind: str, name: bytes) -> "SharedCount":
        """Return what is counted under a name, in whichever process."""
        key = hashlib.blake2b(name, digest_size=_KEY, person=kind.encode()).digest()
        return SharedCount(self, key)

    # gateways of other machines

    @property
    def hearer(self) -> int | None:
        """The process of this machine that has heard last of all that a gateway elsewhere uses; None: there is none."""
        number = int(_NUM.unpack_from(self._memory, _HEARER_AT)[0])
        return number - 1 if number else None

    @hearer.setter
    def hearer(self, number: int | None) -> None:
        _NUM.pack_into(self._memory, _HEARER_AT, 0 if number is None else number + 1)

    def note(self, key: bytes, seconds: float = 0.0) -> None:
        """Remember that this process has counted something, or spent so many seconds, if somebody wants to know."""
        if self.noted is not None:
            self.noted[key] = self.noted.get(key, 0.0) + seconds

    def numbers_of(self, number: int) -> Iterator[tuple[bytes, int]]:
        """Yield the keys that a gateway counts something under, and how much."""
        at = _NUMS_AT + 8 * number
        for row in _ROWS:
            if num := _NUM.unpack_from(self._memory, row + at)[0]:
                yield self._memory[row : row + _KEY], int(num)

    def put(self, number: int, key: bytes, num: int, spent_s: float) -> None:
        """Set what a gateway of another machine counts, and spend what it has spent; without a free row, do nothing."""
        place = _set_of(key)
        self.lock(place)
        row = self.claim(key) if num or spent_s else self.find(key)
        if row is not None:
            _NUM.pack_into(self._memory, row + _NUMS_AT + 8 * number, num)
            if spent_s:
                self.move(row, max(self.due(row), self._clock()) + spent_s)
        self.unlock(place)

    def forget(self, number: int, but: Collection[bytes] = ()) -> None:
        """Count nothing more of a gateway of another machine, except under these keys."""
        for key, _ in self.numbers_of(number):
            if key not in but:
                self.put(number, key, 0, 0.0)

    # rows; for `SharedCount`

    def has(self, row: int, key: bytes) -> bool:
        """Tell whether a row belongs to a key."""
        return self._memory[row : row + _KEY] == key

    def find(self, key: bytes) -> int | None:
        """Return the row of a key; None if it has none."""
        return next((row for row in _rows_of(key) if self.has(row, key)), None)

    def claim(self, key: bytes) -> int | None:
        """Return the row of a key, which has one from now on; None if none is free. Call it under the lock."""
        if (row := self.find(key)) is not None:
            return row
        for row in _rows_of(key):
            if self._is_free(row):
                before = self._memory[row : row + _KEY]
                self._memory[row : row + _KEY] = key
                if not self.total(row):
                    self.move(row, 0.0)
                    return row
                self._memory[row : row + _KEY] = before  # its key has begun to count at this very moment
        return None

    def due(self, row: int) -> float:
        """Return the time of a row."""
        return float(_DUE.unpack_from(self._memory, row + _DUE_AT)[0])

    def move(self, row: int, due: float) -> None:
        """Set the time of a row."""
        _DUE.pack_into(self._memory, row + _DUE_AT, due)

    def own_of(self, key: bytes) -> int:
        """Return the number of this process under a key."""
        row = self.find(key)
        return 0 if row is None else self.own(row)

    def own(self, row: int) -> int:
        """Return the number of this process."""
        return int(_NUM.unpack_from(self._memory, row + _NUMS_AT + 8 * self.number)[0])

    def add(self, row: int, num: int) -> None:
        """Change the number of this process."""
        _NUM.pack_into(self._memory, row + _NUMS_AT + 8 * self.number, self.own(row) + num)

    def total(self, row: int) -> int:
        """Return the numbers of all processes together."""
        return sum(_NUMS.unpack_from(self._memory, row + _NUMS_AT))

    def _is_free(self, row: int) -> bool:
        return not self.total(row) and self.due(row) <= self._clock()

    # the lock

    def lock(self, place: int) -> None:
        """Keep the other processes from changing the rows of a set, until `unlock`; may be called again before that."""
        self._held[place] = num = self._held.get(place, 0) + 1
        if num > 1:
            return
        give_up_at, num_tries = math.inf, 0
        while self._clock() < give_up_at:
            try:
                fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError:
                num_tries += 1
                if num_tries == 1:
                    give_up_at = self._clock() + _PATIENCE_S
                elif num_tries > _SPINS:
                    os.sched_yield()
            else:
                return

    def unlock(self, place: int) -> None:
        """End that."""
        self._held[place] -= 1
        if not self._held[place]:
            del self._held[place]
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, place)


class SharedCount:
    """What all processes count under one key; a `pliant.serve.gateway.request_limiter.LimitUse`."""

    __slots__ = ("_counts", "_key", "_lonely", "_lonely_due", "_place", "_row")

    def __init__(self, counts: SharedCounts, key: bytes) -> None:
        self._counts = counts
        self._key = key
        self._place = _set_of(key)
        self._row: int | None = None
        self._lonely = 0
        """What this process has counted for itself, since no row was free."""
        self._lonely_due = 0.0

    def lock(self) -> bool:
        """Keep other processes from changing it until `unlock`."""
        self._counts.lock(self._place)
        if self._own_row() is None:
            self._row = self._counts.claim(self._key)
        return True

    def unlock(self) -> None:
        """End that."""
        self._counts.unlock(self._place)

    @property
    def due(self) -> float:
        """The time that goes with it."""
        row = self._own_row()
        return self._lonely_due if row is None else self._counts.due(row)

    @due.setter
    def due(self, due: float) -> None:
        row = self._own_row()
        if row is None:
            self._lonely_due = due
        else:
            self._counts.move(row, due)

    def spend(self, now: float, seconds: float) -> None:
        """Move the time on by so many seconds, from now at the earliest."""
        self.due = max(self.due, now) + seconds
        self._counts.note(self._key, seconds)

    @property
    def num(self) -> int:
        """What all processes have counted."""
        row = self._own_row()
        return self._lonely if row is None else self._lonely + self._counts.total(row)

    @property
    def num_elsewhere(self) -> int:
        """What the other processes have counted."""
        row = self._own_row()
        return 0 if row is None else self._counts.total(row) - self._counts.own(row)

    def add(self, num: int) -> None:
        """Count so many more, or fewer, of this process."""
        self._counts.note(self._key)
        if num < 0 and self._lonely:
            alone = min(self._lonely, -num)
            self._lonely -= alone
            num += alone
        if not num:
            return
        row = self._own_row()
        if num < 0 and row is not None:
            self._counts.add(row, num)
        elif num > 0 and not (row is not None and self._is_counted(row, num)):
            self._begin(num)

    def _is_counted(self, row: int, num: int) -> bool:
        """Count so many more in a row, unless it changes hands at this very moment; tell whether they are counted."""
        self._counts.add(row, num)
        if self._counts.has(row, self._key):
            return True
        self._counts.add(row, -num)
        return False

    def _begin(self, num: int) -> None:
        """Count something under a key that has no row yet."""
        self.lock()
        if self._row is None:
            self._lonely += num
        else:
            self._counts.add(self._row, num)
        self.unlock()

    def _own_row(self) -> int | None:
        if self._row is None or not self._counts.has(self._row, self._key):
            self._row = self._counts.find(self._key)
        return self._row


def _rows_of(key: bytes) -> range:
    """Return where the rows are that a key may have."""
    first = _set_of(key) * _ROWS_PER_SET * _ROW
    return range(first, first + _ROWS_PER_SET * _ROW, _ROW)


def _set_of(key: bytes) -> int:
    return int.from_bytes(key[:4], "big") % _NUM_SETS
