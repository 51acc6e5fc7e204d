"""The gateway's end of its link: a WebSocket to the server, kept for as long as there is one.

It finds whichever server leads now, proves the gateway's key to it and takes nothing from whom does not prove the same
(`pliant.core.link_proof`). On every connection it says first how things stand: hello, which kernels are ready, which
hang, what was asked and not answered. While no server is there requests go on; only when none was there for very long
does the gateway give up. Knows no requests and no kernels. Belongs to one event loop.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException

from pliant.api.server_address import ServerAddress
from pliant.api.serving_link import (
    GATEWAY_PATH,
    MAX_FRAME_BYTES,
    MAX_FROM_GATEWAY_BYTES,
    decode_to_gateway,
    encode_from_gateway,
)
from pliant.api.trust import websocket_url
from pliant.core.errors import InvalidInput, Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.link_proof import NUM_BYTES, PROOF_HEADER, LinkProof
from pliant.core.serving import (
    Answer,
    Ask,
    CountedLoad,
    CountedLoads,
    Forget,
    FromGateway,
    GatewayHello,
    KernelEntry,
    KernelHung,
    KernelReady,
    Load,
    Retire,
    Serve,
    Switch,
    SwitchOutcome,
    ToGateway,
    TotalsElsewhere,
    TotalsWanted,
    UseElsewhere,
    VersionLoad,
)
from pliant.serve.gateway.elsewhere import Elsewhere
from pliant.serve.gateway.meter import VersionTotals

log = logging.getLogger(__name__)

GATEWAY_NAME: Final = "local"
"""Of the gateway of a server, or of the first of its processes; see `gateway_name`."""
LOAD_S: Final = 0.25
URGED_S: Final = 0.02
ORPHAN_S: Final = 600.0
ANSWER_S: Final = 5.0
_RETRY_FIRST_S: Final = 0.1
_RETRY_MOST_S: Final = 1.0
_OPEN_S: Final = 3.0
"""A server that is stopped accepts connections and says nothing."""
_ALIVE_S: Final = 5.0
"""How often a connection that is open is tried, and how long the answer may take."""
_CLOSE_S: Final = 1.0
_MAX_HUNG: Final = 100
_MAX_READY: Final = 4096
"""Kernels that the gateway remembers what they said of themselves; some may be made up."""
_MAX_WAITING: Final = 2 * _MAX_READY
"""Messages that the server has not taken yet; then those that later ones replace are left out."""
_MAX_LOADS: Final = 500
"""Versions in one report: far less than the server takes in one frame."""
_MAX_COUNTED: Final = 64
"""The same with their counts by size, should every bucket have some."""


def gateway_name(number: int, machine: str = "") -> str:
    """Return what one of several gateways is called.

    Args:
        number: among all of the server; its own machine has the first ones.
        machine: on which it runs; empty: the server's own.

    >>> gateway_name(0), gateway_name(2), gateway_name(4, "gpu3")
    ('local', 'local-2', 'gpu3-4')
    """
    return f"{machine or GATEWAY_NAME}-{number}" if number else GATEWAY_NAME


class Served(Protocol):
    """What the link needs of a gateway; called in its event loop, must be quick."""

    def apply(self, serve: Serve) -> None: ...

    def loads(self) -> tuple[VersionLoad, ...]: ...

    def ready(self) -> tuple[TaskId, ...]: ...

    def totals(self, job_id: JobId) -> VersionTotals | None: ...


class TokenMemory(Protocol):
    """What is remembered of tokens; called in the event loop of the link."""

    def forget(self, name: str) -> None: ...

    def doubt(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """What a gateway says of itself, and how patient it is."""

    key: str = field(repr=False)
    """What opens the link; see `pliant.api.serving_link.gateway_key`."""
    pid: int
    http_url: str
    grpc_address: str = ""
    name: str = GATEWAY_NAME
    """What the server knows it by; each gateway of a server has one of its own."""
    number: int = 0
    """Among all of the server."""
    machine: str = ""
    """On which it runs; empty: on the server's own."""
    kernels: Callable[[], KernelEntry | None] = lambda: None
    """Returns where kernels of other machines connect, if the server is to tell them."""
    orphan_s: float = ORPHAN_S
    """Without a server for so long, it gives up."""
    answer_s: float = ANSWER_S
    """So long it waits for an answer, with or without a server."""


class ServerLink:
    """Keeps the connection; a `TokenOracle`.

    Args:
        address: where the server is.
        clock: seconds that only grow.
        elsewhere: the gateways of other machines; None: there are none.
    """

    def __init__(
        self,
        settings: LinkSettings,
        *,
        address: ServerAddress,
        clock: Callable[[], float],
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._settings = settings
        self._elsewhere = elsewhere
        self._address = address
        self._clock = clock
        self._connected_to = ""
        self._outbox: deque[FromGateway] = deque()
        self._wake = asyncio.Event()
        self._urged = False
        self._retired = False
        self._metadata: OrderedDict[TaskId, KernelReady] = OrderedDict()
        self._hung: OrderedDict[TaskId, KernelHung] = OrderedDict()
        self._numbers = count(1)
        self._questions: dict[int, tuple[Ask | Switch, asyncio.Future[Answer | SwitchOutcome]]] = {}
        self._problem = ""

    @property
    def is_there(self) -> bool:
        """Whether the server is connected."""
        return bool(self._connected_to)

    def urge(self) -> None:
        """Report the load at once: something waits and no kernel is there."""
        self._urged = True
        self._wake.set()

    def renew(self) -> None:
        """Connect anew: what this gateway says of itself first is not what it was."""
        self._connected_to = ""

    def notify(self, message: KernelReady | KernelHung) -> None:
        """Tell the server, now or as soon as it is back; a later server is told, too."""
        if isinstance(message, KernelReady):
            self._metadata.pop(message.task_id, None)
            self._metadata[message.task_id] = message
            if len(self._metadata) > _MAX_READY:
                self._metadata.popitem(last=False)
        else:
            self._hung[message.task_id] = message
            if len(self._hung) > _MAX_HUNG:
                self._hung.popitem(last=False)
        if len(self._outbox) > _MAX_WAITING:  # kernels that come and go all the time must not fill the memory
            self._outbox = deque(one for one in self._outbox if not isinstance(one, KernelReady | KernelHung))
            self._outbox.extend((*self._metadata.values(), *self._hung.values()))
            self._wake.set()
            return
        self._send(message)

    def forget(self, task_id: TaskId) -> None:
        """Keep nothing more of what a kernel said that is gone; a later server is not told."""
        self._metadata.pop(task_id, None)

    async def ask(self, token: str) -> Answer:
        """Return whose a token is.

        Raises:
            Unavailable: no answer came in time.
        """
        answer = await self._await(Ask(number=next(self._numbers), token=token))
        assert isinstance(answer, Answer)
        return answer

    async def switch(self, token: str, endpoint: str, *, start: bool, address: str) -> SwitchOutcome:
        """Have an endpoint started or stopped, and return what became of that; it may be done even if nobody says so.

        Raises:
            Unavailable: no answer came in time.
        """
        number = next(self._numbers)
        asked = Switch(number=number, token=token, endpoint=endpoint, start=start, address=address)
        answer = await self._await(asked)
        assert isinstance(answer, SwitchOutcome)
        return answer

    async def _await(self, question: Ask | Switch) -> Answer | SwitchOutcome:
        answer: asyncio.Future[Answer | SwitchOutcome] = asyncio.get_running_loop().create_future()
        self._questions[question.number] = (question, answer)
        self._send(question)
        try:
            async with asyncio.timeout(self._settings.answer_s):
                return await answer
        except TimeoutError:
            raise Unavailable("the server does not answer") from None
        finally:
            del self._questions[question.number]

    async def run(self, served: Served, tokens: TokenMemory) -> str:
        """Keep the connection until the server ends for good, or none was there for very long; return which, in words.

        Whoever calls it lets the gateway finish what it has.

        Args:
            served: the gateway.
            tokens: hears when what tokens open has changed, or may have.
        """
        delay_s, last_there = _RETRY_FIRST_S, self._clock()
        while True:
            if self._elsewhere is not None:
                self._elsewhere.look()
            was_there = await self._connect_once(served, tokens)
            if self._retired:
                return "the server has ended and wants nobody to serve in its place"
            if was_there:
                delay_s, last_there = _RETRY_FIRST_S, self._clock()
            elif self._clock() - last_there >= self._settings.orphan_s:
                return f"no server was there for {self._settings.orphan_s:g} s"
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, _RETRY_MOST_S)

    async def _connect_once(self, served: Served, tokens: TokenMemory) -> bool:
        """Connect, and stay connected for as long as it goes; return whether the server was there."""
        was_there = False
        try:
            url = self._address.url()
            proof = LinkProof(
                task_id=self._settings.name, challenge=self._address.challenge(), nonce=secrets.token_hex(NUM_BYTES)
            )
            async with connect(
                f"{websocket_url(url)}{GATEWAY_PATH}?gateway={quote(self._settings.name)}",
                additional_headers={"Authorization": proof.authorization(self._settings.key)},
                max_size=MAX_FRAME_BYTES,
                open_timeout=_OPEN_S,
                close_timeout=_CLOSE_S,
                ping_interval=_ALIVE_S,
                ping_timeout=_ALIVE_S,
                proxy=None,
                compression=None,
                ssl=self._address.tls(),
                server_hostname=self._address.server_name(),
            ) as connection:
                self._check_server(connection, proof, url)
                was_there = True
                log.info("connected with the server at %s", url)
                self._problem = ""
                tokens.doubt()
                await self._serve(connection, url, served, tokens)
            self._report("the server has closed the link")
        except InvalidHandshake as error:
            self._report(f"what listens at {url} opens no link: {error}")
        except (OSError, TimeoutError, WebSocketException, InvalidURI, InvalidInput) as error:
            self._report(f"the server is not there: {str(error) or type(error).__name__}")
        except Exception:  # the top of a loop: requests go on, whatever a message of the server has led to
            log.exception("the link to the server has failed; it is opened again")
        finally:
            self._connected_to = ""
            self._outbox.clear()
        return was_there

    def _report(self, problem: str) -> None:
        """Log what is wrong, once and not with every attempt."""
        if problem != self._problem and not self._retired:
            log.warning("%s; it is tried again", problem)
        self._problem = problem

    def _check_server(self, connection: ClientConnection, proof: LinkProof, url: str) -> None:
        """Make sure that it is the server before it is told anything.

        Raises:
            ConnectionError: somebody else listens there.
        """
        given = [] if connection.response is None else connection.response.headers.get_all(PROOF_HEADER)
        if len(given) != 1 or not proof.proves("open", self._settings.key, given[0]):
            connection.transport.abort()  # nothing that it says is waited for
            raise ConnectionError(f"what listens at {url} is not this gateway's server; it is told nothing")

    async def _serve(self, connection: ClientConnection, url: str, served: Served, tokens: TokenMemory) -> None:
        """Say how things stand, and speak and listen until one of both ends."""
        self._outbox.extend(self._standing(served))
        self._connected_to = url
        ways = [
            self._write(connection, served),
            self._read(connection, served, tokens),
            self._watch_address(connection),
        ]
        if self._elsewhere is not None:
            ways.append(self._elsewhere.speak(self._send, lambda: not self._outbox))
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connected_to = ""
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _standing(self, served: Served) -> list[FromGateway]:
        """Return what a server has to know that knows nothing of this gateway."""
        ready = served.ready()
        known = ((task_id, self._metadata.get(task_id)) for task_id in ready)
        self._metadata = OrderedDict((task_id, said) for task_id, said in known if said is not None)
        settings = self._settings
        hello = GatewayHello(
            number=settings.number,
            machine=settings.machine,
            kernels=settings.kernels(),
            pid=settings.pid,
            http_url=settings.http_url,
            grpc_address=settings.grpc_address,
            ready=ready,
        )
        questions = [question for question, _ in self._questions.values()]
        return [hello, *self._metadata.values(), *self._hung.values(), *questions]

    def _send(self, message: FromGateway) -> None:
        """Send it if a server is there; else it is a part of what the next one is told first."""
        if self.is_there:
            self._outbox.append(message)
            self._wake.set()

    async def _write(self, connection: ClientConnection, served: Served) -> None:
        due = self._clock()
        while True:
            self._wake.clear()
            while self._outbox:
                await self._send_one(connection, self._outbox.popleft())
            now = self._clock()
            if now >= (due - LOAD_S + URGED_S if self._urged else due):
                self._urged, due = False, now + LOAD_S
                self._outbox.extend(_reports(served.loads()))
                continue
            wait_s = (due - LOAD_S + URGED_S if self._urged else due) - now
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _send_one(self, connection: ClientConnection, message: FromGateway) -> None:
        """Send a message; what a model says of itself is left out if it says too much."""
        frame = encode_from_gateway(message)
        if len(frame) > MAX_FROM_GATEWAY_BYTES and isinstance(message, KernelReady):
            log.warning("what the model of %s says of itself has %d bytes; it is left out", message.task_id, len(frame))
            frame = encode_from_gateway(KernelReady(task_id=message.task_id))
        if len(frame) > MAX_FROM_GATEWAY_BYTES:
            log.warning("a message of the kind %s has %d bytes; it is not sent", message.kind, len(frame))
            return
        await connection.send(frame)

    async def _watch_address(self, connection: ClientConnection) -> None:
        """Leave a server as soon as another one leads; the old one may be a stopped process, which says nothing."""
        while self._address.url() == self._connected_to:
            await asyncio.sleep(LOAD_S)
        connection.transport.abort()

    async def _read(self, connection: ClientConnection, served: Served, tokens: TokenMemory) -> None:
        async for frame in connection:
            try:
                message = decode_to_gateway(frame)
            except InvalidInput as error:
                self._report(f"a message of the server is ignored: {error}")
                continue
            self._take(message, served, tokens)
            if self._retired:
                return

    def _take(self, message: ToGateway, served: Served, tokens: TokenMemory) -> None:
        if isinstance(message, Serve):
            served.apply(message)
        elif isinstance(message, Answer | SwitchOutcome):
            question = self._questions.get(message.number)
            if question is not None and not question[1].done():
                question[1].set_result(message)
        elif isinstance(message, Forget):
            tokens.forget(message.name)
        elif isinstance(message, UseElsewhere | TotalsWanted | TotalsElsewhere):
            if self._elsewhere is not None:
                self._elsewhere.hear(message, served.totals)
        else:
            assert isinstance(message, Retire)
            self._retired = True


def _reports(loads: tuple[VersionLoad, ...]) -> list[Load] | list[CountedLoads]:
    """Return the load in reports that the server takes; one if there is nothing to say, as a sign of life."""
    counted = tuple(load for load in loads if isinstance(load, CountedLoad))
    if counted:
        assert len(counted) == len(loads), "a gateway is one of several, or it is not"
        starts = range(0, len(counted), _MAX_COUNTED)
        return [CountedLoads(versions=counted[at : at + _MAX_COUNTED]) for at in starts]
    return [Load(versions=loads[at : at + _MAX_LOADS]) for at in range(0, len(loads) or 1, _MAX_LOADS)]
