"""HTTP/1.1 with deadlines and bounds (`BoundedProtocol`): what is late or ambiguous is answered if that is possible,
and ended.

A connection reads one request after another, and goes on to the next when the one before is answered:

    HEAD    nothing, or a part of a head    ── a whole head ──▶ BODY      the application begins
    BODY    a part of a body                ── its end ───────▶ WAIT
    WAIT    a whole request                 ── its answer ────▶ HEAD      what has come meanwhile was kept
    ENDED   it is closed, or a WebSocket has it; nothing more is read

Four waits have a deadline:

    in      what is awaited                         ended after
    HEAD    the head of a request                   `head_s` (nothing sent: `idle_s`)
    BODY    the body                                a `body_window_s` with too few bytes
    WAIT    the application                         never: it is ours
    any     the receiver of what is being sent      `stalled_write_s` without 48 KiB read

A WebSocket has deadlines of its own; from the upgrade on none of these runs.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import unquote

from uvicorn import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from pliant.entry.server.http.answer import CLOSE, encode_answer
from pliant.entry.server.http.body import Body, ChunkedBody, PlainBody
from pliant.entry.server.http.connections import ConnectionCounts, CountedConnection
from pliant.entry.server.http.deadline import Deadline
from pliant.entry.server.http.exchange import App, HttpExchange
from pliant.entry.server.http.head import BadRequest, RequestHead, find_end, read_head

_MEDIA_TYPE: Final = b"application/problem+json"
_TITLES: Final = {400: "Invalid request", 408: "Too slow", 431: "Too large"}
_SLOW_HEAD: Final = "the head of the request took longer than {:g} s; send it at once"
_SLOW_BODY: Final = "the body came with less than {:g} bytes a second for {:g} s; send it faster, or in parts"


class _Reading(Enum):
    """What is read next."""

    HEAD = "head"
    BODY = "body"
    WAIT = "wait"
    ENDED = "ended"


class BoundedProtocol(asyncio.Protocol):
    """One connection. What uvicorn's server wants of a protocol, it has: `shutdown`, and its place in `server_state`.

    Args:
        config: of uvicorn.
        server_state: of uvicorn's server.
        app_state: what applications find as `state`.
        counts: of all connections, with their limits.
        headers_of: what every answer has, also one that no application has given; by the scheme of the connection.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        counts: ConnectionCounts,
        headers_of: Callable[[str | None], Sequence[tuple[bytes, bytes]]] = lambda _: (),
    ) -> None:
        self.loop = _loop or asyncio.get_running_loop()
        self.exchange: HttpExchange | None = None
        """The request that was read last."""
        self._config = config
        self._server_state = server_state
        self._app_state = app_state
        self._limits = counts.limits
        self._counts = counts
        self._headers_of = headers_of
        self._counted: CountedConnection | None = None
        self._reading = _Reading.HEAD
        self._body: Body = PlainBody(0)
        self._data = b""
        self._at = 0
        """All before it was read."""
        self._num_seen = 0
        """Bytes of a head that is not whole."""
        self._num_body_bytes = 0
        self._deadline = Deadline(self.loop)
        """Of what is read."""
        self._write_deadline = Deadline(self.loop)

    # -- what the event loop says ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._connections.add(self)
        self.transport = cast(asyncio.Transport, transport)
        self.flow = FlowControl(self.transport)
        self._about: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": self._config.asgi_version, "spec_version": "2.3"},
            "server": get_local_addr(self.transport),
            "client": get_remote_addr(self.transport),
            "scheme": "https" if is_ssl(self.transport) else "http",
            "root_path": "",
        }
        self._counted = self._counts.find(transport.get_extra_info("socket").fileno())
        if self._counted is None:  # it was ended since it was accepted
            self._end()
            self.transport.abort()
            return
        self._counted.drop = self.transport.abort
        self._deadline.set(self._counted.waits_until - self.loop.time(), self._end_slow_head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application that nobody waits for its answer."""
        self._connections.discard(self)
        self._end()
        self._write_deadline.end()
        if self.exchange is not None:
            self.exchange.disconnect()
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._reading is _Reading.ENDED:
            return
        self._num_body_bytes += len(data)
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0
        self._read_on()

    def pause_writing(self) -> None:
        """Take note that the other side does not read as fast as it is answered."""
        self.flow.pause_writing()
        self._write_deadline.set(self._limits.stalled_write_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Take note that it has read."""
        self.flow.resume_writing()
        self._write_deadline.lift()

    def shutdown(self) -> None:
        """Take no further request: the server ends."""
        if self.exchange is None or self.exchange.is_answered:
            self._end()
            self.transport.close()
        else:
            self.exchange.keeps_alive = False

    # -- requests -------------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Read as far as what has come goes; then its deadline runs."""
        try:
            while self._step():
                pass
        except BadRequest as error:
            self._refuse(error.status, str(error))
        else:
            self._observe()

    def _step(self) -> bool:
        """Read one thing; tell whether there may be another."""
        if self._reading is _Reading.HEAD:
            return self._at < len(self._data) and self._read_head()
        if self._reading is _Reading.BODY:
            return self._at < len(self._data) and self._read_body(cast(HttpExchange, self.exchange))
        if self._reading is _Reading.WAIT and len(self._data) - self._at > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        return False

    def _read_head(self) -> bool:
        end = find_end(self._data, self._at, self._limits.max_head_bytes, self._num_seen)
        if end < 0:
            self._num_seen = len(self._data) - self._at
            return False
        began_at, self._at, self._num_seen = self._at, end + 4, 0
        head = read_head(self._data, began_at, end)
        if head.wants_websocket and head.num_body_bytes == 0 and self._config.ws_protocol_class is not None:
            self._hand_over(head)
            return False
        if self._counted is not None:
            self._counts.work(self._counted)
        self._begin(head)
        return True

    def _begin(self, head: RequestHead) -> None:
        """Let the application answer a request; its body is read meanwhile."""
        exchange = self.exchange = HttpExchange(
            head, self.transport, self.flow, self._server_state.default_headers, self._on_answered
        )
        num = head.num_body_bytes
        self._body = ChunkedBody(self._limits.max_head_bytes) if num is None else PlainBody(num)
        self._reading = _Reading.BODY
        if self._body.is_whole:
            self._finish_body(exchange, b"")
        task = self.loop.create_task(self._answer(exchange))
        self._server_state.tasks.add(task)

    async def _answer(self, exchange: HttpExchange) -> None:
        """Let the application answer. A callback of the task would take the event loop another turn."""
        try:
            await exchange.run(cast(App, self._config.loaded_app), self._scope(exchange.head))
        finally:
            self._server_state.tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    def _scope(self, head: RequestHead) -> dict[str, Any]:
        raw_path, _, query = head.target.partition(b"?")
        path = raw_path.decode("ascii")
        return {
            **self._about,
            "http_version": head.http_version,
            "method": head.method,
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": head.headers,
            "state": self._app_state.copy(),
        }

    def _read_body(self, exchange: HttpExchange) -> bool:
        piece, at = self._body.take(self._data, self._at)
        has_more, self._at = at > self._at, at
        if self._body.is_whole:
            self._finish_body(exchange, piece)
            return True
        if piece:
            exchange.feed(piece, is_last=False)
        return has_more and at < len(self._data)

    def _finish_body(self, exchange: HttpExchange, piece: bytes) -> None:
        exchange.feed(piece, is_last=True)
        self._reading = _Reading.HEAD if exchange.is_answered else _Reading.WAIT

    def _on_answered(self) -> None:
        """Go on with the next request."""
        self._server_state.total_requests += 1
        if self.transport.is_closing():
            self._end()
            self._observe()
            return
        self.flow.resume_reading()
        if self._reading is _Reading.WAIT:
            self._reading = _Reading.HEAD
        self._read_on()

    def _hand_over(self, head: RequestHead) -> None:
        """Give the connection to a WebSocket, which reads the head once more, and takes names as they stand in it."""
        self._end()
        if self._counted is not None:
            self._counts.link(self._counted)
        self._connections.discard(self)
        make = cast(Callable[..., asyncio.Protocol], self._config.ws_protocol_class)
        protocol = make(config=self._config, server_state=self._server_state, app_state=self._app_state)
        protocol.connection_made(self.transport)
        lines = [b"%b: %b\r\n" % header for header in head.headers]
        protocol.data_received(b"%b %b HTTP/1.1\r\n%b\r\n" % (head.method.encode(), head.target, b"".join(lines)))
        self.transport.set_protocol(protocol)

    @property
    def _connections(self) -> set[Any]:
        return cast(set[Any], self._server_state.connections)

    # -- deadlines ------------------------------------------------------------------------------------------------

    def _observe(self) -> None:
        """Let the deadline run that belongs to what is read."""
        if self._counted is None:
            return
        if self._reading is _Reading.ENDED:
            if self.transport.is_closing():
                self._write_deadline.set(self._limits.stalled_write_s, self.transport.abort)
        elif self._reading is _Reading.HEAD:
            self._await_head(self._counted)
        elif self._reading is _Reading.BODY:
            if self._deadline.act != self._end_slow_body:
                self._await_body()
        else:
            self._deadline.lift()

    def _await_head(self, counted: CountedConnection) -> None:
        if self.exchange is None and self._deadline.act is not None:
            return  # that of the connection runs
        if self._at < len(self._data):
            seconds, act = self._limits.head_s, self._end_slow_head
        else:
            seconds, act = self._limits.idle_s, self._end_idle
        if self._deadline.act != act:
            self._counts.wait(counted)
            self._deadline.set(seconds, act)

    def _await_body(self) -> None:
        self._num_body_bytes = 0
        self._deadline.set(self._limits.body_window_s, self._end_slow_body)

    def _end_slow_head(self) -> None:
        if self._at < len(self._data):
            self._refuse(408, _SLOW_HEAD.format(self._limits.head_s))
        else:
            self._end()
            self.transport.abort()

    def _end_idle(self) -> None:
        self._end()
        self.transport.close()
        self._observe()

    def _end_slow_body(self) -> None:
        """End a body of which too little has come, unless it was we who did not read; else look again later."""
        waits_for_us = self.flow.read_paused or (self.exchange is not None and self.exchange.awaits_continue)
        rate, window = self._limits.body_bytes_per_s, self._limits.body_window_s
        if waits_for_us or self._num_body_bytes >= rate * window:
            self._await_body()
        else:
            self._refuse(408, _SLOW_BODY.format(rate, window))

    def _refuse(self, status: int, detail: str) -> None:
        """Answer if no answer has begun, and end the connection."""
        exchange, is_between = self.exchange, self._reading is _Reading.HEAD
        self._end()
        request: RequestHead | None = None
        if exchange is not None and not is_between:
            exchange.disconnect()
            request = exchange.head
            if exchange.has_begun:
                self.transport.abort()
                return
        title = _TITLES.get(status, HTTPStatus(status).phrase)
        body = json.dumps({"title": title, "status": status, "detail": detail}).encode()
        length = (b"content-length", b"%d" % len(body))
        headers = [*self._headers_of(self._about["scheme"]), (b"content-type", _MEDIA_TYPE), length, CLOSE]
        answer = encode_answer(status, headers, request, keeps_alive=False)
        self.transport.write(answer.data + (body if answer.num_body_bytes else b""))
        self.transport.close()
        self._observe()

    def _end(self) -> None:
        """Read nothing more."""
        self._reading = _Reading.ENDED
        self._data, self._at = b"", 0
        self._deadline.end()
