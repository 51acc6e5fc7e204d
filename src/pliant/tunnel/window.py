"""How much data may be under way: an end sends no more than a window beyond what the other says it has dealt with."""

import threading
from typing import Final

from pliant.core.tunnel import WINDOW_BYTES

_GRANT_BYTES: Final = WINDOW_BYTES // 4
"""Less than this is not worth a frame of its own."""


class TunnelClosed(ConnectionError):
    """The tunnel is closed; the other end is gone."""


class Window:
    """What may be sent, and what may come, of one flow of data in both directions. Any thread may call."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._may_send = WINDOW_BYTES
        self._may_come = WINDOW_BYTES
        self._ungranted = 0
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Nothing is sent any more."""
        return self._is_closed

    def take(self, num_bytes: int) -> None:
        """Wait until so much may be sent, and take it.

        Raises:
            TunnelClosed: nothing is sent any more.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._may_send >= num_bytes)
            if self._is_closed:
                raise TunnelClosed("the tunnel is closed")
            self._may_send -= num_bytes

    def take_grant(self, num_bytes: int) -> None:
        """Note that the other end has dealt with so much."""
        with self._changed:
            self._may_send = min(WINDOW_BYTES, self._may_send + num_bytes)
            self._changed.notify_all()

    def note_coming(self, num_bytes: int) -> None:
        """Note that so much has come.

        Raises:
            ValueError: it is more than was granted, or nothing.
        """
        if not num_bytes:  # no window would hold them back, and each takes memory while it waits
            raise ValueError("a frame of data holds none")
        with self._changed:
            self._may_come -= num_bytes
            if self._may_come < 0:
                raise ValueError("more comes through the tunnel than was granted")

    def deal(self, num_bytes: int) -> int:
        """Note that so much of what came has been dealt with; return how much the other end is to be granted now."""
        with self._changed:
            self._may_come += num_bytes
            self._ungranted += num_bytes
            given = self._ungranted if self._ungranted >= _GRANT_BYTES else 0
            self._ungranted -= given
            return given

    def close(self) -> None:
        """Send nothing any more; whoever waits learns of it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
