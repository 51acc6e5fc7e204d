"""What machines hand out to each other: contents that they have, over TLS, to whoever knows the key of a tree.

The server names a few machines that have a tree to one that asks for it, with the key that all of them were told, and
the pin of the certificate that each has made for itself when it began. Whatever comes is compared with its SHA-256, so
a neighbour can withhold and no more: then the server is asked.
"""

import hmac
import logging
import os
import socket
import ssl
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pliant.cluster.json_lines import decode, encode
from pliant.cluster.link.authority import pin_of
from pliant.cluster.mirror.messages import (
    ANSWERS,
    CHUNK_BYTES,
    FROM_NEIGHBOURS,
    FileContent,
    NeighbourAddress,
    TakeFrom,
)
from pliant.core.errors import Unavailable
from pliant.files.certificates import own_pair

_log = logging.getLogger(__name__)

_SILENT_S: Final = 10.0
_DIAL_S: Final = 3.0
_NUM_SERVED: Final = 4
_MAX_WAITING: Final = 16
_MAX_TREES: Final = 1000
_MAX_LINE_BYTES: Final = 4096
_VALID: Final = timedelta(days=3650)
_BACKDATED: Final = timedelta(days=1)


class NeighbourServer:
    """Hands out contents. Safe to use from any thread.

    Args:
        host: where it listens, at any free port.
        state_dir: the agent's own folder; its key lies there for a moment.
        find: returns the file of a content; None: it is not here.
    """

    def __init__(self, host: str, state_dir: Path, find: Callable[[str], Path | None]) -> None:
        now = datetime.now(UTC)
        pem, der = own_pair("neighbour", begins=now - _BACKDATED, ends=now + _VALID)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        with tempfile.NamedTemporaryFile(dir=state_dir, prefix=".neighbour-") as file:  # ssl reads files alone
            file.write(pem)
            file.flush()
            self._context.load_cert_chain(file.name)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, 0), family=family)
        self.address = NeighbourAddress(host=host, port=self._listening.getsockname()[1], pin=pin_of(der))
        self._find = find
        self._keys: OrderedDict[str, tuple[str, frozenset[str]]] = OrderedDict()
        self._places = threading.Semaphore(_MAX_WAITING)
        self._serving = ThreadPoolExecutor(_NUM_SERVED, "pliant-neighbours")
        threading.Thread(target=self._accept, name="pliant-neighbours", daemon=True).start()

    def note(self, tree: str, key: str, digests: frozenset[str]) -> None:
        """Hand out these contents to whoever knows the key of their tree."""
        self._keys[tree] = (key, digests)
        while len(self._keys) > _MAX_TREES:
            self._keys.popitem(last=False)

    def close(self) -> None:
        """End."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._serving.shutdown(wait=False, cancel_futures=True)

    def _accept(self) -> None:
        while True:
            try:
                arrived, _ = self._listening.accept()
            except OSError:
                return
            if not self._places.acquire(blocking=False):
                arrived.close()  # it asks another one, or the server
                continue
            try:
                self._serving.submit(self._serve, arrived)
            except RuntimeError:  # it ends
                arrived.close()
                return

    def _serve(self, arrived: socket.socket) -> None:
        try:
            arrived.settimeout(_SILENT_S)
            with self._context.wrap_socket(arrived, server_side=True) as sock, sock.makefile("rb") as asked:
                num_bytes = 0
                while line := asked.readline(_MAX_LINE_BYTES):
                    num_bytes += self._answer(sock, decode(line, FROM_NEIGHBOURS))
            _log.info("another machine has got %d bytes from here", num_bytes)
        except (OSError, ValueError) as error:
            _log.debug("a neighbour is not served: %s", error)
        finally:
            arrived.close()
            self._places.release()

    def _answer(self, sock: ssl.SSLSocket, asked: TakeFrom) -> int:
        key, digests = self._keys.get(asked.tree, ("", frozenset()))
        found = None
        if key and hmac.compare_digest(key, asked.key) and asked.digest in digests:
            found = self._find(asked.digest)
        if found is None:
            sock.sendall(encode(FileContent(num_bytes=0, why_not="it is not here")))
            return 0
        with found.open("rb") as file:
            left = num_bytes = max(0, os.fstat(file.fileno()).st_size - asked.offset)
            file.seek(asked.offset)
            sock.sendall(encode(FileContent(num_bytes=left)))
            while left:
                piece = file.read(min(CHUNK_BYTES, left)) or b"\0" * min(CHUNK_BYTES, left)
                sock.sendall(piece)
                left -= len(piece)
        return num_bytes


class NeighbourConnection:
    """Asks another machine. All methods raise Unavailable if it has not what is asked for, or is lost."""

    def __init__(self, address: NeighbourAddress, tree: str, key: str) -> None:
        self._tree, self._key = tree, key
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its pin is compared
        try:
            plain = socket.create_connection((address.host, address.port), _DIAL_S)
            plain.settimeout(_SILENT_S)
            self._sock = context.wrap_socket(plain)
        except OSError as error:
            raise Unavailable(f"{address.host}:{address.port} cannot be reached: {error}") from error
        self._stream = self._sock.makefile("rb", buffering=CHUNK_BYTES)
        shown = self._sock.getpeercert(binary_form=True)
        if shown is None or not hmac.compare_digest(pin_of(shown), address.pin):
            self.close()
            raise Unavailable(f"{address.host}:{address.port} is another machine than the server has named")

    def close(self) -> None:
        """Hang up."""
        for end in (self._stream, self._sock):
            with suppress(OSError):
                end.close()

    def take(self, digest: str, offset: int) -> tuple[int, Iterator[bytes]]:
        """Return how long the rest of a file is, and that."""
        try:
            self._sock.sendall(encode(TakeFrom(tree=self._tree, key=self._key, digest=digest, offset=offset)))
            answer = decode(self._stream.readline(_MAX_LINE_BYTES), ANSWERS)
        except (OSError, ValueError) as error:
            raise Unavailable(f"a neighbour does not answer: {error}") from error
        if not isinstance(answer, FileContent) or answer.why_not:
            raise Unavailable("a neighbour has not what it was said to have")
        return answer.num_bytes, self._pieces(answer.num_bytes)

    def _pieces(self, num_bytes: int) -> Iterator[bytes]:
        while num_bytes:
            try:
                piece = self._stream.read(min(CHUNK_BYTES, num_bytes))
            except OSError as error:
                raise Unavailable(f"a neighbour is lost: {error}") from error
            if not piece:
                raise Unavailable("a neighbour has hung up")
            num_bytes -= len(piece)
            yield piece
