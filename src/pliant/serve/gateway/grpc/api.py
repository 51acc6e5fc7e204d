"""The Open Inference Protocol over gRPC: which call is answered by what, for whom, and within which limits.

The token is looked at before the message is read: until then grpc takes no more of it than its first window. That
is why every call is handled as one that reads by itself, which on the wire is the same. Messages are bytes throughout.
Health says how the gateway is to everybody, and never reads a message; whatever service is named, it is meant.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import unquote
from weakref import WeakValueDictionary

import grpc

from pliant.core.errors import PliantError
from pliant.serve.gateway.access import EndpointAccess, Headers
from pliant.serve.gateway.admission import Admission
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.grpc.context import GrpcContext
from pliant.serve.gateway.grpc.inferring import GrpcInferences
from pliant.serve.gateway.grpc.questions import GrpcQuestions
from pliant.serve.gateway.grpc.status import RETRY_AFTER, code_of, details_of, refusal_of
from pliant.serve.gateway.grpc.stream import InferenceStream
from pliant.serve.gateway.inference import await_answer
from pliant.serve.gateway.kernel_answer import read_failure
from pliant.serve.gateway.model_repository import ModelChange, ModelRepository, refuse_overrides
from pliant.serve.gateway.refused import ClientGone, Refused, not_here
from pliant.serve.gateway.request_body import BodyReader
from pliant.serve.protocol.grpc import encode_message, has_field, inference_schema, read_plain

_SERVICE: Final = "/inference.GRPCInferenceService/"
_HEALTH: Final = "/grpc.health.v1.Health/Check"
_SERVING, _NOT_SERVING = b"\x08\x01", b"\x08\x02"
_NOT_HERE: Final = (
    *(f"{kind}SharedMemory{verb}" for kind in ("System", "Cuda") for verb in ("Status", "Register", "Unregister")),
    *("TraceSetting", "LogSettings"),
)
_LOAD, _UNLOAD = "RepositoryModelLoad", "RepositoryModelUnload"
_SHOWN: Final = ("authorization", "x-auth-token", "x-user-token")
MAX_READS: Final = 8
"""Messages that are read at once for one caller, each up to the longest that there may be; others wait their turn."""
MAX_STREAMS: Final = 16
"""Streams of one caller."""
GrpcAnswer = Callable[[GrpcContext], Awaitable[bytes | None]]
_log = logging.getLogger(__name__)


class GrpcApi:
    """Answers gRPC: a generic handler.

    Args:
        access: who may ask which endpoints.
        admission: how much is taken in at once.
        inferences: begins requests.
        questions: answers what needs no kernel.
        bodies: ends those whose messages come too slowly.
        repository: loads and unloads models.
        is_ready: requests are taken.
    """

    def __init__(
        self,
        *,
        access: EndpointAccess,
        admission: Admission,
        inferences: GrpcInferences,
        questions: GrpcQuestions,
        bodies: BodyReader,
        repository: ModelRepository,
        is_ready: Callable[[], bool],
    ) -> None:
        self._access = access
        self._admission = admission
        self._inferences = inferences
        self._questions = questions
        self._bodies = bodies
        self._repository = repository
        self._is_ready = is_ready
        self._reads: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._num_streams: dict[str, int] = {}
        self._handlers = self._make_handlers()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return what answers a call; None if there is no such one."""
        return self._handlers.get(str(handler_call_details.method))

    def _make_handlers(self) -> Mapping[str, grpc.RpcMethodHandler]:
        single: dict[str, GrpcAnswer] = {
            _HEALTH: self._health,
            f"{_SERVICE}ServerLive": self._live,
            f"{_SERVICE}ServerReady": self._ready,
            f"{_SERVICE}ModelInfer": self._infer,
            **{_SERVICE + name: partial(self._change, name) for name in (_LOAD, _UNLOAD)},
            **{_SERVICE + name: self._refuse_unknown for name in _NOT_HERE},
            **{path: partial(self._ask, path.removeprefix(_SERVICE)) for path in inference_schema().calls
               if path.removeprefix(_SERVICE) in self._questions},
        }  # fmt: skip
        handlers = {
            path: grpc.stream_unary_rpc_method_handler(partial(self._guard, answer)) for path, answer in single.items()
        }
        stream = grpc.stream_stream_rpc_method_handler(partial(self._guard, self._stream))
        return handlers | {f"{_SERVICE}ModelStreamInfer": stream}

    async def _guard(self, answer: GrpcAnswer, _: object, context: GrpcContext) -> bytes | None:
        """Answer a call, or say why there is no answer."""
        try:
            return await answer(context)
        except ClientGone:
            refused = Refused(503, "nobody waits for this any more")
        except (Refused, PliantError) as error:
            refused = refusal_of(error)
        except Exception:  # noqa: BLE001 (one call must not end the others)
            _log.exception("a call was not answered because of a fault of the gateway")
            refused = Refused(500, "the gateway has a fault of its own, which its log names; please report it")
        if refused.retry_after_s is not None:
            context.set_trailing_metadata(((RETRY_AFTER, str(refused.retry_after_s)),))
        return await context.abort(code_of(refused.status), details_of(refused.message))

    async def _health(self, _: GrpcContext) -> bytes:
        return _SERVING if self._is_ready() else _NOT_SERVING

    async def _live(self, _: GrpcContext) -> bytes:
        return encode_message("ServerLiveResponse", {"live": True})

    async def _ready(self, _: GrpcContext) -> bytes:
        return encode_message("ServerReadyResponse", {"ready": self._is_ready()})

    async def _refuse_unknown(self, context: GrpcContext) -> bytes:
        await self._authenticate(context)
        raise not_here()

    async def _ask(self, call: str, context: GrpcContext) -> bytes:
        rights = await self._authenticate(context)
        return await self._questions.answer(call, await self._read(context, rights), rights)

    async def _change(self, call: str, context: GrpcContext) -> bytes:
        """Load or unload a model."""
        with self._admission.enter() as admitted:
            headers = _headers(context)
            rights = await self._access.identify(headers)
            message = await self._read(context, rights)
            admitted.hold(len(message))
            name = str(read_plain(f"{call}Request", message)["model_name"])
            if call == _LOAD and has_field(f"{call}Request", message, "parameters"):
                refuse_overrides(frozenset({"parameters"}))
            address = unquote(context.peer().partition(":")[2].rpartition(":")[0]).strip("[]")
            change = ModelChange(name=name, is_load=call == _LOAD, address=address, patience_s=context.time_remaining())
            await self._repository.change(change, headers, rights)
            return b""

    async def _infer(self, context: GrpcContext) -> bytes:
        """Pass a request on to a kernel, and the answer back."""
        with self._admission.enter() as admitted:
            rights = await self._authenticate(context)
            message = await self._read(context, rights)
            under_way = self._inferences.begin(message, rights, admitted, context.time_remaining())
            del message
            try:
                answer = await await_answer(under_way.request)
            finally:
                self._inferences.finish(under_way)
            failure = read_failure(answer)
            if failure is not None:
                raise failure
            kernel = answer.kernel.encode("ascii", "replace").decode()
            context.set_trailing_metadata((("pliant-version", str(answer.version)), ("pliant-kernel", kernel)))
            return bytes(answer.body)

    async def _stream(self, context: GrpcContext) -> None:
        rights = await self._authenticate(context)
        if self._num_streams.get(rights.name, 0) >= MAX_STREAMS:
            raise Refused(429, f"{MAX_STREAMS} streams of {rights.name} are open; use them, or end one")
        self._num_streams[rights.name] = self._num_streams.get(rights.name, 0) + 1
        try:
            await InferenceStream(
                self._inferences, self._admission, partial(self._authenticate, context), context
            ).serve()
        finally:
            self._num_streams[rights.name] -= 1
            if not self._num_streams[rights.name]:
                del self._num_streams[rights.name]

    async def _authenticate(self, context: GrpcContext) -> CallerRights:
        return await self._access.authenticate(_headers(context))

    async def _read(self, context: GrpcContext, rights: CallerRights) -> bytes:
        """Return the message of a call that has one.

        Raises:
            Refused: it has none, or it came too slowly.
        """
        turn = self._reads.get(rights.name)
        if turn is None:
            turn = self._reads[rights.name] = asyncio.Semaphore(MAX_READS)
        async with turn:
            with self._bodies.in_time():
                message = await context.read()
        if not isinstance(message, bytes):
            raise Refused(400, "the call has no message, or one that is too long")
        return message


def _headers(context: GrpcContext) -> Headers:
    """Return what of the metadata shows who asks; a key that is there twice counts as it is there last."""
    return {
        key.encode(): value.encode("latin-1", "replace") if isinstance(value, str) else value
        for key, value in context.invocation_metadata() or ()
        if key in _SHOWN
    }
