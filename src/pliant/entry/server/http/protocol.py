"""Uvicorn's HTTP/1.1 with deadlines and bounds: what is late or ambiguous is answered if that is possible, and ended.

Four waits have a deadline. Which of them runs is read off h11's states after everything that happens:

    their state          answer         what is awaited                       ended after
    IDLE                 none under way the head of a request                 `head_s` (nothing sent: `idle_s`)
    SEND_BODY            any            the body                              a `body_window_s` with too few bytes
    DONE                 under way      the application                       never: it is ours
    any                  being sent     the receiver                          `stalled_write_s` without 48 KiB read

A WebSocket has deadlines of its own; from the upgrade on none of these runs.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from pliant.entry.server.http.connections import ConnectionCounts, CountedConnection
from pliant.entry.server.http.strict import StrictConnection

_MEDIA_TYPE: Final = b"application/problem+json"
_TITLES: Final = {400: "Invalid request", 408: "Too slow", 431: "Too large"}
_SLOW_HEAD: Final = "the head of the request took longer than {:g} s; send it at once"
_SLOW_BODY: Final = "the body came with less than {:g} bytes a second for {:g} s; send it faster, or in parts"


class BoundedProtocol(H11Protocol):
    """One connection.

    Args:
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
        super().__init__(config, server_state, app_state, _loop)
        self._limits = counts.limits
        self._counts = counts
        self._headers_of = headers_of
        self._counted: CountedConnection | None = None
        self._strict = StrictConnection(self._limits.max_head_bytes)
        self.conn = self._strict
        self._is_link = False
        self._num_body_bytes = 0
        self._deadlines: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._counted = self._counts.find(transport.get_extra_info("socket").fileno())
        if self._counted is None:  # it was ended since it was accepted
            self.transport.abort()
            return
        self._counted.drop = self.transport.abort
        self._start("head", self._counted.waits_until - self.loop.time(), self._end_slow_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop(*self._deadlines)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._num_body_bytes += len(data)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._observe()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._is_link = True
        self._stop(*self._deadlines)
        if self._counted is not None:
            self._counts.link(self._counted)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._observe()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._observe()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start("write", self._limits.stalled_write_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop("write")

    def send_400_response(self, msg: str) -> None:
        refusal = self._strict.refusal
        self._refuse(400 if refusal is None else refusal.error_status_hint, msg if refusal is None else str(refusal))

    def _observe(self) -> None:
        """Let those deadlines run that belong to the state of the connection."""
        if self._is_link or self._counted is None:
            return
        if self.transport.is_closing():
            self._stop(*self._deadlines)
            self._start("write", self._limits.stalled_write_s, self.transport.abort)
        elif self.conn.their_state is h11.IDLE:
            self._await_head(self._counted)
        else:
            self._counts.work(self._counted)
            self._stop("head")
            if self.conn.their_state is h11.SEND_BODY:
                self._await_body()
            else:
                self._stop("body")

    def _await_head(self, counted: CountedConnection) -> None:
        self._stop("body")
        if "head" in self._deadlines:
            return
        self._counts.wait(counted)
        if self.conn.trailing_data[0]:
            self._start("head", self._limits.head_s, self._end_slow_head)

    def _await_body(self) -> None:
        if "body" not in self._deadlines:
            self._num_body_bytes = 0
            self._start("body", self._limits.body_window_s, self._end_slow_body)

    def _end_slow_head(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408, _SLOW_HEAD.format(self._limits.head_s))
        else:
            self.transport.abort()

    def _end_slow_body(self) -> None:
        """End a body of which too little has come, unless it was we who did not read; else look again later."""
        self._stop("body")
        waits_for_us = self.flow.read_paused or self.cycle.waiting_for_100_continue
        rate, window = self._limits.body_bytes_per_s, self._limits.body_window_s
        if waits_for_us or self._num_body_bytes >= rate * window:
            self._await_body()
        else:
            self._refuse(408, _SLOW_BODY.format(rate, window))

    def _refuse(self, status: int, detail: str) -> None:
        """Answer if no answer has begun, and end the connection."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        title = STATUS_PHRASES[status].decode()
        body = json.dumps({"title": _TITLES.get(status, title), "status": status, "detail": detail}).encode()
        headers = [*self._headers_of(self.scheme), (b"content-type", _MEDIA_TYPE), (b"connection", b"close")]
        if self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD":
            body = b""
        for event in (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._observe()

    def _start(self, name: str, seconds: float, end: Callable[[], None]) -> None:
        """Start a deadline; one of this name that runs is replaced."""
        self._stop(name)
        self._deadlines[name] = self.loop.call_later(max(0.0, seconds), end)

    def _stop(self, *names: str) -> None:
        for name in names:
            if (deadline := self._deadlines.pop(name, None)) is not None:
                deadline.cancel()
