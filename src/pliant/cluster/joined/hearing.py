"""How long nothing was heard of the agents of other machines, and what follows from that. No threads, no sockets.

Theory of operation. Two clocks run. *Listened time* is the time in which the server has read the links: if it stood
still, nobody is blamed for what it did not hear. Real time is CLOCK_BOOTTIME, which no sleep of the machine stops.

    after      of               the machine is
    0.6 s      listened time    unsteady, and for 5 s after it is heard again: who is silent there may be heard yet
    1.0 s      listened time    silent: who is silent there may be cut off, and not hang
    2.0 s      listened time    away: nothing is started there (`lease_s`)
    orphan_s + 10 s, real time  gone: its agent has ended all tasks by itself, after `orphan_s` without an answer

The agent counts from when it sent what was answered last, the server from when it heard that, which is later. So the
server's instant comes after the agent's, whatever their clocks show and however slow the network is; the ten seconds
are for processes that take their time to end. A server that has just begun does not know when the one before it has
answered last: for it everything was heard at its own start.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SILENT_S: Final = 1.0
RETURN_S: Final = 0.6
"""A machine that was silent for so long is in doubt, and returns when it is heard."""
RETURNING_S: Final = 5.0
"""So much later than its agent its tasks may be heard: their links wait for TCP, or are made anew."""
END_S: Final = 10.0
"""So long after its orphan time an agent's tasks have ended, also one that takes its time."""
_MOST_PART: Final = 0.25
"""At most this part of a lease counts as listened between two looks."""


class ListenedTime:
    """The time in which the links were read; whoever reads them calls `look` a few times a second."""

    def __init__(self, lease_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self.lease_s = lease_s
        self.total_s = 0.0
        self._now = now
        self._looked_at = now()

    def look(self) -> None:
        """Count the time since the call before."""
        now = self._now()
        self.total_s += min(max(0.0, now - self._looked_at), self.lease_s * _MOST_PART)
        self._looked_at = now


@dataclass(slots=True, kw_only=True)
class Hearing:
    """When one machine was heard last."""

    listened_at: float
    real_at: float
    is_gone: bool = False
    """Its tasks have ended; nothing is known of it until it is there again."""
    is_met: bool = False
    """Its account has been here since this server began, and since it was away."""
    returned_at: float | None = None
    """When it was heard again, in listened time."""

    def note(self, listened: ListenedTime, real: float) -> None:
        """It was heard just now."""
        if listened.total_s - self.listened_at >= RETURN_S:
            self.returned_at = listened.total_s
        self.listened_at, self.real_at = listened.total_s, real

    def is_silent(self, listened: ListenedTime) -> bool:
        """Tell whether nothing was heard of it for a moment."""
        return self.is_gone or not self.is_met or listened.total_s - self.listened_at >= SILENT_S

    def unsteady_s(self, listened: ListenedTime) -> float | None:
        """Return how long it stays unsteady if nothing more is heard, seconds; None if it is not.

        It is while it is silent since a moment only, or heard again since a moment only.
        """
        if self.is_away(listened):
            return None
        silent_s = listened.total_s - self.listened_at
        returning_s = 0.0 if self.returned_at is None else max(0.0, self.returned_at + RETURNING_S - listened.total_s)
        if silent_s + returning_s >= RETURN_S:  # it is, or will be before it is back, and then until it is away
            return listened.lease_s - silent_s
        return returning_s or None

    def is_away(self, listened: ListenedTime) -> bool:
        """Tell whether nothing was heard of it for its lease."""
        return self.is_gone or not self.is_met or listened.total_s - self.listened_at >= listened.lease_s

    def is_over(self, real: float, orphan_s: float) -> bool:
        """Tell whether its agent has ended all tasks by now, for want of a server."""
        return not self.is_gone and real - self.real_at >= orphan_s + END_S
