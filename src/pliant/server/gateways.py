"""The server's ends of the links of gateways: who serves endpoints is told what to serve, and says how that goes.

Any thread may send. What is to be served is kept, so that a gateway that connects learns it at once; only the newest
counts. The newest connection of a gateway replaces the one before. What gateways say is handed over one after the
other, in a thread, since whoever takes it may have to wait for a decision; questions about tokens do not wait for that.
Knows no endpoint.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from pliant.api.serving_link import MAX_FROM_GATEWAY_BYTES, decode_from_gateway, encode_to_gateway
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput, PliantError, Unauthorized
from pliant.core.link_proof import PROOF_HEADER, LinkAnswer, LinkProof, read_authorization
from pliant.core.ports import Clock
from pliant.core.serving import (
    Answer,
    Ask,
    AskTotals,
    CountedLoads,
    Forget,
    FromGateway,
    GatewayHello,
    KernelHung,
    KernelReady,
    Load,
    Retire,
    Serve,
    SharedUse,
    Switch,
    SwitchOutcome,
    ToGateway,
    TotalsSaid,
    UseElsewhere,
)
from pliant.people.authenticator import Authenticator
from pliant.serve.protocol.pem import only_certificate
from pliant.server.gateway_relay import GatewayRelay
from pliant.server.middleware.problems import problem_response

log = logging.getLogger(__name__)

VALID_S: Final = 30.0
"""So long a gateway takes for true whose a token is; who was disabled is refused after that at the latest."""
SILENT_S: Final = 6.0
"""A gateway of another machine of which nothing is heard for so long may be on one that is lost; it says something four
times a second. One of the server's own machine that says nothing is a process that stands still, and stays."""
_MAX_QUESTIONS: Final = 1024
"""Under way at once, of one gateway; it asks fewer."""
_MAX_WAITING: Final = 1000
"""Messages that are not taken yet; then no more are read."""
_NUM_THREADS: Final = 4
_REPLACED, _REFUSED, _GOING_AWAY = 4000, 1008, 1001


class ServingListener(Protocol):
    """Takes what gateways say, with the name of who says it; called in a thread, one call after the other."""

    def gateway_ready(self, name: str, hello: GatewayHello) -> None: ...

    def kernel_ready(self, name: str, message: KernelReady) -> None: ...

    def kernel_hung(self, name: str, message: KernelHung) -> None: ...

    def take_load(self, name: str, message: Load) -> None: ...

    def gateway_gone(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Close:
    """The last item that is sent."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGateway:
    """A gateway that this server may have."""

    number: int
    """Among all of them."""
    machine: str = ""
    """On which it runs; empty: the server's own."""
    key: str = field(repr=False)
    """What it and the server prove to each other; see `pliant.api.serving_link.gateway_key`."""


class _Connection:
    """One accepted WebSocket and what waits to be sent on it; what `more` returns is sent last."""

    def __init__(self, websocket: WebSocket, known: KnownGateway, more: Callable[[], UseElsewhere | None]) -> None:
        self.websocket = websocket
        self.known = known
        self._more = more
        self.is_greeted = False
        self._serve: str | None = None
        self._items: deque[str | _Close] = deque()
        self._changed = asyncio.Event()

    def serve(self, frame: str) -> None:
        """Send what is to be served; one that was not sent yet is replaced."""
        self._serve = frame
        self._changed.set()

    def put(self, item: str | _Close) -> None:
        """Queue a frame, or the end."""
        self._items.append(item)
        self._changed.set()

    def wake(self) -> None:
        """Send what `more` returns, until it is None."""
        self._changed.set()

    def _next(self) -> str | _Close | None:
        frame, self._serve = self._serve, None
        if frame is not None:
            return frame
        if self._items:
            return self._items.popleft()
        more = self._more()
        return None if more is None else encode_to_gateway(more)

    async def write(self) -> None:
        """Send what is queued until the end is reached."""
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                while (item := self._next()) is not None:
                    if isinstance(item, _Close):
                        await _shut(self.websocket, item.code, item.reason)
                        return
                    await self.websocket.send_text(item)
        except (WebSocketDisconnect, RuntimeError):  # it is gone
            return


class GatewayHub:
    """All links of gateways of this server.

    Args:
        own: those of the server's own machine, by the names that they connect with.
        challenge: of this server; see `pliant.core.link_proof`.
        clock: says when tokens end.
        find_other: returns the one of another machine that connects with a name; None if there is none now. It may
            wait, and raise `PliantError` if it waits in vain.
    """

    def __init__(
        self,
        own: Mapping[str, KnownGateway],
        challenge: str,
        clock: Clock,
        find_other: Callable[[str], KnownGateway | None] = lambda _name: None,
    ) -> None:
        self._own = own
        self._find_other = find_other
        self._challenge = challenge
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: dict[str, _Connection] = {}
        self._relay = GatewayRelay()
        self._serve: str | None = None
        self._is_retired = False
        self._num_changes = 0
        """Of what tokens open."""
        self._said: asyncio.Queue[tuple[str, FromGateway | None]] = asyncio.Queue(_MAX_WAITING)
        self._threads = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="pliant-gateways")

    def __len__(self) -> int:
        return len(self._connections)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop on which the WebSockets live."""
        self._loop = loop

    def send_serve(self, serve: Serve) -> None:
        """Tell gateways what to serve, those that connect later, too; from any thread."""
        self._serve = encode_to_gateway(serve)
        self._on_loop(self._serve_all)

    def forget(self, user: str) -> None:
        """Tell gateways that what a user's tokens open has changed; from any thread, once it is written."""
        self._on_loop(lambda: self._forget(encode_to_gateway(Forget(name=user))))

    def _forget(self, frame: str) -> None:
        self._num_changes += 1
        self._put_all(frame)

    def retire(self) -> None:
        """Tell gateways to finish and to end, those that connect later, too; from any thread."""
        self._is_retired = True
        self._on_loop(lambda: self._put_all(_RETIRE))

    def drop(self, machine: str) -> None:
        """Close the links of the gateways of a machine, which was removed from the pool; from any thread."""
        gone = _Close(code=_REFUSED, reason=f"{machine} was removed from the pool")
        self._on_loop(lambda: self._put_all(gone, machine))

    def close_all(self) -> None:
        """Close every link, since the server stops; from any thread."""
        self._on_loop(lambda: self._put_all(_Close(code=_GOING_AWAY, reason="the server stops")))

    def _serve_all(self) -> None:
        for connection in self._connections.values():
            if self._serve is not None:
                connection.serve(self._serve)

    def _put_all(self, item: str | _Close, machine: str | None = None) -> None:
        """Send something to the gateways of a machine; None: to all."""
        for connection in self._connections.values():
            if machine is None or connection.known.machine == machine:
                connection.put(item)

    def _on_loop(self, act: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    async def listen(self, listener: ServingListener | None) -> None:
        """Hand over for ever what gateways say; without a listener it is dropped."""
        loop = asyncio.get_running_loop()
        while True:
            name, message = await self._said.get()
            if listener is None or (message is None and self._is_back(name)):
                continue
            try:
                await loop.run_in_executor(self._threads, partial(_hand_over, listener, name, message))
            except Exception:  # the top of a loop: the next message may be understood
                log.exception("a message of the gateway %s could not be taken: %s", name, _kind_of(message))

    def _is_back(self, name: str) -> bool:
        """Tell whether a gateway that was gone is there again; its hello may have come before the news of its end."""
        connection = self._connections.get(name)
        return connection is not None and connection.is_greeted

    async def serve(
        self,
        websocket: WebSocket,
        authenticator: Authenticator,
        switch: Callable[[Switch], Awaitable[SwitchOutcome]],
    ) -> None:
        """Serve one WebSocket until it is closed.

        Args:
            websocket: of a gateway.
            authenticator: knows whose tokens are.
            switch: starts and stops endpoints.
        """
        name = websocket.query_params.get("gateway", "")
        known = await self._find(name)
        answer = self._answer(name, known, websocket.headers.get("authorization", ""))
        if known is None or not answer.is_open:
            refusal = problem_response(Unauthorized(f"this does not open the link of the gateway {name!r:.80}"))
            refusal.headers[PROOF_HEADER] = answer.proof
            await websocket.send_denial_response(refusal)
            return
        await websocket.accept(headers=[(PROOF_HEADER.lower().encode(), answer.proof.encode())])
        connection = _Connection(websocket, known, lambda: self._next_use(connection, name))
        if (before := self._connections.get(name)) is not None:
            before.put(_Close(code=_REPLACED, reason="a newer connection of this gateway took its place"))
        self._connections[name] = connection
        writer = asyncio.create_task(connection.write())
        try:
            await self._read(connection, name, authenticator, switch)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            if self._connections.get(name) is connection:
                del self._connections[name]
                self._relay.leave(name)
                if connection.is_greeted:
                    await self._said.put((name, None))

    async def _find(self, name: str) -> KnownGateway | None:
        """Return the gateway that connects with a name; None if there is none now."""
        if name in self._own:
            return self._own[name]
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._find_other, name)
        except PliantError as error:  # the database does not answer; the gateway comes again
            log.warning("whose gateway %s is cannot be found out: %s", name, error)
            return None

    def _answer(self, name: str, known: KnownGateway | None, authorization: str) -> LinkAnswer:
        nonce, proof = read_authorization(authorization)
        opening = LinkProof(task_id=name, challenge=self._challenge, nonce=nonce)
        key = secrets.token_hex() if known is None else known.key  # nobody has the one of a gateway that there is not
        is_open = opening.proves("task", key, proof)
        return LinkAnswer(is_open=is_open, proof=opening.of("open" if is_open else "refused", key))

    async def _read(
        self,
        connection: _Connection,
        name: str,
        authenticator: Authenticator,
        switch: Callable[[Switch], Awaitable[SwitchOutcome]],
    ) -> None:
        """Take what a gateway says until the connection ends."""
        questions: set[asyncio.Task[None]] = set()
        try:
            message = await _next_of(connection)
            if not isinstance(message, GatewayHello):
                raise InvalidInput.at("kind", f"the first message is {message.kind!r}; say hello first")
            self._greet(connection, name, message)
            while self._connections.get(name) is connection:
                if (answering := self._answering(connection, name, message, authenticator, switch)) is not None:
                    _begin(questions, answering)
                elif not self._pass_on(name, message):
                    await self._said.put((name, message))
                message = await _next_of(connection)
        except WebSocketDisconnect:
            return
        except TimeoutError:
            log.warning("nothing was heard of the gateway %s for %g s: it is no address for people", name, SILENT_S)
        except (InvalidInput, KeyError) as error:
            log.warning("the link of the gateway %s is closed: %s", name, error)
            await _shut(connection.websocket, _REFUSED, f"refused: {error}")
        finally:
            for question in questions:
                question.cancel()

    def _greet(self, connection: _Connection, name: str, hello: GatewayHello) -> None:
        """Tell a gateway that has just come what the others know."""
        connection.is_greeted = True
        if self._connections.get(name) is connection:
            self._relay.join(name, hello, connection.wake)
        if self._serve is not None:
            connection.serve(self._serve)
        if self._is_retired:
            connection.put(_RETIRE)

    def _answering(
        self,
        connection: _Connection,
        name: str,
        message: FromGateway,
        authenticator: Authenticator,
        switch: Callable[[Switch], Awaitable[SwitchOutcome]],
    ) -> Coroutine[Any, Any, None] | None:
        """Return what answers a question; None if it is none."""
        match message:
            case Ask():
                return self._answer_question(connection, message, authenticator)
            case Switch():
                return _answer_switch(connection, message, switch)
            case AskTotals():
                return self._answer_totals(connection, name, message)
        return None

    def _pass_on(self, name: str, message: FromGateway) -> bool:
        """Pass a message on to other gateways; False if it is not for them."""
        if isinstance(message, SharedUse):
            self._relay.take_use(name, message)
        elif isinstance(message, TotalsSaid):
            self._relay.take_totals(name, message)
        return isinstance(message, SharedUse | TotalsSaid)

    def _next_use(self, connection: _Connection, name: str) -> UseElsewhere | None:
        return self._relay.take_next(name) if self._connections.get(name) is connection else None

    async def _answer_totals(self, connection: _Connection, name: str, asked: AskTotals) -> None:
        """Find out what gateways of other machines have counted."""
        connection.put(encode_to_gateway(await self._relay.ask(name, asked, self._put)))

    def _put(self, name: str, message: ToGateway) -> None:
        if (connection := self._connections.get(name)) is not None:
            connection.put(encode_to_gateway(message))

    async def _answer_question(self, connection: _Connection, ask: Ask, authenticator: Authenticator) -> None:
        """Find out whose a token is."""
        look = partial(self._look_up, ask, authenticator)
        num_changes = -1
        try:
            while num_changes != self._num_changes:  # what was found may be from before, and the gateway would keep it
                num_changes = self._num_changes
                answer = await asyncio.get_running_loop().run_in_executor(self._threads, look)
        except PliantError as error:  # the database does not answer; the gateway asks again
            log.warning("whose a token is cannot be found out: %s", error)
            return
        connection.put(encode_to_gateway(answer))

    def _look_up(self, ask: Ask, authenticator: Authenticator) -> Answer:
        try:
            found = authenticator.authenticate_token(ask.token)
        except Unauthorized:
            return Answer(number=ask.number)
        left_s = VALID_S if found.expires_at is None else found.expires_at - self._clock.now()
        return Answer(
            number=ask.number,
            name=found.principal.name,
            sees_all=found.principal.sees_all,
            may_infer=found.principal.may(Permission.INFER),
            endpoints=None if found.principal.endpoints is None else tuple(sorted(found.principal.endpoints)),
            limits=found.limits,
            valid_s=max(0.0, min(VALID_S, left_s)),
        )


_RETIRE: Final = encode_to_gateway(Retire())


def _begin(questions: set[asyncio.Task[None]], answering: Coroutine[Any, Any, None]) -> None:
    """Answer a question beside what else the gateway says.

    Raises:
        InvalidInput: it asks too much at once.
    """
    if len(questions) >= _MAX_QUESTIONS:
        answering.close()
        raise InvalidInput.at("kind", f"{_MAX_QUESTIONS} questions are under way; wait for answers")
    question = asyncio.create_task(answering)
    questions.add(question)
    question.add_done_callback(questions.discard)


async def _answer_switch(
    connection: _Connection, asked: Switch, switch: Callable[[Switch], Awaitable[SwitchOutcome]]
) -> None:
    connection.put(encode_to_gateway(await switch(asked)))


async def _next_of(connection: _Connection) -> FromGateway:
    """Return what a gateway says next; number and machine are those that go with its key, whatever it says of itself.

    Raises:
        TimeoutError: it is on another machine, and says nothing.
        InvalidInput: that is no message.
        WebSocketDisconnect: it is gone.
    """
    known = connection.known
    async with asyncio.timeout(SILENT_S if known.machine else None):
        message = _decode(await connection.websocket.receive_text())
    if not isinstance(message, GatewayHello):
        return message
    _require_certificate(message)
    return replace(message, number=known.number, machine=known.machine)


def _require_certificate(hello: GatewayHello) -> None:
    """Raise InvalidInput if people would be told to trust what is no certificate."""
    if hello.kernels is None or not hello.kernels.certificate:
        return
    try:
        only_certificate(hello.kernels.certificate)
    except ValueError as error:
        raise InvalidInput.at("kernels", str(error)) from error


def _decode(frame: str) -> FromGateway:
    if len(frame) > MAX_FROM_GATEWAY_BYTES:
        raise InvalidInput.at("", f"a frame of {len(frame)} bytes; at most {MAX_FROM_GATEWAY_BYTES} are taken")
    return decode_from_gateway(frame)


def _hand_over(listener: ServingListener, name: str, message: FromGateway | None) -> None:
    """Hand over a message of a gateway; None stands for its end."""
    match message:
        case None:
            listener.gateway_gone(name)
        case GatewayHello():
            listener.gateway_ready(name, message)
        case KernelReady():
            listener.kernel_ready(name, message)
        case KernelHung():
            listener.kernel_hung(name, message)
        case Load():
            listener.take_load(name, message)
        case CountedLoads():
            listener.take_load(name, Load(versions=message.versions))
        case Ask() | Switch() | AskTotals() | SharedUse() | TotalsSaid():
            raise AssertionError("the link itself answers questions and passes on what is for other gateways")


def _kind_of(message: FromGateway | None) -> str:
    return "its end" if message is None else message.kind


async def _shut(websocket: WebSocket, code: int, reason: str) -> None:
    if websocket.application_state is WebSocketState.CONNECTED:
        await websocket.close(code, reason.encode()[:120].decode(errors="ignore"))
