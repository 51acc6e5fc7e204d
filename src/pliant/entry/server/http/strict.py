"""Refuses heads of requests that two programs can read in two ways. Knows no sockets.

h11 is lenient where RFC 9112 allows it to be: lines may end without CR (2.2), a value may go on in the next line
(5.2), Content-Length may stand beside Transfer-Encoding (6.1). A proxy in front may read each of them otherwise, and
take the rest for another request ("smuggling"). No client needs them.
"""

import re
from typing import Final

import h11

_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
_FOLDED: Final = re.compile(rb"\r\n[ \t]")
_END: Final = b"\r\n\r\n"


class StrictConnection(h11.Connection):
    """The server's side of HTTP/1.1, strict."""

    def __init__(self, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=max_head_bytes)
        self.refusal: h11.RemoteProtocolError | None = None
        """Why nothing more is read."""
        self._max_head_bytes = max_head_bytes

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return what comes next.

        Raises:
            h11.RemoteProtocolError: the other side does not keep to HTTP.
        """
        try:
            if self.their_state is h11.IDLE:
                check_head(self.trailing_data[0], self._max_head_bytes)
            return super().next_event()
        except h11.RemoteProtocolError as error:
            self.refusal = error
            raise


def check_head(data: bytes, max_bytes: int) -> None:
    """Refuse what begins with a head that is too long or ambiguous; one that is not whole is checked so far.

    Raises:
        h11.RemoteProtocolError: with the status to answer.
    """
    end = data.find(_END)
    head = data if end < 0 else data[:end]
    if _BARE_LF.search(head):
        raise h11.RemoteProtocolError("a line of the head ends without CR; end each with CR LF")
    if _FOLDED.search(head):
        raise h11.RemoteProtocolError("a header goes on in a second line; write it in one")
    if len(head) > max_bytes:
        message = f"the head is longer than {max_bytes >> 10} KiB; send fewer or shorter headers"
        raise h11.RemoteProtocolError(message, error_status_hint=431)
    if end >= 0:
        _check_framing(head)


def _check_framing(head: bytes) -> None:
    """Refuse a head that leaves open where its body ends."""
    first, *lines = head.split(b"\r\n")
    headers = [(name.lower(), value) for name, _, value in (line.partition(b":") for line in lines)]
    lengths = [value for name, value in headers if name == b"content-length"]
    if len(lengths) > 1 or any(b"," in value for value in lengths):
        raise h11.RemoteProtocolError("Content-Length is given more than once; send it once")
    if not any(name == b"transfer-encoding" for name, _ in headers):
        return
    if lengths:
        raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding exclude each other; send one of them")
    if first.endswith(b"HTTP/1.0"):
        raise h11.RemoteProtocolError("HTTP/1.0 knows no Transfer-Encoding; send Content-Length, or HTTP/1.1")
