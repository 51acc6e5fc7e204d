"""The server's ends of the control links: one WebSocket per task, a queue in front of each.

Implements the port `Links`: any thread may send; what is sent to a task that is not connected is dropped, for it will
say hello again. The newest connection of a task replaces the one before. A task learns which of its messages were
stored. A message that it sends a second time is not handed over again. The links do not know what messages mean.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from pliant.api.link import MAX_FRAME_BYTES, decode_from_task, encode, number_of
from pliant.core.errors import InvalidInput, Unauthorized
from pliant.core.job import TaskId
from pliant.core.link import FromTask, Hello, Stored, ToTask
from pliant.core.link_proof import PROOF_HEADER, LinkAnswer
from pliant.server.middleware.problems import problem_response

log = logging.getLogger(__name__)

_MAX_BACKLOG = 1000
_REPLACED, _REFUSED, _NORMAL = 4000, 1008, 1000
_LISTENING_S = 0.1


class TaskListener(Protocol):
    """Takes what tasks say: the control room."""

    def answer_task(self, task_id: str, authorization: str) -> LinkAnswer: ...

    def receive(
        self, task_id: TaskId, message: FromTask, number: int = 0, stored: Callable[[], None] | None = None
    ) -> None: ...

    def disconnect(self, task_id: TaskId, goodbye: bool = False) -> None: ...

    def note_listening(self) -> None: ...


@dataclass(slots=True)
class _Received:
    """The newest messages of a task, by number."""

    newest: int = 0
    """The number of the newest that was handed over."""
    stored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Close:
    """The last item of a queue."""

    code: int
    reason: str


class _Connection:
    """One accepted WebSocket and what waits to be sent on it."""

    def __init__(self, websocket: WebSocket) -> None:
        self.websocket = websocket
        self._queue: asyncio.Queue[str | _Close] = asyncio.Queue(_MAX_BACKLOG)

    def put(self, item: str | _Close) -> None:
        """Queue a frame, or the end. A task that does not read what it is sent is cut off."""
        try:
            self._queue.put_nowait(item)
        except asyncio.QueueFull:
            while not self._queue.empty():
                self._queue.get_nowait()
            self._queue.put_nowait(_Close(code=_REFUSED, reason="it does not read what it is sent"))

    async def write(self) -> None:
        """Send what is queued until the end is reached."""
        try:
            while isinstance(item := await self._queue.get(), str):
                await self.websocket.send_text(item)
            await _shut(self.websocket, item.code, item.reason)
        except WebSocketDisconnect:
            return


class LinkHub:
    """All control links of this server."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: dict[TaskId, _Connection] = {}
        self._received: dict[TaskId, _Received] = {}

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop on which the WebSockets live; what is sent before is dropped."""
        self._loop = loop

    async def listen(self, listener: TaskListener) -> None:
        """Tell the listener for ever, a few times a second, that the links are being read.

        While this loop stands still it tells nothing, and the messages of that time are still unread.
        """
        while True:
            listener.note_listening()
            await asyncio.sleep(_LISTENING_S)

    def send(self, task_id: TaskId, message: ToTask) -> None:
        """Queue a message from any thread; dropped if the task is not connected."""
        self._on_loop(lambda: self._enqueue(task_id, encode(message)))

    def close(self, task_id: TaskId) -> None:
        """Close the link of a task that has ended, if there is one; from any thread."""
        self._on_loop(lambda: self._end(task_id))

    def close_all(self) -> None:
        """Close every link; from any thread."""
        self._on_loop(self._close_all)

    def _on_loop(self, act: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    def _enqueue(self, task_id: TaskId, item: str | _Close) -> None:
        connection = self._connections.get(task_id)
        if connection is not None:
            connection.put(item)

    def _close(self, task_id: TaskId, code: int, reason: str) -> None:
        self._enqueue(task_id, _Close(code=code, reason=reason))

    def _end(self, task_id: TaskId) -> None:
        self._close(task_id, _NORMAL, "the task has ended")
        self._received.pop(task_id, None)

    def _store(self, task_id: TaskId, number: int) -> None:
        """Tell a task that its messages up to this number are stored."""
        if (received := self._received.get(task_id)) is not None:
            received.stored = max(received.stored, number)
            self._enqueue(task_id, encode(Stored(number=received.stored)))

    def _close_all(self) -> None:
        for task_id in list(self._connections):
            self._close(task_id, 1001, "the server stops")

    async def serve(self, websocket: WebSocket, listener: TaskListener) -> None:
        """Serve one WebSocket until it is closed."""
        task_id = TaskId(websocket.query_params.get("task", ""))
        answer = listener.answer_task(task_id, websocket.headers.get("authorization", ""))
        if not answer.is_open:
            error = Unauthorized(f"this does not open the link of {task_id!r}; its task proves the token of its job")
            refusal = problem_response(error)
            refusal.headers[PROOF_HEADER] = answer.proof
            await websocket.send_denial_response(refusal)
            return
        await websocket.accept(headers=[(PROOF_HEADER.lower().encode(), answer.proof.encode())])
        connection = _Connection(websocket)
        self._close(task_id, _REPLACED, "a newer connection of this task took its place")
        self._connections[task_id] = connection
        writer = asyncio.create_task(connection.write())
        goodbye = False
        try:
            goodbye = await self._read(connection, task_id, listener)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            if self._connections.get(task_id) is connection:
                del self._connections[task_id]
                listener.disconnect(task_id, goodbye)

    async def _read(self, connection: _Connection, task_id: TaskId, listener: TaskListener) -> bool:
        """Hand over the messages of a task until the connection ends; return whether the task closed it."""
        greeted = False
        try:
            while True:
                frame = await connection.websocket.receive_text()
                if self._connections.get(task_id) is not connection:
                    return False
                message, number = _decode(frame, task_id, greeted)
                greeted = True
                self._hand_over(task_id, message, number, listener)
        except WebSocketDisconnect as closed:
            return closed.code == _NORMAL
        except (InvalidInput, KeyError) as error:
            log.warning("the link of %s is closed: %s", task_id, error)
            await _shut(connection.websocket, _REFUSED, f"refused: {error}")
            return False

    def _hand_over(self, task_id: TaskId, message: FromTask, number: int, listener: TaskListener) -> None:
        if number == 0:
            listener.receive(task_id, message)
            return
        received = self._received.setdefault(task_id, _Received())
        if number > received.newest:
            received.newest = number
            listener.receive(task_id, message, number, lambda: self._on_loop(lambda: self._store(task_id, number)))
        elif number <= received.stored:
            self._enqueue(task_id, encode(Stored(number=received.stored)))


def _decode(frame: str, task_id: TaskId, greeted: bool) -> tuple[FromTask, int]:
    if len(frame) > MAX_FRAME_BYTES:
        raise InvalidInput.at("", f"a frame of {len(frame)} bytes; at most {MAX_FRAME_BYTES} are taken")
    message = decode_from_task(frame)
    if not greeted and not isinstance(message, Hello):
        raise InvalidInput.at("kind", f"the first message is {message.kind!r}; say hello first")
    if isinstance(message, Hello) and message.task_id != task_id:
        raise InvalidInput.at("task_id", f"{message.task_id!r} speaks on the link of {task_id!r}")
    return message, number_of(frame)


async def _shut(websocket: WebSocket, code: int, reason: str) -> None:
    if websocket.application_state is WebSocketState.CONNECTED:
        await websocket.close(code, reason.encode()[:120].decode(errors="ignore"))
