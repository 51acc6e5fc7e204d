"""What a sound server never does: connections that break, and answers that no version of it would give."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, bytes | str]


@contextmanager
def answering(*answers: Answer) -> Iterator[str]:
    """Give these answers one after the other, whatever is asked; the value is the URL."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = left.pop(0)
            content = body.encode() if isinstance(body, str) else body
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(10.0)


@dataclass
class Cutter:
    """A wire to the server that breaks after so many bytes of what is sent, or of the answers: once for each cut."""

    port: int
    cuts: list[int]
    of_answers: bool = False

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                theirs, _ = self._listener.accept()
            except OSError:
                return
            ours = socket.create_connection(("127.0.0.1", self.port))
            limit = self.cuts.pop(0) if self.cuts else None
            self._ends += [theirs, ours]
            limits = (None, limit) if self.of_answers else (limit, None)
            for one, other, most in ((theirs, ours, limits[0]), (ours, theirs, limits[1])):
                thread = threading.Thread(target=self._carry, args=(one, other, most), daemon=True)
                thread.start()
                self._threads.append(thread)

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket, limit: int | None) -> None:
        left = limit
        try:
            with suppress(OSError):  # the other direction was cut
                while data := one.recv(1 << 14):
                    if left is not None:
                        data, left = data[:left], left - len(data)
                    other.sendall(data)
                    if left is not None and left <= 0:
                        break
        finally:
            for end in (one, other):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(5)
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for end in (self._listener, *self._ends):
            end.close()
