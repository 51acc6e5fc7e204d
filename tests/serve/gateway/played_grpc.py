"""A played gateway that is asked over gRPC, on a port of loopback."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from tests.serve.gateway.played import Played, played

from pliant.core.serving import ServedEndpoint
from pliant.serve.gateway.admission import Admission
from pliant.serve.gateway.gateway_share import ALONE, GatewayShare
from pliant.serve.gateway.grpc.server import GrpcPlace, GrpcServer
from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message

SERVICE = "/inference.GRPCInferenceService/"
ADA = (("authorization", "Bearer ada"),)
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Refusal:
    """What a call ended with, in the place of an answer."""

    code: str
    details: str
    retry_after: str | None = None


@dataclass(slots=True)
class Spoken:
    """A gateway, and a channel to it."""

    world: Played
    channel: grpc.aio.Channel
    address: str

    async def call(
        self,
        name: str,
        body: bytes = b"",
        *,
        metadata: Sequence[tuple[str, str]] = ADA,
        timeout: float = PATIENCE_S,
        **more: Any,
    ) -> bytes | Refusal:
        """Ask for something, in bytes."""
        path = name if name.startswith("/") else SERVICE + name
        try:
            answer: bytes = await self.channel.unary_unary(path)(body, metadata=metadata, timeout=timeout, **more)
        except grpc.aio.AioRpcError as error:
            trailing = dict(error.trailing_metadata() or ())
            return Refusal(error.code().name, error.details() or "", trailing.get("retry-after"))
        return answer

    async def ask(self, call: str, metadata: Sequence[tuple[str, str]] = ADA, /, **fields: Any) -> Any:
        """Ask a small question; return the fields of the answer."""
        answer = await self.call(call, encode_message(f"{call}Request", fields), metadata=metadata)
        return answer if isinstance(answer, Refusal) else decode_message(f"{call}Response", answer)


def infer_request(**fields: Any) -> bytes:
    """Return a request to the played endpoint."""
    return encode_message("ModelInferRequest", {"model_name": "digits", **fields})


@contextlib.asynccontextmanager
async def spoken(
    *endpoints: ServedEndpoint, admission: Admission | None = None, share: GatewayShare = ALONE
) -> AsyncIterator[Spoken]:
    """A gateway that serves these, over gRPC too."""
    async with played(*endpoints, admission=admission, share=share) as world:
        server = GrpcServer(GrpcPlace(host="127.0.0.1", port=0))
        world.spawn(server.serve(world.gateway.grpc))
        address = f"127.0.0.1:{server.port}"
        try:
            async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                yield Spoken(world, channel, address)
        finally:
            await server.close(0)
