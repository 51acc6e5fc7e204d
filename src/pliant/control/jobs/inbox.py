"""What has happened and is still to be taken in; filled from any thread, emptied by the loop, which sleeps on it."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pliant.core.job import TaskId
from pliant.core.link import EpochFinished, FromTask, Note, Report, Saved, SaveFailed
from pliant.core.ports import TaskExit, TaskNote


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message of a task."""

    task_id: TaskId
    message: FromTask
    number: int = 0
    """Counted over the life of the task; 0 if it has none."""
    stored: Callable[[], None] | None = None
    """To be called when it need not be sent again."""

    @property
    def is_news(self) -> bool:
        """People read it, and nothing is decided because of it."""
        return isinstance(self.message, Report | EpochFinished | Saved | SaveFailed | Note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnected:
    """The link of a task was closed, and everything that came over it was delivered before."""

    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """A task gave no sign of life for as long as its lease."""

    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """The server stood still."""

    seconds: float


Item = Received | Disconnected | LeaseEnded | Stalled | TaskExit | TaskNote


class ControlInbox:
    """A queue whose reader can sleep until something is put in."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: deque[Item] = deque()
        self._woken = False

    def put(self, item: Item) -> None:
        """Add what happened and wake who sleeps."""
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def put_back(self, *items: Item) -> None:
        """Put what could not be dealt with in front again, in this order."""
        with self._changed:
            self._items.extendleft(reversed(items))

    def __len__(self) -> int:
        with self._changed:
            return len(self._items)

    def take(self) -> Item:
        """Return the oldest of what is there.

        Raises:
            IndexError: there is nothing.
        """
        with self._changed:
            return self._items.popleft()

    def take_news(self, most: int) -> tuple[Received, ...]:
        """Return the oldest items as long as they are news, so many at most."""
        with self._changed:
            news: list[Received] = []
            while len(news) < most and self._items and isinstance(item := self._items[0], Received) and item.is_news:
                news.append(item)
                self._items.popleft()
            return tuple(news)

    def take_exits(self, most: int) -> tuple[TaskExit, ...]:
        """Return the oldest items as long as they are exits of tasks that left no messages, so many at most."""
        with self._changed:
            exits: list[TaskExit] = []
            while len(exits) < most and self._items and isinstance(item := self._items[0], TaskExit):
                if item.facts.unsent or item.facts.unread:
                    break
                exits.append(item)
                self._items.popleft()
            return tuple(exits)

    def wake(self) -> None:
        """Wake who sleeps, or who is about to."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def sleep(self, seconds: float) -> None:
        """Sleep until something is put in or `wake` is called, no longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken or bool(self._items), seconds)
            self._woken = False
