"""The server's end of a gateway's link, played in a thread: it keeps to the protocol, and writes down what it hears."""

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from pliant.api.serving_link import GATEWAY_PATH, decode_from_gateway, encode_to_gateway
from pliant.core.link_proof import NUM_BYTES, PROOF_HEADER, LinkProof, read_authorization
from pliant.core.serving import Answer, Ask, FromGateway, Load, ToGateway
from pliant.files.folder import write_whole

KEY = "the key of a gateway"
PATIENCE_S = 30.0


class PlayedServer:
    """A server at a free port, which `file` names if one is given.

    Args:
        file: the `server.json` that it writes.
        answers: whose tokens are; of others it says nothing at all, of those with None that they are worthless.
        key: what it proves; another one makes it a stranger.
        greeting: what it says to whoever has connected.
    """

    def __init__(
        self,
        file: Path | None = None,
        *,
        answers: Mapping[str, Answer | None] | None = None,
        key: str = KEY,
        greeting: tuple[ToGateway, ...] = (),
    ) -> None:
        self.said: list[FromGateway] = []
        self.authorizations: list[str] = []
        self.names: list[str] = []
        """That they prove."""
        self.num_connections = 0
        self.asked: list[str] = []
        self.answers = dict(answers or {})
        self._file = file
        self._key = key
        self._greeting = greeting
        self._challenge = secrets.token_hex(NUM_BYTES)
        self._proofs: dict[ServerConnection, str] = {}
        self._open: set[ServerConnection] = set()
        self._loop = asyncio.new_event_loop()
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="played-server", daemon=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}"

    @property
    def is_connected(self) -> bool:
        return bool(self._open)

    def start(self) -> "PlayedServer":
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE_S)
        if self._file is not None:
            write_whole(self._file, json.dumps({"url": self.url, "challenge": self._challenge}).encode())
        return self

    def close(self, *, abruptly: bool = False) -> None:
        """End, unless it has ended; abruptly as one that is killed."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(abruptly), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def send(self, message: ToGateway) -> None:
        """Say something to all who are connected."""
        frame = encode_to_gateway(message)
        for connection in tuple(self._open):
            asyncio.run_coroutine_threadsafe(connection.send(frame), self._loop).result(PATIENCE_S)

    def send_text(self, text: str) -> None:
        """Say something that is no message."""
        for connection in tuple(self._open):
            asyncio.run_coroutine_threadsafe(connection.send(text), self._loop).result(PATIENCE_S)

    def of(self, kind: type) -> list[Any]:
        """Return what was said of a kind."""
        return [message for message in tuple(self.said) if isinstance(message, kind)]

    def said_first(self, num: int) -> Sequence[FromGateway]:
        """Return the first messages of the newest connection, loads left out."""
        return [message for message in tuple(self.said) if not isinstance(message, Load)][:num]

    async def _listen(self) -> Server:
        return await serve(
            self._take,
            "127.0.0.1",
            0,
            process_request=self._check,
            process_response=self._prove,
            compression=None,
        )

    async def _end(self, abruptly: bool) -> None:
        assert self._server is not None
        if abruptly:
            for connection in tuple(self._open):
                connection.transport.abort()
        self._server.close()
        await self._server.wait_closed()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        header = request.headers.get("Authorization", "")
        self.authorizations.append(header)
        nonce, proof = read_authorization(header)
        path, _, name = request.path.partition("?gateway=")
        self.names.append(name)
        opening = LinkProof(task_id=name, challenge=self._challenge, nonce=nonce)
        is_right = opening.proves("task", self._key, proof) and path == GATEWAY_PATH
        if self._key == KEY and not is_right:
            return connection.respond(401, "no")
        self._proofs[connection] = opening.of("open", self._key)
        self.names.append(name)
        return None

    def _prove(self, connection: ServerConnection, request: Request, response: Response) -> Response:
        if connection in self._proofs:
            response.headers[PROOF_HEADER] = self._proofs[connection]
        return response

    async def _take(self, connection: ServerConnection) -> None:
        self.num_connections += 1
        self._open.add(connection)
        try:
            for first in self._greeting:
                await connection.send(encode_to_gateway(first))
            async for frame in connection:
                message = decode_from_gateway(frame)
                self.said.append(message)
                if isinstance(message, Ask):
                    await self._answer(connection, message)
        except ConnectionClosed:
            return
        finally:
            self._open.discard(connection)

    async def _answer(self, connection: ServerConnection, ask: Ask) -> None:
        self.asked.append(ask.token)
        if ask.token in self.answers:
            answer = self.answers[ask.token]
            said = Answer(number=ask.number) if answer is None else _numbered(answer, ask.number)
            await connection.send(encode_to_gateway(said))


def _numbered(answer: Answer, number: int) -> Answer:
    return Answer(
        number=number,
        name=answer.name,
        sees_all=answer.sees_all,
        may_infer=answer.may_infer,
        valid_s=answer.valid_s,
    )


@contextmanager
def played(file: Path | None = None, **options: Any) -> Iterator[PlayedServer]:
    """Play a server until the end of the block."""
    server = PlayedServer(file, **options).start()
    try:
        yield server
    finally:
        server.close(abruptly=True)


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Return what the condition returns as soon as that is true; fail after the deadline."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.005)
    return found
