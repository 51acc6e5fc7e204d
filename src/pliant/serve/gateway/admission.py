"""How much a gateway takes in at once: requests, and bytes of their bodies and answers.

An answer counts until its client has it, or is gone. Knows nothing of what they want.
"""

import asyncio
from types import TracebackType
from typing import Final, Self

from pliant.serve.gateway.refused import TRY_AGAIN_S, Refused
from pliant.serve.gateway.request_limiter import RequestLimiter, enter

MAX_REQUESTS: Final = 10_000
MAX_BYTES: Final = 2 << 30


class Admission:
    """Counts what is under way.

    Args:
        max_requests: at once.
        max_bytes: of all bodies and answers; those of a single request may be longer if no other has any.
    """

    def __init__(self, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_BYTES) -> None:
        self.is_draining = False
        self.num_requests = 0
        self.num_bytes = 0
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._empty: asyncio.Event | None = None

    def enter(self) -> "AdmittedRequest":
        """Take a request in, for as long as the context lasts.

        Raises:
            Refused: there are too many, or the gateway ends.
        """
        if self.is_draining:
            raise Refused(503, "this gateway ends and takes nothing more; try again in a moment", retry_after_s=5)
        if self.num_requests >= self._max_requests:
            message = f"{self._max_requests} requests are under way here; try again later"
            raise Refused(503, message, retry_after_s=TRY_AGAIN_S)
        self.num_requests += 1
        return AdmittedRequest(self)

    def hold(self, num_bytes: int, own: int = 0) -> None:
        """Take bytes in.

        Args:
            num_bytes: how many.
            own: so many the same request holds already.

        Raises:
            Refused: there are too many.
        """
        if num_bytes and self.num_bytes + num_bytes > self._max_bytes and self.num_bytes > own:
            message = f"the requests that are under way here have {self._max_bytes >> 20} MiB; try again later"
            raise Refused(503, message, retry_after_s=TRY_AGAIN_S)
        self.num_bytes += num_bytes

    def release(self, num_bytes: int) -> None:
        """Forget bytes."""
        self.num_bytes -= num_bytes

    def leave(self, num_bytes: int) -> None:
        """Forget a request and its bytes."""
        self.num_requests -= 1
        self.num_bytes -= num_bytes
        if self._empty is not None and not self.num_requests:
            self._empty.set()

    async def drain(self) -> None:
        """Take nothing more, and wait until nothing is under way."""
        self.is_draining = True
        if self.num_requests:
            self._empty = self._empty or asyncio.Event()
            await self._empty.wait()


class AdmittedRequest:
    """A request that was taken in, until the end of the context."""

    __slots__ = ("_admission", "_limiters", "_num_bytes")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._limiters: tuple[RequestLimiter, ...] = ()
        self._num_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission.leave(self._num_bytes)
        for limiter in self._limiters:
            limiter.leave()

    def enter(self, *limiters: RequestLimiter) -> None:
        """Count it, once, among the requests that these limit, until it ends.

        Raises:
            Refused: these are too many.
        """
        enter(*limiters)
        self._limiters = limiters

    def hold(self, num_bytes: int) -> None:
        """Count so many bytes more of it.

        Raises:
            Refused: all requests together have too many.
        """
        self._admission.hold(num_bytes, self._num_bytes)
        self._num_bytes += num_bytes

    def release(self, num_bytes: int) -> None:
        """Count so many bytes of it no longer."""
        self._admission.release(num_bytes)
        self._num_bytes -= num_bytes
