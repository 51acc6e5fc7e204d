"""What is used of a call's context; grpc has no types of its own."""

from collections.abc import Sequence
from typing import NoReturn, Protocol

import grpc


class GrpcContext(Protocol):
    """A call, as grpc hands it to whoever answers it."""

    async def read(self) -> object:
        """Return the next message, as bytes; `grpc.aio.EOF` after the last."""
        ...

    async def write(self, message: bytes) -> None: ...

    def time_remaining(self) -> float | None:
        """Return how many seconds the client still waits; None: it does not say."""
        ...

    def peer(self) -> str:
        """Return who calls, such as `ipv4:127.0.0.1:50000`."""
        ...

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None: ...

    def set_trailing_metadata(self, metadata: Sequence[tuple[str, str]]) -> None: ...

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn: ...
