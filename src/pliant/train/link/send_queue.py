"""The messages of a task to the server, until the server has stored them. Knows no connection.

Laws: messages go out in the order in which they were put in, each with a number that grows; what was sent on a
connection that was lost is sent again on the next one; no more than a window of messages is sent and not stored. Not
safe to call from several threads at once: the link holds its lock.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from pliant.core.link import FromTask, Histograms, Report, Unreachable

WINDOW: Final = 100
"""So many messages may be sent and not stored yet; the next waits until one of them is stored."""
_MAX_POINTS: Final = 1000
MAX_HISTOGRAMS: Final = 64
"""So many messages with histograms wait; of more the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A message with its number."""

    number: int
    message: FromTask


class SendQueue:
    """Messages that wait to be sent, and those that were sent and are not known to be stored."""

    def __init__(self) -> None:
        self._waiting: deque[Numbered] = deque()
        self._sent: deque[Numbered] = deque()
        self._number = 0

    def __len__(self) -> int:
        """Return how many messages are still to be stored."""
        return len(self._waiting) + len(self._sent)

    def put(self, message: FromTask) -> None:
        """Add a message. A report is merged into one that waits: with the points of both and the newer progress.

        Of who is out of reach only the newest word waits.
        """
        last = self._waiting[-1].message if self._waiting else None
        if isinstance(message, Report) and isinstance(last, Report) and len(last.points) < _MAX_POINTS:
            self._waiting.pop()
            points = (*last.points, *message.points)
            message = Report(generation=message.generation, progress=message.progress, points=points)
        if isinstance(message, Unreachable) and isinstance(last, Unreachable):
            self._waiting.pop()
        if isinstance(message, Histograms):
            self._drop_old_histograms()
        self._number += 1
        self._waiting.append(Numbered(self._number, message))

    def _drop_old_histograms(self) -> None:
        """Make room for newer ones, if the server is away for long."""
        waiting = [item for item in self._waiting if isinstance(item.message, Histograms)]
        if len(waiting) >= MAX_HISTOGRAMS:
            self._waiting.remove(waiting[0])

    @property
    def newest(self) -> int:
        """The number of the newest message; 0 if there never was one."""
        return self._number

    def unstored(self) -> tuple[Numbered, ...]:
        """Return the messages that are still to be stored, oldest first."""
        return (*self._sent, *self._waiting)

    def next(self) -> Numbered | None:
        """Return the message to send next; None if there is none, or the window is full."""
        return self._waiting[0] if self._waiting and len(self._sent) < WINDOW else None

    def mark_sent(self, item: Numbered) -> None:
        """Note that a message was sent, unless the connection was lost meanwhile and it waits again."""
        if self._waiting and self._waiting[0] is item:
            self._sent.append(self._waiting.popleft())

    def drop_stored(self, number: int) -> None:
        """Drop the messages up to this number, which are stored."""
        for items in (self._sent, self._waiting):
            while items and items[0].number <= number:
                items.popleft()

    def requeue_sent(self) -> None:
        """Put all that was sent back in front, because the connection was lost."""
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
