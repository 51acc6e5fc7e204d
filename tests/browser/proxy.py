"""A reverse proxy that shows a server below a path, as nginx does; it passes on what comes as it comes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Final

_MAX_HEAD: Final = 65_536


@contextmanager
def reverse_proxy(port: int, prefix: str) -> Iterator[str]:
    """Show the server at `port` below `prefix` while the block runs; return the address. Elsewhere there is nothing."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            """Pass on one request and its answer."""
            head = b""
            while b"\r\n\r\n" not in head:
                received = self.request.recv(_MAX_HEAD)
                if not received or len(head) > _MAX_HEAD:
                    return
                head += received
            first, rest = head.split(b"\r\n", 1)
            if not first.split(b" ")[1].startswith(f"{prefix}/".encode()):
                self.request.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            fields, body = rest.split(b"\r\n\r\n", 1)
            kept = [line for line in fields.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            host = next(line.split(b":", 1)[1].strip() for line in kept if line.lower().startswith(b"host:"))
            more = (b"Connection: close", b"X-Forwarded-For: 203.0.113.7", b"X-Forwarded-Proto: http")
            sent = b"\r\n".join([first, *kept, *more, b"X-Forwarded-Host: " + host, b"", body])
            with socket.create_connection(("127.0.0.1", port)) as server:
                server.sendall(sent)
                upwards = threading.Thread(target=_pass_on, args=(self.request, server), daemon=True)
                upwards.start()
                _pass_on(server, self.request)
                with suppress(OSError):
                    self.request.shutdown(socket.SHUT_RDWR)
                upwards.join(10)

    class Server(ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
        server.shutdown()
        thread.join(10)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Send what comes until there is no more, or somebody has gone."""
    with suppress(OSError):
        while received := source.recv(_MAX_HEAD):
            target.sendall(received)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
