"""Passes requests on to the gateway, over a connection of their own each, and the answers back.

Both bodies go through in pieces as they come, so that neither is ever held whole. Of a long one the gateway sees the
head first and says whether it wants the rest: what it refuses unseen is never sent. It may also answer before it has
all of a body: what is left of that is not sent then. A client who goes away ends both.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse

from pliant.api.endpoints import GatewayView
from pliant.api.server_address import ServerAddress
from pliant.api.trust import Trust
from pliant.core.errors import Unavailable
from pliant.server.context import Context

CONNECT_S: Final = 10.0
WAIT_S: Final = 2 * 86_400.0
"""Longer than an endpoint lets any request wait and compute."""
_CHUNK: Final = 1 << 16
_ASK_FIRST_BYTES: Final = _CHUNK
"""A body up to this is sent with its head."""
_MAX_WASTE_BYTES: Final = 64 << 20
PASSED: Final = (b"content-type", b"content-encoding", b"accept", b"accept-encoding", b"x-request-timeout-s")
_DROPPED: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"date", b"server"})
_EXPECTS: Final = (b"expect", b"100-continue")
_GONE: Final = (OSError, EOFError, h11.ProtocolError, ssl.SSLError)


class GatewayClient:
    """Asks the gateways of this server.

    Args:
        address: of the server, whose certificate the gateways of its own machine have, too.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    async def ask(
        self, gateway: GatewayView, path: str, token: str, request: Request, passed: Collection[bytes] = PASSED
    ) -> StreamingResponse:
        """Return a gateway's answer to a request, of whose headers it gets those that are named.

        Raises:
            Unavailable: the gateway does not answer.
        """
        exchange = await self._connect(gateway)
        try:
            head = await exchange.send(
                path, _headers(urlsplit(gateway.http_url).netloc, token, request, passed), request
            )
        except BaseException as error:
            exchange.close()
            if isinstance(error, _GONE):
                raise Unavailable("the gateway has broken off; ask again") from error
            raise
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers if name not in _DROPPED}
        return StreamingResponse(exchange.body(), status_code=head.status_code, headers=headers)

    async def _connect(self, gateway: GatewayView) -> "_Exchange":
        parts = urlsplit(gateway.http_url)
        tls, name = None, None
        if parts.scheme == "https" and gateway.certificate is not None:
            tls, name = Trust(pem=gateway.certificate).context(), parts.hostname
        elif parts.scheme == "https":
            tls, name = self._address.tls(), self._address.server_name() or parts.hostname
        port = parts.port or (443 if tls else 80)
        opening = asyncio.open_connection(parts.hostname, port, ssl=tls, server_hostname=name, limit=_CHUNK)
        try:
            reader, writer = await asyncio.wait_for(opening, CONNECT_S)
        except OSError as error:  # a timeout is one
            raise Unavailable("the gateway cannot be reached; ask again in a moment") from error
        return _Exchange(reader, writer)


def gateway_client_of(request: Request, context: Context) -> GatewayClient:
    """Return what asks the gateway of the server that a request came to."""
    state = request.app.state
    if not hasattr(state, "gateway_client"):
        file = context.control.settings.home / "address" / "server.json"
        state.gateway_client = GatewayClient(ServerAddress(context.control.settings.url, file))
    found: GatewayClient = state.gateway_client
    return found


class _Exchange:
    """One request and its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    async def send(self, path: str, headers: Iterable[tuple[bytes, bytes]], request: Request) -> h11.Response:
        """Send a request; return the head of the answer, which may come before all is sent.

        Raises:
            ClientDisconnect: nobody waits for it any more.
        """
        given = list(headers)
        await self._write(h11.Request(method="POST", target=path.encode(), headers=given))
        if _EXPECTS in given and (refusal := await asyncio.wait_for(self._said_first(), CONNECT_S)) is not None:
            await _drain(request)
            return refusal
        sending = asyncio.create_task(self._send_body(request))
        answer = asyncio.create_task(self._head())
        try:
            await asyncio.wait({sending, answer}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():  # the answer came first
                await _end(sending)
                await _drain(request)
            elif isinstance(sending.exception(), ClientDisconnect):
                await sending
            elif not answer.done():
                await self._wait_for(answer, request)
            return await answer
        finally:
            await _end(sending, answer)

    async def _wait_for(self, answer: asyncio.Task[h11.Response], request: Request) -> None:
        """Wait for the answer while the client does."""
        gone = asyncio.create_task(_until_gone(request))
        try:
            await asyncio.wait({answer, gone}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if not answer.done():
            raise ClientDisconnect

    async def _send_body(self, request: Request) -> None:
        async for chunk in request.stream():
            if chunk:
                await self._write(h11.Data(data=chunk))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._http.send(event) or b"")
        with suppress(ConnectionError):  # it has answered already
            await self._writer.drain()

    async def _said_first(self) -> h11.Response | None:
        """Return the answer to a head alone; None if the body is wanted."""
        event = await self._next()
        return event if isinstance(event, h11.Response) else None

    async def _head(self) -> h11.Response:
        while isinstance(event := await self._next(), h11.InformationalResponse):
            pass
        if isinstance(event, h11.Response):
            return event
        raise EOFError

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body of the answer as it comes, and end the connection."""
        try:
            while isinstance(event := await self._next(), h11.Data):
                yield bytes(event.data)
        finally:
            self.close()

    async def _next(self) -> h11.Event:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK))
        if isinstance(event, h11.Event):
            return event
        raise EOFError

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _drain(request: Request) -> None:
    """Read on for a while and throw away, so that the client gets to read the answer."""
    num_bytes, is_over = 0, False
    while not is_over and num_bytes < _MAX_WASTE_BYTES:
        message = await request.receive()
        num_bytes += len(message.get("body", b""))
        is_over = not message.get("more_body", False)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _headers(host: str, token: str, request: Request, names: Collection[bytes]) -> list[tuple[bytes, bytes]]:
    given = dict(request.scope["headers"])
    length = given.get(b"content-length")
    framing = (b"transfer-encoding", b"chunked") if length is None else (b"content-length", length)
    passed = [(name, given[name]) for name in names if name in given]
    if length is None or int(length) > _ASK_FIRST_BYTES:
        passed.append(_EXPECTS)
    return [
        (b"host", host.encode()),
        (b"authorization", b"Bearer " + token.encode("latin-1", "replace")),
        (b"connection", b"close"),
        framing,
        *passed,
    ]
