"""The server's process: puts the rooms together, listens, and drains all jobs before it ends.

`python -m pliant.entry.server --home FOLDER --host 127.0.0.1 --port 7311 --slots N --policy fairshare --cooldown-s 2`
Exit codes: 0 after a shutdown, 2 if it could not start, 3 if another server has taken the lead,
130 at Ctrl-C before it serves.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from pliant.api.link import MAX_FRAME_BYTES
from pliant.core.errors import PliantError
from pliant.entry.clock import SystemClock
from pliant.entry.interrupt import INTERRUPTED
from pliant.entry.server.composition import CLOSE_S, compose
from pliant.entry.server.copies import has_copies
from pliant.entry.server.garbage import spare_collections
from pliant.entry.server.home import SERVER_FILE, FolderLock, Home, open_home
from pliant.entry.server.lead import Keeper, lead_of, refusal
from pliant.entry.server.listener import Listener, WebServer, open_listener, use_certificate_of
from pliant.entry.server.pool import folder_of
from pliant.entry.server.rooms.cluster import open_cluster
from pliant.entry.server.rooms.people import print_once, reset_administrator
from pliant.entry.server.settings import ServerSettings, read_settings
from pliant.entry.server.standby import stand_by
from pliant.ibm.rest.api import IBM
from pliant.server.app import make_app
from pliant.server.site import Site
from pliant.store.sql import SqlStore

log = logging.getLogger("pliant")


def main(argv: Sequence[str]) -> int:
    """Run the server until it is told to end; return the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("alembic", "uvicorn", "websockets"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of every broken request of a stranger
    try:
        settings = read_settings(argv, os.environ)
        if settings.reset_admin:
            print_once(reset_administrator(settings.home, settings.database), settings.login_fd)
            return 0
        with ExitStack() as stack:
            lock = stack.enter_context(closing(FolderLock(settings.home)))
            keeper = stack.enter_context(closing(Keeper(lead_of(settings, lock), settings.database)))
            leads = keeper.take()
            listener = stack.enter_context(closing(open_listener(settings, now=SystemClock().now(), leads=leads)))
            if not leads:
                if (conflict := refusal(settings, lock)) is not None:
                    raise conflict
                if not stand_by(settings, keeper, listener):
                    return 0
            lead(settings, keeper, listener)
    except PliantError as error:
        print(f"pliant: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # once it serves, Ctrl-C is a signal that it heeds
        print("pliant: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def lead(settings: ServerSettings, keeper: Keeper, listener: Listener) -> None:
    """Open what the one server that leads may open, and serve until told to end.

    Raises:
        PliantError: it cannot be opened.
    """
    with closing(SqlStore(settings.database, term=keeper.term, now=SystemClock().now)) as store:
        keeper.stale = lambda: store.diverged
        now = SystemClock().now()
        folder = folder_of(
            store.registry, settings, now, lambda pool: has_copies(settings.results_to, settings.home, pool)
        )
        listener = use_certificate_of(listener, settings, folder, now=now)
        home = open_home(folder, also=None if folder == settings.home else settings.home)
        for place in {folder, settings.home}:
            (place / SERVER_FILE).unlink(missing_ok=True)
        serve(settings, home, listener, store, is_sure=keeper.is_sure)
        home.withdraw()


def serve(
    settings: ServerSettings, home: Home, listener: Listener, store: SqlStore, *, is_sure: Callable[[], bool]
) -> None:
    """Put the rooms together and serve until told to end; `is_sure` tells that this server leads."""
    clock = SystemClock()
    with ExitStack() as stack:
        cluster = open_cluster(settings, home, listener, store, stack, is_sure=is_sure)
        composition = compose(settings, home, listener, store, cluster, stack)
        control, shutdown = composition.context.control, composition.shutdown
        config = listener.config(
            make_app(composition.context, IBM, site=_site(settings, listener)),
            ws_max_size=MAX_FRAME_BYTES,
            timeout_graceful_shutdown=CLOSE_S,
        )
        server = WebServer(
            config,
            on_listening=lambda: _announce(home, listener, clock.now(), settings.root_path),
            on_signal=shutdown.begin,
        )
        shutdown.exit = server.end
        composition.start()
        loop = threading.Thread(target=control.run, name="pliant-control", daemon=True)
        loop.start()
        stack.callback(loop.join, CLOSE_S)
        stack.callback(control.close)
        upkeep = composition.context.upkeep
        threading.Thread(target=upkeep.run, name="pliant-upkeep", daemon=True).start()
        stack.callback(upkeep.close)
        spare_collections()
        server.run(sockets=[listener.sock])


def _site(settings: ServerSettings, listener: Listener) -> Site:
    port = int(listener.sock.getsockname()[1])
    return Site(port=port, root_path=settings.root_path, proxies=settings.proxies)


def _announce(home: Home, listener: Listener, now: float, root_path: str) -> None:
    below = {"root_path": root_path} if root_path else {}
    home.announce(listener.url, now, **listener.describe(), **below)
    log.info("the server listens at %s; its state is in %s", listener.url, home.path)
    if listener.public_url != listener.url:
        log.info("others reach it at %s", listener.public_url)
    log.info("its console is at %s%s/; `pliant console` opens it without a password", listener.public_url, root_path)
    if listener.tls is not None:
        log.info("its certificate is %s; SHA-256 %s", listener.tls.certificate, listener.tls.fingerprint)
