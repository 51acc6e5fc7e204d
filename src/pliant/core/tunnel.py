"""Tunnels: bytes in both directions between a client and a program of ours that runs beside a task, its sidecar.

Theory of operation. A client asks the server for a tunnel into a job. The server makes up two secrets: a ticket for the
client, and a key for the sidecar, which it orders from the cluster. Both of them connect to the server, each by a
WebSocket, and the server passes on what comes from either to the other. It never looks into it: what comes from inside
a job is a stranger's.

    client    POST /v1/jobs/job-3/shells          → tunnel 7f3a…, ticket
    client    WebSocket /v1/tunnels/7f3a…         Authorization: Bearer TICKET
    sidecar   WebSocket /v1/tunnels/7f3a…/inside  proof of the key, both ways (`pliant.core.link_proof`)

So no port is opened, nobody reaches into the walls of a task from outside, and the task may be on another machine.
This module holds values only: what a sidecar is told, and the frames that the two ends exchange.

The tunnel of a shell is one flow of frames. That of a notebook has *channels*, one for every connection of a browser:
each message is the number of a channel, and a frame of it; channel 0 is the tunnel itself.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

from pliant.core.task_environment import Variable, Variables

CHUNK_BYTES: Final = 32 << 10
"""So much is sent in one frame at most."""
WINDOW_BYTES: Final = 256 << 10
"""So much one end sends before the other has said that it has dealt with some of it."""
MAX_FRAME_BYTES: Final = CHUNK_BYTES + 5
"""The kind of a frame and the number of its channel come before its content."""
MAX_REASON: Final = 120
"""Bytes of the reason that a WebSocket is closed with."""
MAX_CHANNELS: Final = 256
"""In one tunnel; a browser has some ten."""
WHOLE_TUNNEL: Final = 0
"""The number of no channel: what such a frame says concerns the tunnel."""

_U32: Final = struct.Struct(">I")
_SIZE: Final = struct.Struct(">HH")
_EXIT: Final = struct.Struct(">i")


class FrameKind(bytes, Enum):
    """The first byte of a frame, which says what the rest is."""

    DATA = b"d"
    """To the task: stdin. From it: stdout."""
    ERRORS = b"e"
    """From the task: stderr, where there is no terminal."""
    END = b"f"
    """No more data comes from here; the other direction goes on."""
    GRANT = b"g"
    """So many bytes of data, four of them, have been dealt with: as many more may come."""
    SIZE = b"s"
    """To the task: rows and columns of the terminal, two bytes each."""
    EXIT = b"x"
    """From the task: the exit code, four bytes; then, in words, why there is none. The last frame."""
    OPEN = b"o"
    """To the task: there is a channel of this number now."""
    RESET = b"r"
    """This channel is over in both directions, and what is under way is lost."""
    READY = b"y"
    """From the task: what is to be reached answers. The content is its token."""


DATA_KINDS: Final = frozenset({FrameKind.DATA, FrameKind.ERRORS})
"""Frames of these kinds wait for grants."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a tunnel."""

    kind: FrameKind
    content: bytes = b""

    def pack(self) -> bytes:
        """Return its bytes."""
        return self.kind.value + self.content


def unpack(message: bytes | str) -> Frame:
    """Return the frame that a message holds.

    Raises:
        ValueError: it holds none.
    """
    if isinstance(message, str) or not message or len(message) > 1 + CHUNK_BYTES:
        raise ValueError("what comes through the tunnel is no frame")
    return Frame(FrameKind(message[:1]), message[1:])


def pack_for(number: int, frame: Frame) -> bytes:
    """Return the message that holds a frame of a channel."""
    return _U32.pack(number) + frame.pack()


def unpack_channel(message: bytes | str) -> tuple[int, Frame]:
    """Return the number of a channel and the frame of it that a message holds.

    Raises:
        ValueError: it holds none.
    """
    if isinstance(message, str) or not message:
        raise ValueError("what comes through the tunnel is no frame of a channel")
    return _number(_U32, message[: _U32.size]), unpack(message[_U32.size :])


def grant(num_bytes: int) -> Frame:
    """Return the frame that says that so many bytes have been dealt with."""
    return Frame(FrameKind.GRANT, _U32.pack(num_bytes))


def granted(frame: Frame) -> int:
    """Return how many bytes such a frame grants.

    Raises:
        ValueError: it is none.
    """
    return _number(_U32, frame.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSize:
    """How large a terminal is, in characters."""

    rows: int
    columns: int

    def frame(self) -> Frame:
        """Return the frame that says so."""
        return Frame(FrameKind.SIZE, _SIZE.pack(min(self.rows, 0xFFFF), min(self.columns, 0xFFFF)))

    @classmethod
    def of(cls, frame: Frame) -> "WindowSize":
        """Return what such a frame says.

        Raises:
            ValueError: nothing.
        """
        if len(frame.content) != _SIZE.size:
            raise ValueError("a frame with the size of a terminal has another length")
        rows, columns = _SIZE.unpack(frame.content)
        return cls(rows=rows, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelExit:
    """How a program at the inner end has ended."""

    code: int
    """As shells give it: 128 and the signal's number, if a signal ended it."""
    error: str = ""
    """Why it could not be run."""

    def frame(self) -> Frame:
        """Return the frame that says so."""
        return Frame(FrameKind.EXIT, _EXIT.pack(self.code) + self.error.encode()[:MAX_REASON])

    @classmethod
    def of(cls, frame: Frame) -> "TunnelExit":
        """Return what such a frame says.

        Raises:
            ValueError: nothing.
        """
        code = _number(_EXIT, frame.content[: _EXIT.size])
        return cls(code=code, error=frame.content[_EXIT.size :].decode(errors="replace"))


def _number(form: struct.Struct, content: bytes) -> int:
    if len(content) != form.size:
        raise ValueError("a frame with a number has another length")
    return int(form.unpack(content)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarSettings(Variables):
    """What a sidecar is told through its environment; it takes these variables away before it starts anything."""

    tunnel_id: Annotated[str, Variable("PLIANT_TUNNEL")]
    key: Annotated[str, Variable("PLIANT_TUNNEL_KEY")]
    """It and the server prove to each other that they hold it."""
    url: Annotated[str, Variable("PLIANT_TUNNEL_URL")]
    """Where the server is."""
    certificate: Annotated[str | None, Variable("PLIANT_TUNNEL_CA")] = None
    """The certificate that it knows the server by; absent without TLS."""
    server_name: Annotated[str | None, Variable("PLIANT_TUNNEL_SERVER_NAME")] = None
    """The name that stands in that certificate, if it is not the URL's."""
    python: Annotated[str | None, Variable("PLIANT_TUNNEL_PYTHON")] = None
    """The interpreter of the job's environment; absent: this one."""
    command: Annotated[str | None, Variable("PLIANT_TUNNEL_COMMAND")] = None
    """What to run, a list of words as JSON; absent: a shell."""
    terminal: Annotated[str | None, Variable("PLIANT_TUNNEL_TERM")] = None
    """What TERM is to say; absent: no terminal, but pipes."""
    rows: Annotated[int, Variable("PLIANT_TUNNEL_ROWS")] = 24
    columns: Annotated[int, Variable("PLIANT_TUNNEL_COLUMNS")] = 80
    notebook: Annotated[bool, Variable("PLIANT_TUNNEL_NOTEBOOK")] = False
    """It starts nothing: it connects to the notebook server of its task, a connection for every channel."""
