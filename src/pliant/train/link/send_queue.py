"""What a task has to say to the server, until the server has stored it. Knows no connection.

Laws: messages go out in the order in which they were put in, each with a number that grows; what was sent on a
connection that was lost goes out again on the next one; no more than a window of messages is on its way. Not safe to
call from several threads at once: the link holds its lock.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from pliant.core.link import FromTask, Report

WINDOW: Final = 100
"""So many messages may be on their way; the next waits until one of them is stored."""
_MAX_POINTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Numbered:
    """A message with its number."""

    number: int
    message: FromTask


class SendQueue:
    """Messages that wait, and those that were sent and are not known to be stored."""

    def __init__(self) -> None:
        self._waiting: deque[Numbered] = deque()
        self._sent: deque[Numbered] = deque()
        self._number = 0

    def __len__(self) -> int:
        """Return how many messages are still to be stored."""
        return len(self._waiting) + len(self._sent)

    def put(self, message: FromTask) -> None:
        """Add a message; of two reports that wait, the points of both are kept and only the newer progress."""
        last = self._waiting[-1].message if self._waiting else None
        if isinstance(message, Report) and isinstance(last, Report) and len(last.points) < _MAX_POINTS:
            self._waiting.pop()
            points = (*last.points, *message.points)
            message = Report(generation=message.generation, progress=message.progress, points=points)
        self._number += 1
        self._waiting.append(Numbered(self._number, message))

    def next(self) -> Numbered | None:
        """Return what is to be sent next; None if there is nothing, or too much is on its way."""
        return self._waiting[0] if self._waiting and len(self._sent) < WINDOW else None

    def sent(self, item: Numbered) -> None:
        """Note that this one was sent, unless the connection was lost meanwhile and it waits again."""
        if self._waiting and self._waiting[0] is item:
            self._sent.append(self._waiting.popleft())

    def stored(self, number: int) -> None:
        """Forget what is stored: all up to this number."""
        for items in (self._sent, self._waiting):
            while items and items[0].number <= number:
                items.popleft()

    def requeue_sent(self) -> None:
        """Note that the connection is lost: all that was sent waits again, in front."""
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
