"""One connection of a kernel to a gateway (`GatewayLink`), and all that lives exactly as long as it does.

That is what the gateway has said of batches, the requests that it has given and that wait, and the answers in parts
that are under way for it. A link that is lost takes all that with it, and nobody else's. Knows no other link, and does
not look into bodies.

Laws: what comes by a link is answered by it, or dropped with it. After `lose` it does nothing any more.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind
from pliant.serve.runner.backlog import Backlog
from pliant.serve.runner.connection import GatewayConnection
from pliant.serve.runner.errors import GatewayLost, GatewayUnproven
from pliant.serve.runner.failures import FailuresInRow
from pliant.serve.runner.incoming import BatchSettings, read_ids, read_request, read_settings
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.request import KernelRequest, KernelResult
from pliant.serve.runner.streams import PartStreams

PROGRESS_EVERY_S: Final = 0.1
"""A gateway whose requests wait is not told more often that the kernel works."""


class GatewayLink:
    """A gateway, from the connection to its loss.

    Args:
        number: of the gateway.
        connection: to it.
        leave: tells when the kernel has to go.
        failures: hears of streams that fail.
        clock: seconds.
        on_welcome: is called whenever the gateway has said how it wants batches.
    """

    def __init__(
        self,
        number: int,
        connection: GatewayConnection,
        leave: LeaveSignal,
        failures: FailuresInRow,
        clock: Callable[[], float],
        on_welcome: Callable[["GatewayLink"], None],
    ) -> None:
        self.number = number
        self.connection = connection
        self.settings: BatchSettings | None = None
        """None: it has not welcomed this kernel."""
        self.is_open = True
        self.is_ready = False
        """It was told that the model is loaded."""
        self.why_lost = ""
        self.is_unproven = False
        """It is lost since what listens there is no gateway of this server."""
        self.backlog = Backlog()
        self.streams = PartStreams(self._answer_one, failures, clock)
        self._leave = leave
        self._clock = clock
        self._on_welcome = on_welcome
        self._has_drained = False
        self._sent_at = clock()
        """When it got an answer, a part of one, or PROGRESS last."""

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def is_opening(self) -> bool:
        """It has not shown yet who it is."""
        return self.is_open and self.connection.is_opening

    def receive(self) -> None:
        """Take in what has come by now."""
        if not self.is_open:
            return
        try:
            for frame in self.connection.receive():
                if self.is_open:
                    self._take_in(frame)
            if self._leave.is_set and self.is_open:
                self._settle()
        except GatewayLost as lost:
            self.is_unproven = isinstance(lost, GatewayUnproven)
            self.lose(str(lost))

    def rest(self, now: float) -> float | None:
        """See whether the gateway is there, and give memory back; return when to do so again, or None: no need."""
        try:
            return self.connection.rest(now)
        except GatewayLost as lost:
            self.lose(str(lost))
            return 0.0

    def say_ready(self, header: dict[str, Any]) -> None:
        """Let it give requests from now on."""
        if self._send(KernelFrame(KernelFrameKind.READY, header)):
            self.is_ready = True
            self.settle()

    def answer(self, frames: Sequence[KernelFrame]) -> None:
        """Send frames about its requests; if it is lost by now, nobody waits for them."""
        self._sent_at = self._clock()
        self._send(*frames)

    def stream(self, request: KernelRequest, parts: Iterator[KernelResult]) -> None:
        """Answer one of its requests in parts, in turns with others; if it is lost by now, close them."""
        self.streams.add(request, parts)
        if not self.is_open:
            self.streams.drop()

    def say_progress(self) -> None:
        """Say that the kernel works, if requests wait here and nothing was said for a while."""
        if not self.is_ready or not (self.backlog.num_awaited or self.streams.has_awaited):
            return
        if (now := self._clock()) - self._sent_at >= PROGRESS_EVERY_S:
            self._sent_at = now
            self._send(KernelFrame(KernelFrameKind.PROGRESS, {}))

    def settle(self) -> None:
        """If the kernel has to go: say so, once, and hand back what has not been begun."""
        if not self._leave.is_set or not self.is_open:
            return
        try:
            self._settle()
        except GatewayLost as lost:
            self.lose(str(lost))

    def settle_if_idle(self) -> None:
        """Do that from the signal's handler, unless it has come in the middle of a frame: the sender does it then."""
        if self.is_open and not self.connection.is_sending:
            with suppress(GatewayLost):  # whoever uses it next finds out again, and not in the middle of something
                self._settle()

    def lose(self, why: str) -> None:
        """End it, and forget all that came by it."""
        self.is_open, self.why_lost = False, why
        self.connection.close()
        self.backlog.give_back()
        self.streams.drop()

    def _send(self, *frames: KernelFrame) -> bool:
        """Send frames; tell whether it is still there afterwards."""
        if not self.is_open:
            return False
        try:
            self.connection.send_all(frames)
            if self._leave.is_set:
                self._settle()
        except GatewayLost as lost:
            self.lose(str(lost))
        return self.is_open

    def _take_in(self, frame: KernelFrame) -> None:
        header = frame.header
        match frame.kind:
            case KernelFrameKind.REQUEST:
                self.backlog.add(read_request(frame, self._clock(), self))
            case KernelFrameKind.TAKEN:
                self.streams.take_note(header.get("id"), header.get("num"))
            case KernelFrameKind.CANCEL:
                self.backlog.cancel(read_ids(header))
                self.streams.cancel(read_ids(header))
            case KernelFrameKind.PING:
                self.connection.send(KernelFrameKind.PONG, {})
            case KernelFrameKind.WELCOME:
                self.settings = read_settings(header, self.settings or BatchSettings())
                self.connection.share(is_taken=header.get("shared") is True)
                self._on_welcome(self)
            case _:
                raise GatewayLost(f"the gateway has sent {frame.kind.name}, which only kernels send")

    def _settle(self) -> None:
        if not self.is_ready:
            return  # it has given nothing
        if not self._has_drained:
            self._has_drained = True
            self.connection.send(KernelFrameKind.DRAIN, {})
        if ids := self.backlog.give_back() + self.streams.give_back():
            self.connection.send(KernelFrameKind.RETURN, {"ids": ids})

    def _answer_one(self, request: KernelRequest, header: dict[str, Any], body: bytes, kind: KernelFrameKind) -> None:
        """Send an answer, or a part of one."""
        self.answer((KernelFrame(kind, {"id": request.id, **header}, body),))
