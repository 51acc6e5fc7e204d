"""Uvicorn's WebSocket with bounds where it has none: what a connection costs does not depend on what is sent to it.

Every ping is answered, and the answers wait in memory while they are not read. The parts of a message wait for its last
one, and those that hold nothing do not count for its length. Whoever sends very many of either is cut off; no client
does. Who reads nothing at all is cut off by the system (`HttpLimits.stalled_write_s`).
"""

from typing import Final

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

_MAX_PARTS: Final = 1024
"""Of one message; most clients send each in one."""


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """One connection, from the upgrade on."""

    async def send(self, message: ASGISendEvent) -> None:
        """Send what the application says; a refusal is a whole answer, and nothing that uvicorn must log."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True

    def handle_ping(self) -> None:
        """Answer a ping; cut off who has not read more answers than two of the longest messages have bytes."""
        super().handle_ping()
        if self.transport.get_write_buffer_size() > 2 * self.config.ws_max_size:
            self.transport.abort()

    def handle_cont(self, event: Frame) -> None:
        """Take one more part of a message; cut off who sends too many."""
        if len(self.frames) >= _MAX_PARTS:
            self.frames = []
            self.transport.abort()
            return
        super().handle_cont(event)
