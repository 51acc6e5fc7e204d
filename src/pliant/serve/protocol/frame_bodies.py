"""The bodies of frames that lie in shared memory: put there on the way out, copied out of it on the way in."""

from typing import Any, TypeVar

from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind
from pliant.serve.protocol.shared_bodies import SHARED_FROM_BYTES, BadSharedBody, Piece, SharedBodies

B = TypeVar("B", bound=Piece)


class FrameBodies:
    """One side's use of the memory.

    Args:
        shared: the memory; None: there is none, and all bodies go through the socket.
    """

    def __init__(self, shared: SharedBodies | None) -> None:
        self._shared = shared
        self._num_copied = 0

    @property
    def has_memory(self) -> bool:
        """Large bodies go by memory."""
        return self._shared is not None

    @property
    def num_held(self) -> int:
        """Bytes that the other side has not taken out."""
        return 0 if self._shared is None else self._shared.num_held

    def put(self, header: dict[str, Any], body: B) -> tuple[dict[str, Any], B | bytes]:
        """Return header and body as they go through the socket: a large body stays behind, if there is room."""
        if len(body) < SHARED_FROM_BYTES or self._shared is None or (at := self._shared.put(body)) is None:
            return header, body
        return {**header, "at": at, "bytes": len(body)}, b""

    def take(self, frame: KernelFrame, *, is_wanted: bool = True) -> KernelFrame | None:
        """Return a frame with its body; None if it is a COPIED, which only this is concerned with.

        Args:
            frame: as it came.
            is_wanted: somebody waits for its body; otherwise it is not copied.

        Raises:
            BadKernelFrame: it makes no sense.
        """
        is_copied = frame.kind is KernelFrameKind.COPIED
        if not is_copied and "at" not in frame.header:
            return frame
        if self._shared is None or len(frame.body):
            raise BadKernelFrame("a body in shared memory, where there is none")
        header = frame.header
        try:
            if is_copied:
                self._shared.freed(header.get("num"))
                return None
            body = self._shared.take(header["at"], header.get("bytes") if is_wanted else 0)
        except BadSharedBody as error:
            raise BadKernelFrame(str(error)) from error
        self._num_copied += 1
        return KernelFrame(frame.kind, {key: header[key] for key in header if key not in ("at", "bytes")}, body)

    def num_to_say(self) -> int:
        """Return how many were taken since this was asked last: a COPIED says so to the other side."""
        num, self._num_copied = self._num_copied, 0
        return num

    @property
    def is_warm(self) -> bool:
        """There is memory that `rest` would give back in a while."""
        return self._shared is not None and self._shared.is_warm

    def rest(self, now: float) -> None:
        """Give memory back that was not used for a while."""
        if self._shared is not None:
            self._shared.rest(now)

    def close(self) -> None:
        """Give the memory back."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None
