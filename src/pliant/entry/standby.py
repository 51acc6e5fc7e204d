"""A server that waits for the lead: it listens and answers 503 until another server is gone.

Touches no task, and no file but the one that says where it listens.
"""

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn

from pliant.core.errors import PliantError, Unavailable
from pliant.entry.database import shown
from pliant.entry.front import Front
from pliant.entry.home import SERVER_FILE, STANDBY_FILE, announce, announced, withdraw
from pliant.entry.lead import Keeper
from pliant.entry.settings import ServerSettings
from pliant.server.app import make_standby

log = logging.getLogger("pliant")

_LOOK_S: Final = 0.25
_CLOSE_S: Final = 1


class _Web(uvicorn.Server):
    """Uvicorn that tells when it listens and heeds signals, ends at one, and does not raise it again."""

    def __init__(self, config: uvicorn.Config, *, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        log.info("the standby ends (%s)", signal.Signals(sig).name)
        self.should_exit = True


class _Waiting:
    """Looks for the lead in a thread of its own."""

    def __init__(self, keeper: Keeper, web: _Web) -> None:
        self.leads = False
        self.error: PliantError | None = None
        self._keeper = keeper
        self._web = web
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pliant-standby", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        logged = ""
        while not self._stop.wait(_LOOK_S):
            try:
                self.leads = self._keeper.take()
                logged = ""
            except Unavailable as error:
                if str(error) != logged:
                    log.warning("%s; it is tried again", error)
                logged = str(error)
            except PliantError as error:
                self.error = error
            if self.leads or self.error is not None:
                self._web.should_exit = True
                return


def stand_by(settings: ServerSettings, keeper: Keeper, front: Front) -> bool:
    """Answer 503 until we lead; return False if we were asked to end before.

    Raises:
        PliantError: the lead can never be taken, such as when a newer Pliant wrote the database.
    """
    note = settings.home / STANDBY_FILE
    app = make_standby(lambda: announced(settings.home / SERVER_FILE))
    config = front.config(app, lifespan="off", timeout_graceful_shutdown=_CLOSE_S)
    web = _Web(config, listening=lambda: announce(note, front.url, time.time(), **front.describe_tls()))
    waiting = _Waiting(keeper, web)
    log.info("another server leads %s; this one stands by at %s", shown(settings.database), front.url)
    front.listener.listen(config.backlog)
    waiting.start()
    try:
        web.run(sockets=[front.listener.dup()])  # which it closes; what connects meanwhile waits on ours
    finally:
        waiting.stop()
        withdraw(note)
    if waiting.error is not None:
        raise waiting.error
    if waiting.leads:
        log.info("the server that led is gone; this one takes its place")
    return waiting.leads
