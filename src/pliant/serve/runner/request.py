"""What a kernel is asked (`KernelRequest`), what it answers (`KernelResult`), and what answers (`ServedModel`).

Knows no socket and no tensor: bodies are bytes here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pliant.serve.protocol.frames import KernelFrame
from pliant.serve.runner.metadata import ModelMetadata

JSON_TYPE: Final = "application/json"
BYTES_TYPE: Final = "application/octet-stream"
TENSOR_APIS: Final = ("v2", "grpc")
"""Those whose bodies are tensors: the Open Inference Protocol, as JSON and over gRPC."""
FLAT_API: Final = "generate"
"""Triton's, whose bodies are plain JSON by the names of inputs and outputs."""
TEXT_TYPE: Final = "text/plain; charset=utf-8"


class RequestLink(Protocol):
    """What a request came by; its answer goes by nothing else."""

    def answer(self, frames: Sequence[KernelFrame]) -> None:
        """Send frames about its requests; if it is lost by now, nobody waits for them."""
        ...

    def stream(self, request: "KernelRequest", parts: Iterator["KernelResult"]) -> None:
        """Answer one of its requests in parts, in turns with others; if it is lost by now, close them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """One request, as it came."""

    id: int
    """A number of the gateway's, once per link: two gateways may have requests of the same number."""
    api: str
    """`v2`, `dlim`, `grpc` or `generate`: what the body is, and what the answer has to be."""
    body: bytes
    num_json: int | None = None
    """So many bytes of the body are JSON; tensors follow them. None: nothing follows."""
    params: Mapping[str, Any] = field(default_factory=dict)
    takes_parts: bool = False
    """The client takes an answer in parts; otherwise there can be one answer alone."""
    deadline: float | None = None
    """On the kernel's clock; afterwards nobody waits for the answer."""
    link: RequestLink | None = field(default=None, repr=False, compare=False)
    """None only where nobody waits for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResult:
    """The answer to one request."""

    body: bytes
    status: int = 200
    """Of HTTP."""
    type: str = JSON_TYPE
    num_json: int | None = None
    """So many bytes of the body are JSON, if tensors follow."""

    @property
    def header(self) -> dict[str, Any]:
        """What a frame says of it besides its number."""
        said: dict[str, Any] = {"status": self.status, "type": self.type}
        return said if self.num_json is None else said | {"json": self.num_json}


class BatchOfRequests(Protocol):
    """Requests that are computed together: it is open as long as more may come."""

    def take(self) -> KernelRequest | None:
        """Return the next request that waits; None: the batch is closed."""
        ...

    def answer(self, answers: Sequence[tuple[KernelRequest, KernelResult]]) -> None:
        """Send the answers to requests that were taken; a request is answered once."""
        ...

    def stream(self, request: KernelRequest, parts: Iterator[KernelResult]) -> None:
        """Answer a request that takes parts with these, in turns with others; one that is an error is the last.

        The batch has no more to do with it. The iterator is closed when nobody waits any longer, if it has `close`.
        """
        ...


class ServedModel(Protocol):
    """A model that is loaded."""

    @property
    def metadata(self) -> ModelMetadata:
        """What it says of itself."""
        ...

    def serve(self, batch: BatchOfRequests) -> None:
        """Take requests until there are none, and answer them; what is left unanswered gets an error."""
        ...


def failure(status: int, message: str) -> KernelResult:
    """Return an answer that says what went wrong."""
    return KernelResult(status=status, body=json.dumps({"error": message}).encode())
