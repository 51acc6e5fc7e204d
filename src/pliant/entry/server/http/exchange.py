"""One request and its answer, as an application has them: ASGI's `receive` and `send`.

The head of an answer whose length is known is held back until its body comes, so that both go out with one write; that
of a stream is sent at once. Knows how answers look on the wire, and not how requests do.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl

from pliant.entry.server.http.answer import CLOSE, CONTINUE, AnswerHead, encode_answer
from pliant.entry.server.http.head import RequestHead

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
_FAULT: Final = b"Internal Server Error"
_log = logging.getLogger("uvicorn.error")


class HttpExchange:
    """One request, from its head to the end of its answer.

    Args:
        head: of the request.
        transport: of the connection.
        flow: the same, as far as it goes too fast.
        headers: that every answer has.
        on_answered: is called when the answer is whole.
    """

    __slots__ = (
        "_answer",
        "_body",
        "_flow",
        "_headers",
        "_held",
        "_is_delivered",
        "_left",
        "_news",
        "_on_answered",
        "_transport",
        "awaits_continue",
        "head",
        "is_answered",
        "is_gone",
        "is_read",
        "keeps_alive",
    )

    def __init__(
        self,
        head: RequestHead,
        transport: asyncio.Transport,
        flow: FlowControl,
        headers: Sequence[tuple[bytes, bytes]],
        on_answered: Callable[[], None],
    ) -> None:
        self.head = head
        self.keeps_alive = head.keeps_alive
        """The connection takes another request after this one."""
        self.awaits_continue = head.expects_continue
        """The client holds the body back until it is asked for it."""
        self.is_read = False
        """All of the request has come."""
        self.is_answered = False
        """All of the answer was sent."""
        self.is_gone = False
        """Nobody waits for the answer any more."""
        self._transport = transport
        self._flow = flow
        self._headers = headers
        self._on_answered = on_answered
        self._body: bytes | bytearray = b""
        """What has come, and the application has not taken."""
        self._is_delivered = False
        """The application has the end of the body."""
        self._news: asyncio.Event | None = None
        self._answer: AnswerHead | None = None
        self._held = b""
        """The head of the answer, while it waits for the body."""
        self._left = 0
        """Bytes of the answer's body that are missing."""

    @property
    def has_begun(self) -> bool:
        """The application has begun to answer."""
        return self._answer is not None

    def feed(self, piece: bytes, *, is_last: bool) -> None:
        """Take more of the body."""
        self.awaits_continue = False
        self.is_read = is_last
        if self.is_answered:
            return
        self._body = _joined(self._body, piece)
        if len(self._body) > HIGH_WATER_LIMIT and not is_last:
            self._flow.pause_reading()
        self._wake()

    def disconnect(self) -> None:
        """Tell the application that the client is gone, unless it has its answer."""
        self.is_gone = self.is_gone or not self.is_answered
        self._wake()

    async def run(self, app: App, scope: MutableMapping[str, Any]) -> None:
        """Let an application answer; what it fails to do is done for it."""
        try:
            await app(scope, self.receive, self.send)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 (an application may raise anything)
            _log.exception("Exception in ASGI application")
            await self._give_up()
            return
        if not self.is_answered and not self.is_gone:
            _log.error("the ASGI application has returned before its answer was whole")
            await self._give_up()

    async def receive(self) -> Message:
        """Return what comes next of the request: more of the body, or the end of the client."""
        if self.awaits_continue and not self._transport.is_closing():
            self.awaits_continue = False
            self._transport.write(CONTINUE)
        while not (self.is_gone or self.is_answered):
            if not self._is_delivered and (self._body or self.is_read):
                return self._deliver()
            self._news = self._news or asyncio.Event()
            self._news.clear()
            await self._news.wait()
        return {"type": "http.disconnect"}

    def _deliver(self) -> Message:
        body, self._body = self._body, b""
        self._is_delivered = self.is_read
        self._flow.resume_reading()
        return {"type": "http.request", "body": bytes(body), "more_body": not self.is_read}

    async def send(self, message: Message) -> None:
        """Send the next part of the answer.

        Raises:
            RuntimeError: it is not its turn, or does not fit its head.
            ValueError: a header is none.
        """
        if self._flow.write_paused and not self.is_gone:
            await self._flow.drain()
        if self.is_gone:
            return
        wanted = "http.response.start" if self._answer is None else "http.response.body"
        if message["type"] != wanted or self.is_answered:
            ended = ", and the answer was whole" if self.is_answered else ""
            raise RuntimeError(f"the application sent {message['type']} where {wanted} is expected{ended}")
        if self._answer is None:
            self._begin(message["status"], message.get("headers", ()))
        else:
            self._go_on(self._answer, message.get("body", b""), is_last=not message.get("more_body", False))

    def _begin(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        # a client that was not asked for its body may send it, or another request: nobody can know which
        keeps_alive = self.keeps_alive and not self.awaits_continue
        answer = encode_answer(status, [*self._headers, *headers], self.head, keeps_alive=keeps_alive)
        self._answer, self.keeps_alive = answer, answer.keeps_alive
        self.awaits_continue = False
        if answer.num_body_bytes is None:
            self._transport.write(answer.data)
        else:
            self._held, self._left = answer.data, answer.num_body_bytes

    def _go_on(self, answer: AnswerHead, body: bytes, *, is_last: bool) -> None:
        if self.head.method == "HEAD":
            body = b""
        if answer.num_body_bytes is not None:
            self._left -= len(body)
            if self._left < 0 or (is_last and self._left):
                many = "more" if self._left < 0 else "fewer"
                raise RuntimeError(f"the application has sent {many} bytes than its Content-Length says")
        held, self._held = self._held, b""
        self._write(held, _chunk(body, is_last=is_last) if answer.is_chunked else body)
        if is_last:
            self.is_answered = True
            self._wake()
            if not self.keeps_alive:
                self._transport.close()
            self._on_answered()

    def _write(self, held: bytes, body: bytes) -> None:
        if held and len(body) > HIGH_WATER_LIMIT:  # to copy it costs more than a second write
            self._transport.write(held)
            held = b""
        if data := held + body if held else body:
            self._transport.write(data)

    async def _give_up(self) -> None:
        """End an answer that the application has not; say so, if nothing was said."""
        if self.has_begun and not self._held:
            self._transport.close()
            return
        self._answer, self._held = None, b""
        about = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_FAULT)), CLOSE]
        await self.send({"type": "http.response.start", "status": 500, "headers": about})
        await self.send({"type": "http.response.body", "body": _FAULT})

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()


def _joined(body: bytes | bytearray, piece: bytes) -> bytes | bytearray:
    """Return both, without a copy of the only one, and of none but the new one after that."""
    if not body or not piece:
        return body or piece
    whole = body if isinstance(body, bytearray) else bytearray(body)
    whole += piece
    return whole


def _chunk(body: bytes, *, is_last: bool) -> bytes:
    """Return a piece of a body as it goes over the wire."""
    framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return framed + b"0\r\n\r\n" if is_last else framed
