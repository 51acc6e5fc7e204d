"""TLS of one connection, without its socket (`TlsStream`): what has come in, what is to be sent out.

    client                                     server
    begin() → take_output()  ───────────────▶  feed() → take_output()
    feed() → take_output()   ◀───────────────
    is_open                  ───────────────▶  feed(): is_open, and what the client has said with it

asyncio's own layer is not used at the gateway, since it does not count what it has encrypted and not sent: kernels
that do not read could fill the memory. Here nothing is held but a record that is not whole (16 KiB); what is encrypted
is the caller's. Knows no socket and no frame.
"""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pliant.serve.protocol.pem import load_certificates

_RECORD_BYTES: Final = 16 << 10
_PIECE_BYTES: Final = 256 << 10
"""Small, so that the other side decrypts one while the next is encrypted."""
Plain = bytes | bytearray | memoryview


def trust_only(certificate: Path | str) -> ssl.SSLContext:
    """Return what believes the server that has this certificate, and no other. A file is read anew.

    Args:
        certificate: a file, or the text of one (PEM).

    Raises:
        OSError: the file cannot be read, or is none.
        ValueError: the text is none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # with no authority that the machine trusts
    if isinstance(certificate, Path):
        context.load_verify_locations(cafile=certificate)
    else:
        load_certificates(context, certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a server's own certificate is enough
    return context


class TlsStream:
    """One side of a connection.

    Args:
        context: the certificate that is shown, or that is believed.
        server_name: the name that must stand in the server's certificate; None: this is the server.
    """

    def __init__(self, context: ssl.SSLContext, server_name: str | None = None) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = server_name is None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server, server_hostname=server_name)
        self.is_open = False
        """The other side is whom it should be, and all that follows is secret."""
        self.is_over = False
        """The other side has ended it."""

    def begin(self) -> None:
        """Say the first word, which is the client's."""
        self._shake()

    def feed(self, data: Plain) -> bytes:
        """Take what has come; return what is plain with it. There may be something to send afterwards.

        Raises:
            ssl.SSLError: the other side is not whom it should be, or what it sends is no TLS.
        """
        self._incoming.write(data)
        if not self.is_open and not self._shake():
            return b""
        return b"".join(self._records())

    def encrypt(self, data: Plain) -> Iterator[bytes]:
        """Yield what is to be sent for this, in pieces. Only while it is open.

        Raises:
            ssl.SSLError: it is over.
        """
        with memoryview(data).cast("B") as view:
            for begin in range(0, len(view), _PIECE_BYTES):
                end = min(begin + _PIECE_BYTES, len(view))
                at = begin
                while at < end:
                    at += self._tls.write(view[at:end])  # a record at a time
                yield self._outgoing.read()

    def take_output(self) -> bytes:
        """Return what is to be sent by now."""
        return self._outgoing.read()

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.is_open = True
        return True

    def _records(self) -> Iterator[bytes]:
        try:
            while record := self._tls.read(_RECORD_BYTES):
                yield record
            self.is_over = True
        except ssl.SSLWantReadError:
            return
