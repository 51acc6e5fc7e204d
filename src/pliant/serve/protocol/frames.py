"""What a gateway and a kernel say to each other, over one stream socket that the kernel opens.

A frame is a head of 9 bytes, a header and a body. Example: request 7, with a body of 12 bytes

    00 00 00 22   34 bytes follow the head
    13            REQUEST
    00 00 00 16   22 of them are the header
    {"id":7,"api":"v2"...}                JSON in UTF-8: always an object
    ............                          the body, as it came: no gateway looks into it

    kernel                              gateway
    HELLO {task, token}            →    checks the token, or closes
                                   ←    WELCOME {batch_size, pipe_size, …}
    READY {metadata, …}            →    from now on it is given requests, never more than batch × pipe at once
                                   ←    REQUEST {id, api, …} + body
    RESULT {id, status, …} + body  →    makes room for another one
    PART {id, …} + body            →    of a request that takes its answer in parts, before its RESULT
                                   ←    TAKEN {id, num}: the client has taken so many more of them
    DRAIN {}                       →    gives it nothing more; what it has, it answers or hands back
    RETURN {ids}                   →    requests that it will not answer: they go to the front of the queue
    PROGRESS {}                    →    what it holds waits, and it computes for other gateways meanwhile
    COPIED {num}                   ⇄    bodies that lay in shared memory were copied out of it

HELLO may bring a file, memory for large bodies (`shared_bodies`). A frame whose body lies there has none of its own,
and says where it is: `at`, and `bytes`.

Every request that a kernel holds it answers with one RESULT (after any number of PARTs), or returns, or it dies.
A kernel that is `MAX_PARTS_AHEAD` parts or `MAX_BYTES_AHEAD` bytes ahead of a client sends it no part until some are
taken, so that a slow client makes neither side's memory grow; a gateway says TAKEN at half of either at the latest.
A kernel has such a conversation with every gateway of its server; numbers of requests are each gateway's own.
Knows no socket, no queue and no tensor.
"""

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

_HEAD: Final = struct.Struct("!IBI")
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
_FROM_JSON: Final = json.JSONDecoder()
HEAD_BYTES: Final = _HEAD.size
MAX_HEADER_BYTES: Final = 1 << 20
MAX_FRAME_BYTES: Final = (2 << 30) + MAX_HEADER_BYTES
"""Longer ones are not taken in: the peer is not what it says, or has gone mad."""
MAX_ANSWER_BYTES: Final = (256 << 20) + MAX_HEADER_BYTES
"""Of a RESULT or a PART, that a gateway takes of a kernel."""
MAX_PARTS_AHEAD: Final = 32
MAX_BYTES_AHEAD: Final = 1 << 20
"""Of parts that were sent and not taken; a single part may be longer."""
MAX_HELLO_BYTES: Final = 4 << 10
"""Of the first frame, which anybody can send."""
MAX_GATEWAYS: Final = 16
"""Of one server; a kernel looks for no more."""


class KernelFrameKind(IntEnum):
    """What a frame means. Those from 16 on come from a gateway."""

    HELLO = 1
    """`task`: its id; `token`: that of its job."""
    READY = 2
    """`metadata`: what the model says of itself; `load_s`: how long it took to load."""
    RESULT = 3
    """`id`; `status`: of HTTP; `type`: of the body; `json`: so many of its bytes are JSON, if tensors follow them;
    `busy_s`: seconds that the batch of this request has computed so far, in the first RESULT of a batch alone;
    `batch`: requests in that batch, there too."""
    PART = 4
    """`id`: a part of an answer, as RESULT; only of a request with `parts`."""
    RETURN = 5
    """`ids`: requests that were not begun."""
    DRAIN = 6
    """It leaves."""
    PONG = 7
    """The answer to PING, sent between batches."""
    COPIED = 8
    """`num`: so many bodies more were copied out of shared memory, in the order of their frames. Both sides say it."""
    PROGRESS = 9
    """It has computed for another gateway, and goes on: requests of this one have waited meanwhile. Sent by a kernel
    that has several gateways, and only to one whose requests wait in it."""
    WELCOME = 16
    """`batch_size`, `pipe_size`, `latency_objective_s`, `execution_timeout_s`; comes again when they have changed.
    `shared`: the gateway has taken the memory for large bodies; `num_gateways`: so many a kernel connects to."""
    REQUEST = 17
    """`id`: a number, once per gateway; `api`: `v2`, `dlim`, `grpc`, `generate`; `json`: so many bytes of the body are
    JSON, if tensors follow them; `timeout_s`: what is left of the client's patience, if it has an end; `parts`: the
    client takes an answer in parts; `params`: more of the API's own, such as `accept`."""
    CANCEL = 18
    """`ids`: nobody waits for these any more; they need no answer, and may have one."""
    PING = 19
    """Are you there? One at a time. PONG also says: what was cancelled before this PING, and is not answered by now,
    is held no more. So a gateway learns what room cancelled requests have freed, though nobody answers them."""
    TAKEN = 20
    """`id`; `num`: so many more parts of its answer have left the gateway."""


_WITH_BODY: Final = frozenset({KernelFrameKind.RESULT, KernelFrameKind.PART, KernelFrameKind.REQUEST})
"""All others are a header alone."""


@dataclass(frozen=True, slots=True)
class KernelFrame:
    """One frame, whole."""

    kind: KernelFrameKind
    header: dict[str, Any]
    body: bytes | bytearray | memoryview = b""


class BadKernelFrame(ValueError):
    """The peer has sent what is no frame; nothing that follows can be understood."""


def encode_frame(kind: KernelFrameKind, header: dict[str, Any], body: bytes | bytearray | memoryview = b"") -> bytes:
    """Return a frame; `encode_head` spares the copy of a long body."""
    return b"".join((encode_head(kind, header, len(body)), body))


def encode_head(kind: KernelFrameKind, header: dict[str, Any], num_body_bytes: int) -> bytes:
    """Return head and header of a frame whose body follows."""
    text = _JSON.encode(header).encode()
    return _HEAD.pack(len(text) + num_body_bytes, kind, len(text)) + text


class KernelFrameReader:
    """Cuts a stream of bytes into frames. Holds the beginning of a frame that is not whole yet.

    Args:
        max_bytes: of a frame; may be changed at any time.
    """

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self.max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> list[KernelFrame]:
        """Return the frames that are whole with these bytes.

        Raises:
            BadKernelFrame: they are no frames.
        """
        buffer = self._buffer
        if buffer:
            buffer += data
        source = buffer or data  # whole frames are cut out of what came, without a copy in between
        frames, at = [], 0
        with memoryview(source) as view:
            while (end := self._end(view, at)) is not None:
                frames.append(_frame(view, at, end))
                at = end
        if source is buffer:
            del buffer[:at]
        else:
            buffer += source[at:]
        return frames

    def _end(self, view: memoryview, at: int) -> int | None:
        """Return where the frame ends that begins there; None if it is not whole."""
        if len(view) - at < HEAD_BYTES:
            return None
        num_bytes, kind, num_header_bytes = _HEAD.unpack_from(view, at)
        if num_bytes > self.max_bytes or num_header_bytes > min(num_bytes, MAX_HEADER_BYTES):
            raise BadKernelFrame(f"a frame of {num_bytes} bytes with a header of {num_header_bytes}")
        if num_bytes != num_header_bytes and kind not in _WITH_BODY:
            raise BadKernelFrame(f"a frame of the kind {kind} with a body, which only requests and answers have")
        end = at + HEAD_BYTES + int(num_bytes)
        return end if end <= len(view) else None

    @property
    def num_held(self) -> int:
        """Bytes of the frame that has begun."""
        return len(self._buffer)

    @property
    def num_missing(self) -> int:
        """Bytes that the frame that has begun lacks at least; 0 if none has begun."""
        there = len(self._buffer)
        if there < HEAD_BYTES:
            return HEAD_BYTES - there if there else 0
        return HEAD_BYTES + int(_HEAD.unpack_from(self._buffer)[0]) - there


def _frame(view: memoryview, at: int, end: int) -> KernelFrame:
    _, kind, num_header_bytes = _HEAD.unpack_from(view, at)
    body_at = at + HEAD_BYTES + num_header_bytes
    try:
        header, known = _FROM_JSON.decode(str(view[at + HEAD_BYTES : body_at], "utf-8")), KernelFrameKind(kind)
    except (ValueError, RecursionError) as error:
        raise BadKernelFrame(f"a frame cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise BadKernelFrame("the header of a frame is no JSON object")
    return KernelFrame(known, header, bytes(view[body_at:end]))
