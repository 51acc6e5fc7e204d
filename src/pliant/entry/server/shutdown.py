"""How the server ends: all jobs save their state and leave; asked again, at once."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pliant.control.loop.tick import Control
from pliant.entry.server.rooms.endpoints import ServingRoom
from pliant.entry.server.rooms.tuning import TuningRoom
from pliant.server.event_signal import EventSignal
from pliant.server.links import LinkHub
from pliant.server.tunnels import TunnelHub

log = logging.getLogger("pliant")

DRAIN_S = 30.0
KILL_S = 5.0
_LOOK_S = 0.05


@dataclass(slots=True, kw_only=True)
class Shutdown:
    """How the server ends: once it was asked to, all jobs save and leave; asked again, at once."""

    control: Control
    event_signal: EventSignal
    links: LinkHub
    tunnels: TunnelHub
    serving: ServingRoom | None = None
    tuning: TuningRoom | None = None
    exit: Callable[[], None] = lambda: None
    """Makes the web server end."""
    _asked: bool = False
    _hurry: threading.Event = field(default_factory=threading.Event)

    def begin(self, cause: str) -> None:
        """Begin to end; from any thread, or a signal handler. Returns at once."""
        if self._asked:
            self._hurry.set()
            return
        self._asked = True
        threading.Thread(target=self._drain, args=(cause,), name="pliant-shutdown", daemon=True).start()

    def begin_once(self, cause: str) -> None:
        """Begin to end, without hurry however often it is asked."""
        if not self._asked:
            self.begin(cause)

    def _drain(self, cause: str) -> None:
        log.info("the server stops (%s): jobs save their state at the next step boundary", cause)
        try:
            if self.tuning is not None:
                self.tuning.close()
            if self.serving is not None:
                self.serving.retire()
            self.control.ending.drain_all(cause)
            if not self._wait(DRAIN_S):
                log.warning("some tasks have not left: they are killed; their jobs go on from the newest checkpoint")
                self.control.ending.kill_all()
                self._hurry.clear()
                self._wait(KILL_S)
            if self.serving is not None:
                self.serving.close()
        finally:
            self.event_signal.close()
            self.tunnels.close_all()
            self.links.close_all()
            self.exit()

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.control.ending.is_drained():
            if time.monotonic() > deadline or self._hurry.wait(_LOOK_S):
                return self.control.ending.is_drained()
        return True
