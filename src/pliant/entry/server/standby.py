"""A server that waits for the lead: it listens and answers 503 until another server is gone.

Touches no task, and no file but the one that says where it listens.
"""

import logging
import os
import threading
import time
from typing import Final

from pliant.core.errors import PliantError, Unavailable
from pliant.entry.server.database import display_url
from pliant.entry.server.home import SERVER_FILE, STANDBY_FILE, announce, read_url, withdraw
from pliant.entry.server.lead import Keeper
from pliant.entry.server.listener import Listener, WebServer
from pliant.entry.server.settings import ServerSettings
from pliant.server.app import make_standby

log = logging.getLogger("pliant")

_LOOK_S: Final = 0.25
_CLOSE_S: Final = 1


class _Waiting:
    """Looks for the lead in a thread of its own."""

    def __init__(self, keeper: Keeper, web: WebServer) -> None:
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
                self._web.end()
                return


def stand_by(settings: ServerSettings, keeper: Keeper, listener: Listener) -> bool:
    """Answer 503 until we lead; return False if we were asked to end before.

    Raises:
        PliantError: the lead can never be taken, such as when a newer Pliant wrote the database.
    """
    note = settings.home / STANDBY_FILE
    app = make_standby(lambda: read_url(settings.home / SERVER_FILE))
    config = listener.config(app, lifespan="off", timeout_graceful_shutdown=_CLOSE_S)

    def end(signal_name: str) -> None:
        log.info("the standby ends (%s)", signal_name)
        web.end()

    web = WebServer(
        config,
        on_listening=lambda: announce(note, listener.url, time.time(), listener.describe()),
        on_signal=end,
    )
    waiting = _Waiting(keeper, web)
    log.info("another server leads %s; this one stands by at %s", display_url(settings.database), listener.url)
    log.info("Ctrl-C or `kill %d` ends this one; `pliant down` is for the one that leads", os.getpid())
    listener.sock.listen(config.backlog)
    waiting.start()
    try:
        web.run(sockets=[listener.sock.dup()])  # which it closes; what connects meanwhile waits on ours
    finally:
        waiting.stop()
        withdraw(note)
    if waiting.error is not None:
        raise waiting.error
    if waiting.leads:
        log.info("the server that led is gone; this one takes its place")
    return waiting.leads
