"""How often something that happens all the time is said."""

from collections.abc import Callable
from threading import Lock


class Pace:
    """Tells when something may be said again, for each of several things. Safe to call from any thread."""

    def __init__(self, now: Callable[[], float], every_s: float = 1.0) -> None:
        self._now = now
        self._every_s = every_s
        self._lock = Lock()
        self._said_at: dict[str, float] = {}

    def is_due(self, name: str) -> bool:
        """Tell whether it was not said for so long; from now on it was. A clock that is set back delays nothing."""
        with self._lock:
            now, said_at = self._now(), self._said_at.get(name)
            if said_at is not None and 0 <= now - said_at < self._every_s:
                return False
            self._said_at[name] = now
            return True

    def forget(self, name: str) -> None:
        """Forget what is over."""
        with self._lock:
            self._said_at.pop(name, None)
