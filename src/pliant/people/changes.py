"""Tells whoever remembers what tokens open that it has changed: a token was revoked, a role is another one, …"""

from collections.abc import Callable
from threading import Lock

RightsListener = Callable[[str], None]
"""Gets the name of a user; called in any thread, after the change is written."""


class RightsChanges:
    """Those who want to hear of it. Safe to use from any thread."""

    def __init__(self) -> None:
        self._listeners: tuple[RightsListener, ...] = ()
        self._subscribing = Lock()

    def subscribe(self, listener: RightsListener) -> Callable[[], None]:
        """Let somebody hear of every change from now on; return what ends that."""
        with self._subscribing:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._subscribing:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def tell(self, user: str) -> None:
        """Tell that what the sessions and tokens of a user open may have changed."""
        for listener in self._listeners:
            listener(user)
