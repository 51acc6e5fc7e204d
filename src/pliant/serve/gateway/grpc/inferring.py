"""Requests of `ModelInfer`, from bytes to a kernel: of a message no more is read than whose it is."""

from pliant.serve.gateway.access import EndpointAccess, count
from pliant.serve.gateway.admission import AdmittedRequest
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.inferences import Inferences, UnderWay
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.route import read_version
from pliant.serve.protocol.grpc import peek

MAX_MESSAGE_BYTES = 256 << 20
"""Of any message that is taken; an endpoint's own limit is looked at as soon as its name is known."""


class GrpcInferences:
    """Begins what comes by gRPC.

    Args:
        access: who may ask which endpoints.
        inferences: the requests that are under way.
    """

    def __init__(self, access: EndpointAccess, inferences: Inferences) -> None:
        self._access = access
        self._inferences = inferences

    def begin(
        self,
        message: bytes,
        rights: CallerRights,
        admitted: AdmittedRequest,
        patience_s: float | None,
        *,
        takes_parts: bool = False,
    ) -> UnderWay:
        """Queue a request; `finish` has to follow.

        Args:
            message: a `ModelInferRequest`; it goes to the kernel as it is.
            rights: of who asks.
            admitted: counts its bytes, and those of its answer.
            patience_s: so long the client waits; None: it does not say.
            takes_parts: the answer may come in parts.

        Raises:
            InvalidInput: it is none.
            Refused: it is too long, or there is no such endpoint or version for this caller, or its queue is full.
        """
        admitted.hold(len(message))
        name, version, _ = peek(message)
        endpoint = self._access.find(name, rights)
        number = read_version(version) if version else None
        service = endpoint.choose(number)
        count(rights, endpoint, service, admitted)
        most = service.endpoint.profile.max_body_bytes
        if len(message) > most:
            service.meter.refuse()
            text = f"the message has {len(message)} bytes, and this endpoint takes {most}"
            raise Refused(413, f"{text}; its owner can raise max_body_bytes")
        return self._inferences.begin(
            service,
            {"api": "grpc", "parts": True} if takes_parts else {"api": "grpc"},
            message,
            patience_s=patience_s,
            names_version=number is not None,
            admitted=admitted,
        )

    def finish(self, under_way: UnderWay) -> None:
        """End a request, if it is not over."""
        self._inferences.finish(under_way)
