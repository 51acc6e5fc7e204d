"""The server's process: puts the rooms together, listens, and drains all jobs before it ends.

`python -m pliant.entry.server --home FOLDER --host 127.0.0.1 --port 7311 --slots N --policy fairshare --cooldown-s 2`
Exit codes: 0 after a shutdown, 2 if it could not start, 3 if another server has taken the lead.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from types import FrameType

import uvicorn

from pliant.api.link import MAX_FRAME_BYTES
from pliant.core.errors import PliantError
from pliant.entry.clock import SystemClock
from pliant.entry.ending import Ending
from pliant.entry.front import Front, in_folder, open_front
from pliant.entry.home import SERVER_FILE, FolderLock, Home, opened
from pliant.entry.lead import Keeper, lead_of, refusal
from pliant.entry.parts import CLOSE_S, put_together
from pliant.entry.people import print_once, reset_administrator
from pliant.entry.pool import folder_of
from pliant.entry.settings import ServerSettings, read_settings
from pliant.entry.standby import stand_by
from pliant.ibm.rest.api import IBM
from pliant.server.app import make_app
from pliant.store.sql import SqlStore

log = logging.getLogger("pliant")


class WebServer(uvicorn.Server):
    """Uvicorn that tells when it listens, and leaves signals to the ending."""

    def __init__(self, config: uvicorn.Config, *, ending: Ending, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        self._ending.ask(signal.Signals(sig).name)

    def end(self) -> None:
        """Stop to listen; `run` returns soon."""
        self.should_exit = True


def main(argv: Sequence[str]) -> int:
    """Run the server until it is told to end; return the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("alembic", "uvicorn", "websockets"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        settings = read_settings(argv, os.environ)
        if settings.reset_admin:
            print_once(reset_administrator(settings.home, settings.database), settings.login_fd)
            return 0
        with ExitStack() as stack:
            lock = stack.enter_context(closing(FolderLock(settings.home)))
            keeper = stack.enter_context(closing(Keeper(lead_of(settings, lock), settings.database)))
            front = stack.enter_context(closing(open_front(settings, now=SystemClock().now())))
            if not keeper.take():
                if (conflict := refusal(settings, lock)) is not None:
                    raise conflict
                if not stand_by(settings, keeper, front):
                    return 0
            lead(settings, keeper, front)
    except PliantError as error:
        print(f"pliant: {error}", file=sys.stderr)
        return 2
    return 0


def lead(settings: ServerSettings, keeper: Keeper, front: Front) -> None:
    """Open what the one server that leads may open, and serve until told to end.

    Raises:
        PliantError: it cannot be opened.
    """
    with closing(SqlStore(settings.database, term=keeper.term)) as store:
        keeper.stale = lambda: store.diverged
        now = SystemClock().now()
        folder = folder_of(store.registry, settings, now)
        front = in_folder(front, settings, folder, now=now)
        home = opened(folder, also=None if folder == settings.home else settings.home)
        for place in {folder, settings.home}:
            (place / SERVER_FILE).unlink(missing_ok=True)
        serve(settings, home, front, store)
        home.withdraw()


def serve(settings: ServerSettings, home: Home, front: Front, store: SqlStore) -> None:
    """Put the rooms together and serve until told to end."""
    clock = SystemClock()
    with ExitStack() as stack:
        parts = put_together(settings, home, front, store, stack)
        control, ending = parts.context.control, parts.ending
        config = front.config(
            make_app(parts.context, IBM),
            proxy_headers=False,
            ws="websockets-sansio",
            ws_max_size=MAX_FRAME_BYTES,
            timeout_graceful_shutdown=CLOSE_S,
        )
        server = WebServer(config, ending=ending, listening=lambda: _announce(home, front, clock.now()))
        ending.exit = server.end
        parts.start()
        loop = threading.Thread(target=control.run, name="pliant-control", daemon=True)
        loop.start()
        stack.callback(loop.join, CLOSE_S)
        stack.callback(control.close)
        upkeep = parts.context.upkeep
        threading.Thread(target=upkeep.run, name="pliant-upkeep", daemon=True).start()
        stack.callback(upkeep.close)
        server.run(sockets=[front.listener])


def _announce(home: Home, front: Front, now: float) -> None:
    home.announce(front.url, now, **front.describe_tls())
    log.info("the server listens at %s; its state is in %s", front.url, home.path)
    if front.tls is not None:
        log.info("its certificate is %s; SHA-256 %s", front.tls.certificate, front.tls.fingerprint)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
