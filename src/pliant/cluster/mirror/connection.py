"""The machine's end of a connection for files. Used by one thread at a time; it waits."""

import select
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from pliant.cluster.json_lines import Message, decode, encode
from pliant.cluster.link.authority import SERVER_NAME
from pliant.cluster.link.dial import DIAL_S, ServerHost
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import TO_NODE, Carry, Carrying, JoinRefused, Versions
from pliant.cluster.mirror.entries import TreeEntry, unpack_listing
from pliant.cluster.mirror.messages import (
    ANSWERS,
    CHUNK_BYTES,
    MAX_FETCHED,
    MAX_LISTING_BYTES,
    MAX_REQUEST_BYTES,
    Append,
    AskIndex,
    Claim,
    Fetch,
    FileContent,
    FilePart,
    Granted,
    Have,
    IndexOptions,
    Listing,
    ListTree,
    NeighbourAddress,
    NotDone,
    Put,
    Remove,
    SendFrom,
    Taken,
    WayFolder,
)
from pliant.core.errors import Conflict, NotFound, Unavailable

SILENT_S: Final = 30.0
"""A server that says nothing for so long is away. It may read a large file before it answers: see `_LISTING_S`."""
_LISTING_S: Final = 3600.0
"""The first listing of a large data set reads all of it."""
_READ_RATE: Final = 20e6
"""A disk reads so many bytes a second at least."""
_A = TypeVar("_A")

Place = Callable[[FilePart, int, Iterator[bytes]], None]
"""Takes a file: which part, how many bytes follow, and these."""


class TreeListing(NamedTuple):
    """What is in a folder."""

    digest: str
    entries: tuple[TreeEntry, ...] | None
    """None: the digest is the known one."""
    key: str = ""
    """By which machines that have it know each other."""
    neighbours: tuple[NeighbourAddress, ...] = ()
    way: tuple[WayFolder, ...] = ()
    """Of people's data: who may pass through the folders from the data root on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileServer:
    """How the server is reached for files."""

    servers: Callable[[], Sequence[ServerHost]]
    """Where it may be, the likeliest first."""
    identity: NodeIdentity
    versions: Versions

    def connect(self) -> "FileConnection":
        """Return a new connection.

        Raises:
            Unavailable: no server can be reached, or it does not serve this machine.
        """
        troubles = []
        for server in self.servers():
            try:
                return FileConnection(self._open(server), self.versions)
            except (OSError, ValueError, Unavailable) as error:
                troubles.append(f"{server}: {error}")
        raise Unavailable("; ".join(troubles) or "nobody has said where the server is")

    def _open(self, server: ServerHost) -> ssl.SSLSocket:
        plain = socket.create_connection((server.host, server.port), DIAL_S)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self.identity.client_context().wrap_socket(plain, server_hostname=SERVER_NAME)
        except BaseException:
            plain.close()
            raise


class FileConnection:
    """Asks, and waits for what is answered.

    All methods raise Unavailable if the connection is lost (it is of no use then), NotFound if the server does not want
    what is offered, or has not what is asked for, and Conflict if it refuses for another reason.
    """

    def __init__(self, sock: ssl.SSLSocket, versions: Versions) -> None:
        self._sock = sock
        sock.settimeout(SILENT_S)
        self._stream = sock.makefile("rb", buffering=CHUNK_BYTES)
        self.is_lost = False
        self._send(Carry(versions=versions))
        answer = decode(self._line(), TO_NODE)
        if isinstance(answer, JoinRefused):
            self.close()
            raise Unavailable(answer.reason)
        if not isinstance(answer, Carrying):
            self.close()
            raise Unavailable("it answers with something else than files")

    def close(self) -> None:
        """Hang up."""
        self.is_lost = True
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._sock.close()

    def is_usable(self) -> bool:
        """Tell whether a connection that nobody uses is there still: what it says unasked is that it ends."""
        return not self.is_lost and not select.select([self._sock], [], [], 0)[0]

    def claim(self, claim: Claim) -> None:
        """Speak for a task from now on."""
        self._ask(claim, Granted)

    def list(self, path: str, *, known: str = "", but: Sequence[str] = ()) -> TreeListing:
        """Return what is in a folder."""
        self._be_patient(_LISTING_S)
        try:
            listing = self._ask(ListTree(path=path, known=known, but=tuple(but)), Listing)
        finally:
            self._be_patient(SILENT_S)
        if not listing.num_bytes:
            return TreeListing(listing.digest, None)
        if listing.num_bytes > MAX_LISTING_BYTES:
            raise self._lost("a listing is too long")
        content = b"".join(self._pieces(listing.num_bytes))
        try:
            return TreeListing(listing.digest, unpack_listing(content), listing.key, listing.neighbours, listing.way)
        except ValueError as error:
            raise self._lost(str(error)) from error

    def fetch(self, path: str, parts: Sequence[FilePart], place: Place) -> None:
        """Fetch files of a folder; each is handed to `place`."""
        for first in range(0, len(parts), MAX_FETCHED):
            asked = parts[first : first + MAX_FETCHED]
            self._send(Fetch(path=path, files=tuple(asked)))
            for part in asked:
                content = self._answer(FileContent)
                if content.why_not:
                    self.close()  # the rest of what was asked for is on its way
                    raise Conflict(f"{path}/{part.name} cannot be fetched: {content.why_not}")
                pieces = self._pieces(content.num_bytes)
                try:
                    place(part, content.num_bytes, pieces)
                except BaseException:
                    self.close()  # in the middle of a file
                    raise

    def put(self, put: Put, read: Callable[[int, int], bytes]) -> bool:
        """Send a file, of which `read` returns bytes from an offset on; tell whether it was as long as was said."""
        self._be_patient(SILENT_S + put.num_bytes / _READ_RATE)  # either end reads all of it once more
        try:
            return self._put(put, read)
        finally:
            self._be_patient(SILENT_S)

    def _put(self, put: Put, read: Callable[[int, int], bytes]) -> bool:
        offset = self._ask(put, SendFrom).offset
        if offset is None:
            return True
        is_whole = True
        while offset < put.num_bytes:
            wanted = min(CHUNK_BYTES, put.num_bytes - offset)
            content = read(offset, wanted)
            if not content:
                is_whole, content = False, b"\0" * wanted
            self._write(content)
            offset += len(content)
        answer = self._answer(Taken, NotDone)
        if isinstance(answer, NotDone) and is_whole:
            raise _error(answer)
        return is_whole

    def append(self, path: str, name: str, offset: int, content: bytes) -> int:
        """Write to a log from an offset on; return how long it is then."""
        self._send(Append(path=path, name=name, offset=offset, num_bytes=len(content)))
        self._write(content)
        return self._answer(Taken).num_bytes

    def remove(self, path: str, name: str) -> None:
        """Remove a file."""
        self._ask(Remove(path=path, name=name), Taken)

    def _be_patient(self, seconds: float) -> None:
        """Wait so long for whatever is to come; a connection that was closed meanwhile waits for nothing."""
        with suppress(OSError):
            self._sock.settimeout(seconds)

    def have(self, digest: str, address: NeighbourAddress) -> None:
        """Say that a tree is here, and where it is handed out."""
        self._ask(Have(digest=digest, address=address), Taken)

    def ask_index(self) -> IndexOptions:
        """Return how the server builds environments."""
        return self._ask(AskIndex(), IndexOptions)

    def _ask(self, message: Message, kind: type[_A]) -> _A:
        self._send(message)
        return self._answer(kind)

    def _answer(self, *kinds: type[_A]) -> _A:
        try:
            answer = decode(self._line(), ANSWERS)
        except ValueError as error:
            raise self._lost(str(error)) from error
        if isinstance(answer, kinds):
            return answer
        if isinstance(answer, NotDone):
            raise _error(answer)
        raise self._lost(f"it answers {answer.kind!r}")

    def _send(self, message: Message) -> None:
        self._write(encode(message))

    def _write(self, content: bytes) -> None:
        try:
            self._sock.sendall(content)
        except OSError as error:
            raise self._lost(str(error)) from error

    def _line(self) -> bytes:
        try:
            line = self._stream.readline(MAX_REQUEST_BYTES)
        except (OSError, ValueError) as error:
            raise self._lost(str(error)) from error
        if not line.endswith(b"\n"):
            raise self._lost("the server has hung up")
        return line

    def _pieces(self, num_bytes: int) -> Iterator[bytes]:
        while num_bytes:
            try:
                piece = self._stream.read(min(CHUNK_BYTES, num_bytes))
            except (OSError, ValueError) as error:
                raise self._lost(str(error)) from error
            if not piece:
                raise self._lost("the server has hung up in the middle of a file")
            num_bytes -= len(piece)
            yield piece

    def _lost(self, why: str) -> Unavailable:
        self.close()
        return Unavailable(f"the connection to the server for files is lost: {why}")


def _error(answer: NotDone) -> Exception:
    return NotFound(answer.reason) if answer.is_gone else Conflict(answer.reason)
