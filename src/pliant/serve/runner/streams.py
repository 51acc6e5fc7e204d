"""The answers in parts that a kernel has under way for a gateway (`PartStreams`): in turns, and no faster than clients
take them.

A model gives an iterator of parts for each. A turn takes one part of each that may go on, so none waits for another one
to end, and batches are computed between turns. Example: a and b are streams, and a request c comes

    a b | c | a b | a b …

A stream that is far ahead of its client (`MAX_PARTS_AHEAD`, `MAX_BYTES_AHEAD`) is passed over until the gateway says
that parts were taken. One that nobody waits for is closed at its next turn. Knows no socket and no model.

Laws: every stream that was added ends once: by its end or an error, which is sent, by `give_back` if it was not begun,
or by `cancel` and `drop`, of which nobody is told.
"""

import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pliant.serve.protocol.frames import MAX_BYTES_AHEAD, MAX_PARTS_AHEAD, KernelFrameKind
from pliant.serve.runner.errors import error_line
from pliant.serve.runner.failures import FailuresInRow
from pliant.serve.runner.request import KernelRequest, KernelResult, failure


@dataclass(slots=True, eq=False)
class _PartStream:
    request: KernelRequest
    parts: Iterator[KernelResult]
    busy_s: float = 0.0
    has_begun: bool = False
    is_cancelled: bool = False
    ahead: deque[int] = field(default_factory=deque)
    """The bytes of parts that were sent and not taken, oldest first."""
    num_bytes_ahead: int = 0

    @property
    def may_go_on(self) -> bool:
        is_near = len(self.ahead) < MAX_PARTS_AHEAD and self.num_bytes_ahead < MAX_BYTES_AHEAD
        return is_near or self.is_cancelled

    def close(self) -> None:
        """Stop the model's part of it, which may have something to clean up."""
        try:
            close_parts(self.parts)
        except Exception as error:  # noqa: BLE001 (a model may raise anything; nobody waits for it)
            print("pliant: a stream that nobody waits for has failed to close", file=sys.stderr)
            traceback.print_exception(error)


class PartStreams:
    """All streams that a kernel has under way for one gateway.

    Args:
        send: sends a frame about a request: its header without the number, its body, and its kind.
        failures: hears of errors, of whose streams' clients were told.
        clock: seconds.
    """

    def __init__(
        self,
        send: Callable[[KernelRequest, dict[str, Any], bytes, KernelFrameKind], None],
        failures: FailuresInRow,
        clock: Callable[[], float],
    ) -> None:
        self._send = send
        self._failures = failures
        self._clock = clock
        self._streams: dict[int, _PartStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def has_awaited(self) -> bool:
        """Of some the next part is owed to somebody who waits for it."""
        return any(stream.may_go_on and not stream.is_cancelled for stream in list(self._streams.values()))

    def add(self, request: KernelRequest, parts: Iterator[KernelResult]) -> None:
        """Begin a stream with the next turn."""
        self._streams[request.id] = _PartStream(request, parts)

    def take_note(self, number: object, num_taken: object) -> None:
        """Take note that so many more parts of a stream were taken; of one that is over it is no concern."""
        stream = self._streams.get(number) if isinstance(number, int) else None
        if stream is not None and isinstance(num_taken, int):
            for _ in range(min(num_taken, len(stream.ahead))):
                stream.num_bytes_ahead -= stream.ahead.popleft()

    def cancel(self, ids: Iterable[int]) -> None:
        """Close these at the next turn; those that are not under way are no concern."""
        for number in ids:
            if (stream := self._streams.get(number)) is not None:
                stream.is_cancelled = True

    def give_back(self) -> list[int]:
        """Return the ids of those that were not begun, which are over; a signal's handler may call it."""
        waiting = [number for number, stream in list(self._streams.items()) if not stream.has_begun]
        for number in waiting:
            self._streams.pop(number, None)
        return waiting

    def drop(self) -> None:
        """Close all; nobody waits for any."""
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            stream.close()

    def turn(self) -> list[int]:
        """Return those that may go on, each of which has a `step` now."""
        return [number for number, stream in list(self._streams.items()) if stream.may_go_on]

    def step(self, number: int) -> None:
        """Take one part of a stream and send it, or end it; one that is not under way any more is no concern."""
        if (stream := self._streams.get(number)) is None:
            return
        stream.has_begun = True  # before the look whether it is still there: `give_back` may come at any moment
        if number not in self._streams:
            return
        if stream.is_cancelled:
            del self._streams[number]
            stream.close()
        else:
            self._go_on(stream)

    def _go_on(self, stream: _PartStream) -> None:
        began_at = self._clock()
        try:
            part = next(stream.parts, None)
        except Exception as error:  # noqa: BLE001 (a model may raise anything; its caller is told what)
            self._end(stream, failure(500, error_line(error)))
            self._failures.note(error)
            return
        except BaseException as error:
            self._end(stream, failure(500, f"the kernel has ended itself: {error_line(error)}"))
            raise
        stream.busy_s += self._clock() - began_at
        if part is None:
            self._end(stream, KernelResult(body=b""))
        elif part.status >= 400 or not stream.request.takes_parts:
            stream.close()
            self._end(stream, part)
        else:
            stream.ahead.append(len(part.body))
            stream.num_bytes_ahead += len(part.body)
            self._failures.forget()
            self._send(stream.request, {"type": part.type}, part.body, KernelFrameKind.PART)

    def _end(self, stream: _PartStream, result: KernelResult) -> None:
        self._streams.pop(stream.request.id, None)
        header = result.header | {"busy_s": round(stream.busy_s, 6), "batch": 1}
        self._send(stream.request, header, result.body, KernelFrameKind.RESULT)


def close_parts(parts: Any) -> None:
    """Close what a model gave, if it can be closed."""
    if callable(close := getattr(parts, "close", None)):
        close()
