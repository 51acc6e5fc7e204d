"""What has happened and is still to be taken in; filled from any thread, emptied by the loop, which sleeps on it."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pliant.core.job import TaskId
from pliant.core.link import EpochFinished, FromTask, Note, Report, Saved, SaveFailed
from pliant.core.ports import TaskExit


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A task said something."""

    task_id: TaskId
    message: FromTask
    number: int = 0
    """Counted over the life of the task; 0 if it has none."""
    stored: Callable[[], None] | None = None
    """To be called when it need not be said again."""

    @property
    def only_tells(self) -> bool:
        """Nothing is decided because of it."""
        return isinstance(self.message, Report | EpochFinished | Saved | SaveFailed | Note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent:
    """The link of a task was closed, and everything that it said was delivered before."""

    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Hung:
    """A task gave no sign of life for as long as its lease."""

    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """The server stood still."""

    seconds: float


Item = Heard | Silent | Hung | Slept | TaskExit


class Inbox:
    """A queue and a bell."""

    def __init__(self) -> None:
        self._bell = threading.Condition()
        self._items: deque[Item] = deque()
        self._rung = False

    def put(self, item: Item) -> None:
        """Add what happened and wake who sleeps."""
        with self._bell:
            self._items.append(item)
            self._bell.notify_all()

    def put_back(self, *items: Item) -> None:
        """Put what could not be dealt with in front again, in this order."""
        with self._bell:
            self._items.extendleft(reversed(items))

    def __len__(self) -> int:
        with self._bell:
            return len(self._items)

    def take(self) -> Item:
        """Return the oldest of what is there.

        Raises:
            IndexError: there is nothing.
        """
        with self._bell:
            return self._items.popleft()

    def take_told(self, most: int) -> tuple[Heard, ...]:
        """Return what was heard before anything else, so many at most, as long as it is only told to people."""
        with self._bell:
            told: list[Heard] = []
            while len(told) < most and self._items and isinstance(item := self._items[0], Heard) and item.only_tells:
                told.append(item)
                self._items.popleft()
            return tuple(told)

    def ring(self) -> None:
        """Wake who sleeps, or who is about to."""
        with self._bell:
            self._rung = True
            self._bell.notify_all()

    def sleep(self, seconds: float) -> None:
        """Sleep until something is put in or the bell is rung, no longer than this."""
        with self._bell:
            self._bell.wait_for(lambda: self._rung or bool(self._items), seconds)
            self._rung = False
