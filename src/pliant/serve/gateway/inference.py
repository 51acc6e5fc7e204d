"""A request on its way from a client to a kernel and back, and what may come back. Belongs to one event loop.

A request is *settled* once: with a kernel's answer, or with the reason why there is none. Before that, parts of a
stream may come. Whoever asked waits for `news`, one future at a time.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pliant.core.job import TaskId
from pliant.serve.gateway.admission import AdmittedRequest
from pliant.serve.gateway.dispatch import DispatchedRequest
from pliant.serve.gateway.refused import ClientGone, Refused
from pliant.serve.protocol.frames import MAX_BYTES_AHEAD, MAX_PARTS_AHEAD

MAX_PARTS_BYTES: Final = 64 << 20
"""Of parts that nobody has taken yet, unless it is a single one; a kernel that keeps to the protocol waits long before.
"""
_PART_BYTES: Final = 1 << 10
"""That a part takes besides its body: there may be very many without one."""
Body = bytes | bytearray


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """What a kernel answered: the whole, or a part of a stream."""

    status: int
    type: str
    """Of the body; empty: not said."""
    num_json: int | None
    """So many bytes of the body are JSON, if tensors follow them."""
    body: Body | memoryview
    kernel: TaskId
    version: int


class InferenceRequest(DispatchedRequest):
    """One request.

    Args:
        number: once per gateway, ascending.
        header: of the frame, without `id` and `timeout_s`.
        body: as it came.
        arrived_at: by the gateway's clock.
        deadline: nobody waits longer.
        names_version: it wants the version that it is at, and no other.
        admitted: counts the bytes of its body until it is settled, and those of its answer; None: nobody does.
    """

    __slots__ = (
        "acknowledge",
        "admitted",
        "arrived_at",
        "body",
        "deadline",
        "given_at",
        "header",
        "names_version",
        "news",
        "num_parts_bytes",
        "num_taken",
        "num_taken_bytes",
        "outcome",
        "parts",
    )

    def __init__(
        self,
        number: int,
        *,
        header: dict[str, Any],
        body: Body,
        arrived_at: float,
        deadline: float | None = None,
        names_version: bool = False,
        admitted: AdmittedRequest | None = None,
    ) -> None:
        super().__init__(number)
        self.header = header
        self.body = body
        self.arrived_at = arrived_at
        self.deadline = deadline
        self.names_version = names_version
        self.admitted = admitted
        self.given_at = arrived_at
        self.outcome: KernelAnswer | Refused | ClientGone | None = None
        self.parts: deque[KernelAnswer] = deque()
        self.num_parts_bytes = 0
        self.num_taken = 0
        """Parts that were taken, and that its kernel does not know of."""
        self.num_taken_bytes = 0
        self.acknowledge: Callable[[int], None] | None = None
        """Tells its kernel so."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def takes_parts(self) -> bool:
        """Whether its client takes an answer in parts."""
        return self.header.get("parts") is True

    def settle(self, outcome: KernelAnswer | Refused | ClientGone) -> None:
        """End it; whoever asked is woken."""
        assert self.outcome is None
        if self.admitted is not None:
            self.admitted.release(len(self.body))
        self.body = b""
        if isinstance(outcome, KernelAnswer) and (refused := self._hold(len(outcome.body))) is not None:
            outcome = refused
        self.outcome = outcome
        self._wake()

    def add_part(self, part: KernelAnswer) -> bool:
        """Hand on a part of the answer; tell whether whoever asked keeps up with them, and there is room for them."""
        num_bytes = len(part.body) + _PART_BYTES
        if self._hold(num_bytes) is not None:
            return False
        self.has_begun = True
        self.parts.append(part)
        self.num_parts_bytes += num_bytes
        self._wake()
        return self.num_parts_bytes <= MAX_PARTS_BYTES or len(self.parts) == 1

    async def next(self) -> KernelAnswer | None:
        """Return the next part of a stream; None once there is no more, and `outcome` says how it ended."""
        while not self.parts and self.outcome is None:
            await self.news
            if self.outcome is None:
                self.news = asyncio.get_running_loop().create_future()
        if not self.parts:
            return None
        part = self.parts.popleft()
        self.num_parts_bytes -= len(part.body) + _PART_BYTES
        if self.admitted is not None:
            self.admitted.release(len(part.body) + _PART_BYTES)
        self._note_taken(len(part.body))
        return part

    def _note_taken(self, num_bytes: int) -> None:
        """Tell the kernel that parts were taken before it waits for that; not for every single one."""
        self.num_taken += 1
        self.num_taken_bytes += num_bytes
        is_due = 2 * self.num_taken >= MAX_PARTS_AHEAD or 2 * self.num_taken_bytes >= MAX_BYTES_AHEAD
        if is_due and self.acknowledge is not None and self.outcome is None:
            self.acknowledge(self.num_taken)
            self.num_taken = self.num_taken_bytes = 0

    def _hold(self, num_bytes: int) -> Refused | None:
        """Count bytes of the answer; return why there is no room for them, if so."""
        try:
            if self.admitted is not None:
                self.admitted.hold(num_bytes)
        except Refused as refused:
            return refused
        return None

    def _wake(self) -> None:
        if not self.news.done():
            self.news.set_result(None)


async def await_answer(request: InferenceRequest) -> KernelAnswer:
    """Return the one answer to a request that takes no parts.

    Raises:
        Refused: there is none.
        ClientGone: nobody waits for it.
    """
    await request.next()
    outcome = request.outcome
    if isinstance(outcome, KernelAnswer):
        return outcome
    assert outcome is not None
    raise outcome
