"""`ModelStreamInfer`: several requests in flight on one call, and the answers in the order of the requests.

One task reads and begins requests, another one answers them; between them is a queue, so that a client which does not
read its answers is not read from, either. Requests to a model that answers in parts (`decoupled`) are answered by a
task each, so that parts are written as they come: such answers are in no order, and their ids say whose they are. What
goes wrong with a request is an answer, and does not end the stream.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from pliant.core.errors import PliantError
from pliant.serve.gateway.admission import Admission
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.client_pace import in_time
from pliant.serve.gateway.grpc.context import GrpcContext
from pliant.serve.gateway.grpc.inferring import GrpcInferences
from pliant.serve.gateway.grpc.status import refusal_of
from pliant.serve.gateway.inference import KernelAnswer
from pliant.serve.gateway.inferences import UnderWay
from pliant.serve.gateway.kernel_answer import read_failure
from pliant.serve.gateway.refused import ClientGone, Refused
from pliant.serve.protocol.grpc import encode_message, peek, says_parameter

MAX_IN_STREAM: Final = 32
"""Requests of one stream that are under way at once."""
_END: Final = {
    is_last: encode_message("ModelInferResponse", {"parameters": {"triton_final_response": {"bool_param": is_last}}})
    for is_last in (False, True)
}


@dataclass(slots=True)
class _Item:
    """A request, until it is answered."""

    held: ExitStack
    """What it holds: it is let go when the answer is written."""
    id: str = ""
    model: str = ""
    is_decoupled: bool = False
    wants_end: bool = False
    """The client wants to be told which answer is the last."""
    under_way: UnderWay | None = None
    refused: Refused | None = None


class InferenceStream:
    """One stream.

    Args:
        inferences: begins requests.
        admission: how much is taken in at once.
        authenticate: returns who asks; called for every request, since a stream may outlive its token.
        call: reads and writes messages.
    """

    def __init__(
        self,
        inferences: GrpcInferences,
        admission: Admission,
        authenticate: Callable[[], Awaitable[CallerRights]],
        call: GrpcContext,
    ) -> None:
        self._inferences = inferences
        self._admission = admission
        self._authenticate = authenticate
        self._call = call
        self._items: asyncio.Queue[_Item | None] = asyncio.Queue()
        self._free = asyncio.Semaphore(MAX_IN_STREAM)
        self._beside: set[asyncio.Task[None]] = set()
        """Those that answer requests in parts."""
        self._writing = asyncio.Lock()

    async def serve(self) -> None:
        """Answer requests until the client sends no more, and all are answered."""
        reading = asyncio.create_task(self._read())
        try:
            while (item := await self._items.get()) is not None:
                await self._finish(item)
            await asyncio.gather(reading, *self._beside)
        finally:
            for task in (reading, *self._beside):
                task.cancel()
            await asyncio.gather(reading, *self._beside, return_exceptions=True)
            for item in self._left():
                item.held.close()

    async def _finish(self, item: _Item) -> None:
        try:
            await self._answer(item)
        finally:
            item.held.close()
            self._free.release()

    async def _read(self) -> None:
        try:
            while True:
                await self._free.acquire()
                message = await self._call.read()
                if not isinstance(message, bytes):  # the client sends no more
                    return
                item = await self._begin(message)
                if item.is_decoupled:
                    self._answer_beside(item)
                else:
                    self._items.put_nowait(item)
        finally:
            self._items.put_nowait(None)

    def _answer_beside(self, item: _Item) -> None:
        """Answer a request beside the others; if that fails because of the client, the whole stream ends."""
        task = asyncio.create_task(self._finish(item))
        self._beside.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._beside.discard(task)
        else:
            self._items.put_nowait(None)  # `serve` finds the error

    def _left(self) -> Iterator[_Item]:
        while not self._items.empty():
            if (item := self._items.get_nowait()) is not None:
                yield item

    async def _begin(self, message: bytes) -> _Item:
        item = _Item(ExitStack())
        try:
            admitted = item.held.enter_context(self._admission.enter())
            rights = await self._authenticate()
            patience_s = self._call.time_remaining()
            item.under_way = self._inferences.begin(message, rights, admitted, patience_s, takes_parts=True)
            item.held.callback(self._inferences.finish, item.under_way)
            item.is_decoupled = item.under_way.service.metadata.get("decoupled") is True
            item.model, _, item.id = peek(message)
            item.wants_end = says_parameter(message, "triton_enable_empty_final_response")
        except (Refused, PliantError) as error:
            item.refused = refusal_of(error)
        except BaseException:
            item.held.close()
            raise
        return item

    async def _answer(self, item: _Item) -> None:
        if item.under_way is None:
            assert item.refused is not None
            await self._send(_error(item.refused.message, item.id))
            return
        request = item.under_way.request
        while (part := await request.next()) is not None:
            await self._write(part, item, is_last=False)
        match request.outcome:
            case KernelAnswer() as answer:
                if len(answer.body) or item.wants_end or not (request.has_begun or item.is_decoupled):
                    await self._write(answer, item, is_last=True)
            case Refused() as refused:
                await self._send(_error(refused.message, item.id))
            case ClientGone():
                pass

    async def _write(self, answer: KernelAnswer, item: _Item, *, is_last: bool) -> None:
        failure = read_failure(answer)
        if failure is not None:
            await self._send(_error(failure.message, item.id))
            return
        body = bytes(answer.body)
        if item.wants_end:  # messages one after the other are one message with the fields of both
            empty = {"model_name": item.model, "model_version": str(answer.version), "id": item.id}
            body = (body or encode_message("ModelInferResponse", empty)) + _END[is_last]
        await self._send(encode_message("ModelStreamInferResponse", {"infer_response": body}))

    async def _send(self, message: bytes) -> None:
        async with self._writing:  # grpc takes one message at a time
            await in_time(self._call.write(message))


def _error(message: str, request_id: str) -> bytes:
    """Return an answer that says what went wrong, and with which request."""
    text = message.encode(errors="replace").decode()
    return encode_message("ModelStreamInferResponse", {"error_message": text, "infer_response": {"id": request_id}})
