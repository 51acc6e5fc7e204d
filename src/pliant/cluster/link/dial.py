"""How an agent reaches its server: one TLS connection, opened with a first line and its answer."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pliant.cluster.json_lines import MAX_LINE_BYTES, Message, decode, encode
from pliant.cluster.link.authority import SERVER_NAME, pin_of
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import AGENT_PORT, TO_NODE, Here, Join, Joined, JoinRefused, ToNode, Welcome
from pliant.core.errors import InvalidInput, Unavailable

_SERVER: Final = re.compile(
    r"(?:\[(?P<bracketed>[\da-fA-F:.%\w]+)\]|(?P<host>[\w.-]+))(?::(?P<port>[0-9]{1,5}))?"
    r"|(?P<bare>[\da-fA-F]*:[\da-fA-F.]*:[\da-fA-F:.]*)"
)
DIAL_S: Final = 5.0
"""For a connection, with its TLS and the server's answer."""
_USER_TIMEOUT_MS: Final = 5_000
"""A connection whose bytes nobody confirms for so long is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHost:
    """Where a server listens for agents."""

    host: str
    port: int = AGENT_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_server_host(text: str) -> ServerHost:
    """Return the address that `HOST`, `HOST:PORT`, `[IPv6]` or `[IPv6]:PORT` names.

    Raises:
        InvalidInput: it names none.
    """
    found = _SERVER.fullmatch(text.strip())
    port = int((found and found["port"]) or AGENT_PORT)
    if found is None or not 0 < port < 65_536:
        raise InvalidInput.at("--join", f"{text!r:.80} is no address of a server; give HOST or HOST:PORT")
    return ServerHost(host=found["bracketed"] or found["host"] or found["bare"], port=port)


class RefusedByServerError(Exception):
    """The server does not want this machine."""

    def __init__(self, refused: JoinRefused) -> None:
        super().__init__(refused.reason)
        self.refused = refused

    @property
    def is_final(self) -> bool:
        """It makes no sense to try again."""
        return self.refused.is_final


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerConnection:
    """A connection that was welcomed."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    welcome: Welcome
    address: ServerHost


async def join(server: ServerHost, identity: NodeIdentity, request: Join, pin: str) -> None:
    """Join the pool of a server, and keep the certificate.

    Raises:
        Unavailable: it cannot be reached, or is another server than the token is for.
        RefusedByServerError: it does not want this machine.
    """
    reader, writer = await _open(server, identity.joining_context(), None)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if shown is None or pin_of(shown) != pin:
            raise Unavailable(
                f"{server} is not the server that the join token is for, or its certificate was renewed since: make "
                f"another token with `pliant machines token`, and see that the address is right"
            )
        answer = await _ask(reader, writer, request, server)
        if not isinstance(answer, Joined):
            raise Unavailable(f"{server} answers with something else than a certificate")
        identity.accept(answer.certificate, answer.authority)
    finally:
        await _hang_up(writer)


async def meet(
    server: ServerHost, identity: NodeIdentity, here: Callable[[], Here], turn: asyncio.Lock
) -> ServerConnection:
    """Connect as a machine that has joined.

    Args:
        server: where.
        identity: whose certificate is shown.
        here: returns the greeting, when it is to be sent.
        turn: of several that connect at the same time one greets after the other: a server has one link of a machine.

    Raises:
        Unavailable: the server cannot be reached, or is not of this pool.
        RefusedByServerError: it does not want this machine, now or ever.
    """
    reader, writer = await _open(server, identity.client_context(), SERVER_NAME)
    try:
        async with turn:
            answer = await _ask(reader, writer, here(), server)
        if not isinstance(answer, Welcome):
            raise Unavailable(f"{server} answers with something else than a welcome")
    except BaseException:
        await _hang_up(writer)
        raise
    return ServerConnection(reader=reader, writer=writer, welcome=answer, address=server)


async def _open(
    server: ServerHost, context: ssl.SSLContext, name: str | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(
                server.host, server.port, ssl=context, server_hostname=name or "", limit=MAX_LINE_BYTES
            ),
            DIAL_S,
        )
    except ssl.SSLCertVerificationError as error:
        raise Unavailable(
            f"{server} is not a server of the pool that this machine has joined ({error.verify_message}); see that the "
            f"address is right, or join anew with a token"
        ) from error
    except (OSError, TimeoutError) as error:
        raise Unavailable(f"{server} cannot be reached: {_words(error, 'no answer')}") from error
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)
    return reader, writer


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, greeting: Message, server: ServerHost
) -> ToNode:
    writer.write(encode(greeting))
    try:
        line = await asyncio.wait_for(reader.readline(), DIAL_S)
        if not line.endswith(b"\n"):
            raise Unavailable(f"{server} has hung up without a word")
        answer = decode(line, _ANSWERS)
    except (OSError, TimeoutError, ValueError) as error:
        raise Unavailable(
            f"{server} does not answer as a server of Pliant does: {_words(error, 'nothing came')}"
        ) from error
    if isinstance(answer, JoinRefused):
        raise RefusedByServerError(answer)
    return answer


def abort(writer: asyncio.StreamWriter) -> None:
    """End a connection at once; one that has ended is left."""
    with suppress(AttributeError):  # asyncio of Python 3.11.2: TLS that has ended cannot be aborted
        writer.transport.abort()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection that is of no use; the loop may end after this."""
    abort(writer)
    with suppress(OSError):
        await writer.wait_closed()


def _words(error: Exception, otherwise: str) -> str:
    return str(error) or otherwise


_ANSWERS: Final[Mapping[str, type[ToNode]]] = {
    kind: message for kind, message in TO_NODE.items() if message in (Joined, JoinRefused, Welcome)
}
