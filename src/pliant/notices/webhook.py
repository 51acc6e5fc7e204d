"""Posts a document to a webhook: looks the name up once, and connects with the address that was checked.

Of the answer only its status is read. No redirect is followed, no proxy is used, and all of it together has a deadline.
"""

import asyncio
import hashlib
import hmac
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import h11

from pliant import __version__
from pliant.core.notice import Notice, WebhookUrl, read_webhook
from pliant.notices.addresses import WebhookRules
from pliant.notices.background import Lanes
from pliant.notices.outcome import MAX_REFUSED, SENT, TryOutcome

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host; raises `OSError`."""

DEADLINE_S: Final = 15.0
_MAX_ANSWER: Final = 64 << 10
"""Bytes of an answer's head."""
_MAX_ADDRESSES: Final = 3
_TRY_AGAIN: Final = frozenset({408, 425, 429})
_NO_TRY: Final = 1


class _Refused(Exception):
    """The server does not call there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Posts documents."""

    rules: WebhookRules
    lanes: Lanes
    resolve: Resolve = field(default_factory=lambda: resolve)
    is_own: Callable[[str], bool] = field(default_factory=lambda: is_own_address)
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    deadline_s: float = DEADLINE_S

    async def send(self, notice: Notice, document: bytes) -> TryOutcome:
        """Post a document once and return what became of it."""
        url = read_webhook(notice.to)
        try:
            async with asyncio.timeout(self.deadline_s):
                return _judge(await self._post(url, notice, document))
        except TimeoutError:
            return TryOutcome(words=f"did not answer within {self.deadline_s:g} s")
        except _Refused as refused:
            return TryOutcome(words=str(refused), max_tries=_NO_TRY)
        except ssl.SSLCertVerificationError as error:
            return TryOutcome(words=f"cannot be trusted: {error.verify_message}", max_tries=MAX_REFUSED)
        except socket.gaierror:
            return TryOutcome(words="has no address")
        except EOFError:
            return TryOutcome(words="closed the connection before it had answered")
        except OSError:
            return TryOutcome(words="could not be reached")
        except h11.ProtocolError:
            return TryOutcome(words="does not speak HTTP", max_tries=MAX_REFUSED)

    async def _post(self, url: WebhookUrl, notice: Notice, document: bytes) -> int:
        """Return the status that a request was answered with."""
        addresses = await self.lanes.do(lambda: self.resolve(url.host, url.port))
        refusals = {one: self.rules.refusal(url, one, is_own=self.is_own(one)) for one in addresses}
        if not (callable_ := [address for address, why in refusals.items() if not why]):
            raise _Refused(next(iter(refusals.values()), "has no address"))
        reader, writer = await self._connect(url, callable_[:_MAX_ADDRESSES])
        try:
            connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_ANSWER)
            writer.write(_request(connection, url, notice, document))
            await writer.drain()
            return await _read_status(connection, reader)
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connect(
        self, url: WebhookUrl, addresses: Sequence[str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect with the first of these addresses that answers; none is looked up again."""
        context = self.context if url.scheme == "https" else None
        name = url.host.rstrip(".") if context is not None else None
        fault: OSError = ConnectionRefusedError()
        for address in addresses:
            try:
                return await asyncio.open_connection(address, url.port, ssl=context, server_hostname=name)
            except ssl.SSLError:
                raise
            except OSError as error:
                fault = error
        raise fault


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system knows them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(place[4][0]) for place in found))


def is_own_address(address: str) -> bool:
    """Tell whether an address is one of this machine's: the system would reach it from itself. Sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((address, 9))
            return str(sock.getsockname()[0]) == address
    except OSError:
        return False


def sign(secret: str, document: bytes) -> str:
    """Return the signature of a document."""
    return "sha256=" + hmac.new(secret.encode(), document, hashlib.sha256).hexdigest()


def _request(connection: h11.Connection, url: WebhookUrl, notice: Notice, document: bytes) -> bytes:
    headers = [
        ("Host", url.authority),
        ("User-Agent", f"pliant/{__version__}"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(document))),
        ("Connection", "close"),
        ("X-Pliant-Delivery", notice.id),
    ]
    if notice.secret:
        headers.append(("X-Pliant-Signature", sign(notice.secret, document)))
    events = (h11.Request(method="POST", target=url.target, headers=headers), h11.Data(document), h11.EndOfMessage())
    return b"".join(connection.send(event) or b"" for event in events)


async def _read_status(connection: h11.Connection, reader: asyncio.StreamReader) -> int:
    num_bytes = 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            data = await reader.read(4096)
            if not data:
                raise EOFError
            num_bytes += len(data)
            if num_bytes > _MAX_ANSWER:
                raise h11.RemoteProtocolError("its head has no end")
            connection.receive_data(data)
        elif isinstance(event, h11.Response):
            return event.status_code
        elif not isinstance(event, h11.InformationalResponse):
            raise EOFError


def _judge(status: int) -> TryOutcome:
    if 200 <= status < 300:
        return SENT
    if 300 <= status < 400:
        return TryOutcome(words=f"answered {status}: it leads elsewhere, which is not followed", max_tries=_NO_TRY)
    is_refused = 400 <= status < 500 and status not in _TRY_AGAIN
    return TryOutcome(words=f"answered {status}", **({"max_tries": MAX_REFUSED} if is_refused else {}))
