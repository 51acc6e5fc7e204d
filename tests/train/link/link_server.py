"""A real WebSocket server that stands where Pliant's server stands, and remembers what every connection said."""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from pliant.api.link import decode_from_task, encode, number_of
from pliant.core.link import FromTask, Stored, ToTask
from pliant.core.link_proof import PROOF_HEADER, LinkProof, read_authorization

TOKEN = "secret"


class LinkServer:
    """Listens on loopback from its construction on; `port` 0 takes a free one.

    Says of every message that it is stored, `slow_s` seconds after it was heard, unless it is `forgetful`. Proves that
    it holds the token, unless that is another one.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        status: HTTPStatus | None = None,
        forgetful: bool = False,
        slow_s: float = 0.0,
        token: str = TOKEN,
        challenge: str = "",
    ) -> None:
        self.heard: list[list[FromTask]] = []
        """What was said, one list a connection."""
        self.requests: list[Request] = []
        self._status = status
        self._token, self._challenge = token, challenge
        self.task_was_proven: list[bool] = []
        self._forgetful = forgetful
        self._nonces: set[str] = set()
        self._slow_s = slow_s
        self._connections: list[ServerConnection] = []
        self._changed = threading.Condition()
        self._server: Server = serve(
            self._handle,
            "127.0.0.1",
            port,
            process_request=self._admit,
            process_response=self._prove,
            compression=None,
            close_timeout=2,
        )
        self.port: int = self._server.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Be away: stop to listen, and then close every connection, so that nobody comes back in between."""
        self._server.shutdown()
        self._thread.join(5)

    def say(self, message: ToTask) -> None:
        """Send to the newest connection."""
        self._connections[-1].send(encode(message))

    def say_raw(self, frame: str) -> None:
        self._connections[-1].send(frame)

    def wait(self, condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
        """Wait until something holds of what was heard."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not condition():
                assert time.monotonic() < deadline, f"waited {timeout_s} s; heard {self.heard}"
                self._changed.wait(0.05)

    def all_heard(self) -> list[FromTask]:
        """Return the messages of all connections so far."""
        return [message for connection in self.heard for message in connection]

    def heard_in_all(self, num_messages: int) -> list[FromTask]:
        """Return the messages of all connections once there are that many: a link that is closed may still be read."""
        self.wait(lambda: len(self.all_heard()) >= num_messages)
        return self.all_heard()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        if self._status is None:
            return None
        refusal = connection.respond(self._status, "no\n")
        refusal.headers[PROOF_HEADER] = self._proof(request).of("refused", self._token)
        return refusal

    def _prove(self, _: ServerConnection, request: Request, response: Response) -> Response:
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            return response
        nonce, proof = read_authorization(request.headers["Authorization"])
        self.task_was_proven.append(self._proof(request).proves("task", self._token, proof))
        assert nonce not in self._nonces, "a nonce is new for every connection"
        self._nonces.add(nonce)
        response.headers[PROOF_HEADER] = self._proof(request).of("open", self._token)
        return response

    def _proof(self, request: Request) -> LinkProof:
        nonce, _ = read_authorization(request.headers["Authorization"])
        task_id = request.path.partition("?task=")[2]
        return LinkProof(task_id=task_id, challenge=self._challenge, nonce=nonce)

    def _handle(self, connection: ServerConnection) -> None:
        with self._changed:
            self._connections.append(connection)
            mine: list[FromTask] = []
            self.heard.append(mine)
        try:
            for frame in connection:
                with self._changed:
                    mine.append(decode_from_task(frame))
                    self._changed.notify_all()
                time.sleep(self._slow_s)
                if (number := number_of(frame)) and not self._forgetful:
                    connection.send(encode(Stored(number=number)))
        except ConnectionClosed:
            return
