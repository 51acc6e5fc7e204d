"""TLS between the TCP connection of a kernel on another machine and its `KernelLink`, which sees plain bytes.

Everything is encrypted as it is written, so what a kernel does not read lies in one place, the transport's buffer,
where it is counted as with a kernel of this machine. Twice a second it is seen whether the other machine is there.
"""

import asyncio
import logging
import ssl
from typing import Any, Final

from pliant.serve.gateway.kernel_link import KernelLink
from pliant.serve.protocol.tcp_link import LOOK_EVERY_S, SILENT_S, is_cut_off
from pliant.serve.protocol.tls_stream import TlsStream

_log: Final = logging.getLogger(__name__)


class KernelTls(asyncio.Protocol):
    """One connection, below its link.

    Args:
        link: gets what is plain.
        context: the certificate that is shown.
    """

    def __init__(self, link: KernelLink, context: ssl.SSLContext) -> None:
        self._link = link
        self._tls = TlsStream(context)
        self._transport: asyncio.Transport | None = None
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._look = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._see_whether_it_is_there)
        self._link.connection_made(_EncryptingTransport(transport, self._tls))

    def data_received(self, data: bytes) -> None:
        """Hand on what it means; a connection that speaks something else ends."""
        assert self._transport is not None
        try:
            plain = self._tls.feed(data)
        except ssl.SSLError as error:
            _log.info("a connection to the port of kernels is closed: %s", error.reason or error)
            self._link.cut()
            return
        if answer := self._tls.take_output():
            self._transport.write(answer)
        if plain:
            self._link.data_received(plain)
        if self._tls.is_over:
            self._link.cut()

    def pause_writing(self) -> None:
        """Take note that the kernel has left much unread."""
        self._link.pause_writing()

    def resume_writing(self) -> None:
        """Take note that it has read it."""
        self._link.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that it is gone."""
        if self._look is not None:
            self._look.cancel()
        self._link.connection_lost(exc)

    def _see_whether_it_is_there(self) -> None:
        assert self._transport is not None
        self._look = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._see_whether_it_is_there)
        if not self._transport.is_closing() and is_cut_off(self._transport.get_extra_info("socket")):
            whose = f"kernel {self._link.task_id}" if self._link.task_id else "a connection to the port of kernels"
            message = "%s is cut off: its machine has acknowledged nothing for %g s; what it holds goes to others"
            _log.warning(message, whose, SILENT_S)
            self._link.cut()


class _EncryptingTransport(asyncio.Transport):
    """What a link writes to."""

    def __init__(self, plain: asyncio.Transport, tls: TlsStream) -> None:
        super().__init__()
        self._plain = plain
        self._tls = tls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        for piece in self._tls.encrypt(data):
            self._plain.write(piece)

    def get_write_buffer_size(self) -> int:
        return self._plain.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._plain.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._plain.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._plain.is_closing()

    def abort(self) -> None:
        self._plain.abort()
