"""Both ends of a WebSocket that stands for a tunnel."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from websockets.sync.client import connect
from websockets.sync.connection import Connection
from websockets.sync.server import ServerConnection, serve


@contextmanager
def both_connections() -> Iterator[tuple[Connection, Connection]]:
    """Yield both ends of a WebSocket."""
    accepted: list[ServerConnection] = []
    there, over = threading.Event(), threading.Event()

    def hold(connection: ServerConnection) -> None:
        accepted.append(connection)
        there.set()
        over.wait(30)

    with serve(hold, "127.0.0.1", 0, compression=None, close_timeout=0.5) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        with connect(url, compression=None, close_timeout=0.5) as connection:
            assert there.wait(30)
            yield connection, accepted[0]
            over.set()
        server.shutdown()


def eventually(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.01)
