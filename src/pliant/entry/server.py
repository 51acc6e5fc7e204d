"""The server's process: puts the rooms together, listens, and drains all jobs before it ends.

`python -m pliant.entry.server --home FOLDER --host 127.0.0.1 --port 7311 --slots N --policy fairshare --cooldown-s 2`
Exit codes: 0 after a shutdown, 2 if it could not start.
"""

import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

import pliant
from pliant.cluster.local import LocalCluster
from pliant.cluster.settings import PRELOAD, LocalSettings
from pliant.control.loop import Control
from pliant.control.settings import ControlSettings
from pliant.core.errors import Conflict, PliantError, Unavailable
from pliant.core.job import NodeId
from pliant.entry.clock import SystemClock
from pliant.entry.home import Home, held_home
from pliant.entry.settings import ServerSettings, read_settings
from pliant.server.app import make_app
from pliant.server.bell import Bell
from pliant.server.context import Context
from pliant.server.links import LinkHub
from pliant.store.sql import SqlStore
from pliant.wire.link import MAX_FRAME_BYTES

log = logging.getLogger("pliant")

QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
"""Otherwise torch warns in the logs of tasks whenever a connection of a generation that is over closes."""
DRAIN_S = 30.0
KILL_S = 5.0
_LOOK_S = 0.05
_CLOSE_S = 5
_COMPAT = Path(pliant.__file__).parent / "compat"


@dataclass(slots=True, kw_only=True)
class Ending:
    """How the server ends: once it was asked to, all jobs save and leave; asked again, at once."""

    control: Control
    bell: Bell
    links: LinkHub
    exit: Callable[[], None] = lambda: None
    """Makes the web server end."""
    _asked: bool = False
    _hurry: threading.Event = field(default_factory=threading.Event)

    def ask(self, cause: str) -> None:
        """Begin to end; from any thread, or a signal handler. Returns at once."""
        if self._asked:
            self._hurry.set()
            return
        self._asked = True
        threading.Thread(target=self._drain, args=(cause,), name="pliant-ending", daemon=True).start()

    def ask_once(self, cause: str) -> None:
        """Begin to end, without hurry however often it is asked."""
        if not self._asked:
            self.ask(cause)

    def _drain(self, cause: str) -> None:
        log.info("the server stops (%s): jobs save their state at the next step boundary", cause)
        try:
            self.control.drain_all(cause)
            if not self._wait(DRAIN_S):
                log.warning("some tasks have not left: they are killed; their jobs go on from the newest checkpoint")
                self.control.kill_all()
                self._hurry.clear()
                self._wait(KILL_S)
        finally:
            self.bell.close()
            self.links.close_all()
            self.exit()

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.control.drained():
            if time.monotonic() > deadline or self._hurry.wait(_LOOK_S):
                return self.control.drained()
        return True


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
        with held_home(settings.home) as home, closing(_bound(settings)) as listener:
            serve(settings, home, listener)
    except PliantError as error:
        print(f"pliant: {error}", file=sys.stderr)
        return 2
    return 0


def serve(settings: ServerSettings, home: Home, listener: socket.socket) -> None:
    """Put the rooms together and serve until told to end."""
    clock = SystemClock()
    url = _url(listener)
    with ExitStack() as stack:
        store = SqlStore(f"sqlite:///{home.path / 'pliant.db'}")
        stack.callback(store.close)
        cluster = LocalCluster(
            LocalSettings(
                node_id=NodeId("local"),
                state_dir=home.path / "agent",
                num_slots=settings.num_slots,
                preload=(*PRELOAD, *settings.preload),
            ),
            clock=clock,
            base_env={**QUIET, **os.environ},
        )
        stack.callback(cluster.close)
        links, bell = LinkHub(), Bell()
        control = Control(
            store=store,
            cluster=cluster,
            links=links,
            clock=clock,
            settings=ControlSettings(
                home=home.path, url=url, secret=home.secret, policy=settings.policy, compat=_COMPAT
            ),
        )
        ending = Ending(control=control, bell=bell, links=links)
        context = Context(
            control=control,
            bell=bell,
            links=links,
            uploads=home.uploads,
            shut_down=lambda: ending.ask_once("a request"),
        )
        config = uvicorn.Config(
            make_app(context, token=home.token),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            ws_max_size=MAX_FRAME_BYTES,
            timeout_graceful_shutdown=_CLOSE_S,
        )
        server = WebServer(config, ending=ending, listening=lambda: _announce(home, url, clock.now()))
        ending.exit = server.end
        control.start()
        loop = threading.Thread(target=control.run, name="pliant-control", daemon=True)
        loop.start()
        stack.callback(loop.join, _CLOSE_S)
        stack.callback(control.close)
        server.run(sockets=[listener])


def _announce(home: Home, url: str, now: float) -> None:
    home.announce(url, now)
    log.info("the server listens at %s; its state is in %s", url, home.path)


def _bound(settings: ServerSettings) -> socket.socket:
    """Return a socket on the address that the server shall have.

    Raises:
        Conflict: something listens there.
        Unavailable: there is no such address here.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"port {settings.port} of {settings.host} is taken by another process; give another --port, or end it"
            ) from error
        raise Unavailable(
            f"the server cannot listen on port {settings.port} of {settings.host}: {error.strerror}"
        ) from error
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
