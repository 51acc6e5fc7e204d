"""The task's end of the control link: a WebSocket to the server, kept by a thread of its own.

It reconnects for ever, to whichever server leads now, sends `Hello` first on every connection, and sends again what the
server has not stored. While there is nothing to send it sends pulses, so that the server knows that the task lives.
Training never waits for it. Knows nothing of generations: it only delivers messages.

A task that ends while its server is away leaves what is not stored in a file, and does not wait for long: the server
that comes back reads the file. Example: a script raises at 5.00 s, and the server was killed at 4 s. At 5.01 s the file
is there; at 7.01 s the process is gone, as no server has come by then. With a server the file is not even begun.
"""

import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.http11 import Response
from websockets.sync.client import ClientConnection, connect

from pliant.api.link import LINK_PATH, MAX_FRAME_BYTES, decode_to_task, encode
from pliant.api.server_address import ServerAddress
from pliant.api.trust import websocket_url
from pliant.core.errors import InvalidInput
from pliant.core.link import Dismiss, FromTask, Hello, Pulse, Stored, ToTask
from pliant.core.link_proof import NUM_BYTES, PROOF_HEADER, LinkProof, Word
from pliant.train.link.send_queue import Numbered, SendQueue
from pliant.train.link.unsent_file import UnsentFile

_RETRY_FIRST_S: Final = 0.05
_RETRY_MOST_S: Final = 1.0
_OPEN_S: Final = 3.0
"""A server that is stopped accepts connections and says nothing."""
_REFUSED: Final = (401, 403, 404, 410)
_REFUSED_S: Final = 30.0
"""A task that its server refuses for so long leaves."""
_STRANGER_S: Final = 600.0
"""The same, if somebody else says no in the server's place, who may not even know the task."""
_AT_ONCE_S: Final = 1.0
"""A server that is connected and stores nothing for so long may as well be away."""
LEFT_S: Final = 2.0
"""So long a server that is away is waited for once all is left in a file: a link that broke is open again by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseSettings:
    """How a task shows that it lives, while it has nothing else to send."""

    make: Callable[[], Pulse]
    """Called in a thread of the link's; must be quick and wait for nobody."""
    lease_s: float
    """After so much silence the server takes the task for hung; a pulse is sent after a quarter of it."""

    @property
    def every_s(self) -> float:
        return self.lease_s / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """The first of those that came one after the other."""

    by_server: bool
    since: float


_CUT_MS = 3_000
"""A connection whose bytes nobody confirms for so long is made anew: TCP may wait as long again as a cut has lasted."""


class _Connection(ClientConnection):
    """A connection whose end wakes the thread that reads from it.

    A TLS record that holds no data makes the socket look readable, and the read then waits for one that does.
    websockets 17 closes the socket under it, which wakes nobody, and then waits for the thread that reads: for ever, if
    a server says nothing after the TLS handshake.
    """

    def close_socket(self) -> None:
        with suppress(OSError):  # it is closed already
            # Below TLS: SSLSocket's own shutdown first ends the encryption, and another thread may be sending.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        super().close_socket()


class Link:
    """Keeps the connection.

    Args:
        address: where the server is.
        token: the job's token.
        hello: makes the first message of a connection; called in the link's thread.
        deliver: takes every message from the server; called in the link's thread, must be quick.
        pulse: how to show that this task lives while there is nothing to send; None: not at all.
        unsent: where to leave what the server does not store before this task ends; None: nowhere.
    """

    def __init__(
        self,
        *,
        address: ServerAddress,
        task_id: str,
        token: str,
        hello: Callable[[], Hello],
        deliver: Callable[[ToTask], None],
        pulse: PulseSettings | None = None,
        unsent: UnsentFile | None = None,
    ) -> None:
        self._address = address
        self._task_id = task_id
        self._token = token
        self._hello = hello
        self._deliver = deliver
        self._pulse = pulse
        self._unsent = unsent
        self._retry_most_s = _RETRY_MOST_S if pulse is None else min(_RETRY_MOST_S, pulse.every_s)
        self._queue = SendQueue()
        self._changed = threading.Condition()
        self._closing = False
        self._refused = False
        self._is_away = False
        """The server did not answer when it was last tried, or has closed the connection since."""
        self._met_stranger = False
        self._refusal: _Refusal | None = None
        self._connection: ClientConnection | None = None
        self._connected_to = ""
        self._receiver = threading.Thread(target=self._receive_for_ever, name="pliant-link", daemon=True)
        self._sender = threading.Thread(target=self._send_for_ever, name="pliant-link-send", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._receiver.start()
        self._sender.start()

    def send(self, message: FromTask) -> None:
        """Queue a message."""
        with self._changed:
            self._queue.put(message)
            self._changed.notify_all()

    def close(self, timeout_s: float) -> bool:
        """Send what waits, close the connection and end; return whether everything was stored.

        Args:
            timeout_s: seconds after which the server is given up if it stores nothing any more. If all of it is left
                in a file it is given up after `LEFT_S`.
        """
        if self._unsent is None or not self._is_stored_at_once():
            while self._linger(timeout_s):
                continue
        with self._changed:
            flushed = not self._queue
            self._closing = True
            self._changed.notify_all()
            connection = self._connection
        if flushed and self._unsent is not None:
            self._unsent.remove()
        if connection is not None:
            connection.close()  # waits for the server's answer, so that it has read everything before we exit
        return flushed

    def _is_stored_at_once(self) -> bool:
        """Give a server that is there a moment; return whether it has stored everything by then."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue or self._refused or self._is_away, _AT_ONCE_S)
            return not self._queue

    def _linger(self, timeout_s: float) -> bool:
        """Leave what is not stored in the file, and wait until it is stored after all, refused, or given up.

        Return whether that has to be done again, since a message has come in meanwhile.
        """
        with self._changed:
            unstored = self._queue.unstored()
        if not unstored:
            return False
        if self._unsent is not None and self._unsent.write(unstored):
            timeout_s = min(timeout_s, LEFT_S)
        newest = unstored[-1].number
        with self._changed:
            while self._queue and not self._refused and self._queue.newest == newest:
                if not self._stores_more(timeout_s):
                    return False
            return bool(self._queue) and not self._refused

    def _stores_more(self, timeout_s: float) -> bool:
        """Wait, under the lock, until the server stores a message, refuses this task, or there is a new message.

        Return False if that takes too long.
        """
        num_left, newest = len(self._queue), self._queue.newest
        return self._changed.wait_for(
            lambda: len(self._queue) != num_left or self._queue.newest != newest or self._refused, timeout_s
        )

    def _receive_for_ever(self) -> None:
        delay_s = _RETRY_FIRST_S
        while not self._closing:
            try:
                url, proof = self._address.url(), self._new_proof()
                with connect(
                    f"{websocket_url(url)}{LINK_PATH}?task={self._task_id}",
                    additional_headers={"Authorization": proof.authorization(self._token)},
                    max_size=MAX_FRAME_BYTES,
                    open_timeout=_OPEN_S,
                    close_timeout=2,
                    proxy=None,
                    create_connection=_Connection,
                    compression=None,
                    ssl=self._address.tls(),
                    server_hostname=self._address.server_name(),
                ) as connection:
                    connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _CUT_MS)
                    self._check_server(connection, proof, url)
                    delay_s = _RETRY_FIRST_S
                    self._serve(connection, url)
            except InvalidHandshake as error:
                response = error.response if isinstance(error, InvalidStatus) else None
                status = 0 if response is None else response.status_code
                by_server = self._is_proved(proof, "refused", response)
                if status in _REFUSED and self._is_refused_for_long(by_server=by_server):
                    self._refuse(f"the server refuses this task (HTTP {status})")
                    return
                delay_s = min(2 * delay_s, self._retry_most_s)
            except (OSError, TimeoutError, WebSocketException, InvalidURI, InvalidInput):
                self._refusal = None
                delay_s = min(2 * delay_s, self._retry_most_s)
            self._drop(None)
            with self._changed:
                self._changed.wait_for(lambda: self._closing, delay_s)

    def _new_proof(self) -> LinkProof:
        nonce = secrets.token_hex(NUM_BYTES)
        return LinkProof(task_id=self._task_id, challenge=self._address.challenge(), nonce=nonce)

    def _check_server(self, connection: ClientConnection, proof: LinkProof, url: str) -> None:
        """Make sure that it is the server before it is told anything.

        Raises:
            ConnectionError: somebody else listens there.
        """
        if not self._is_proved(proof, "open", connection.response):
            if not self._met_stranger:
                print(f"pliant: what listens at {url} is not this job's server; it is told nothing", flush=True)
            self._met_stranger = True
            raise ConnectionError("a stranger listens there")

    def _is_proved(self, proof: LinkProof, word: Word, response: Response | None) -> bool:
        given = [] if response is None else response.headers.get_all(PROOF_HEADER)
        return len(given) == 1 and proof.proves(word, self._token, given[0])

    def _is_refused_for_long(self, *, by_server: bool) -> bool:
        if self._refusal is None or self._refusal.by_server != by_server:
            self._refusal = _Refusal(by_server=by_server, since=time.monotonic())
        return time.monotonic() - self._refusal.since >= (_REFUSED_S if by_server else _STRANGER_S)

    def _refuse(self, reason: str) -> None:
        with self._changed:
            self._refused = True
            self._changed.notify_all()
        self._deliver(Dismiss(reason=reason))

    def _serve(self, connection: ClientConnection, url: str) -> None:
        self._refusal = None
        connection.send(encode(self._hello()))
        self._set_connection(connection, url)
        for frame in connection:
            try:
                message = decode_to_task(frame)
            except InvalidInput as error:
                print(f"pliant: ignored a message of the server: {error}", flush=True)
                continue
            if isinstance(message, Stored):
                self._forget(message.number)
            else:
                self._deliver(message)

    def _forget(self, number: int) -> None:
        with self._changed:
            self._queue.drop_stored(number)
            self._changed.notify_all()

    def _set_connection(self, connection: ClientConnection, url: str) -> None:
        with self._changed:
            self._connection, self._connected_to, self._is_away = connection, url, False
            self._queue.requeue_sent()
            self._changed.notify_all()

    def _drop(self, connection: ClientConnection | None) -> None:
        """Stop using this connection; None stands for the present one."""
        with self._changed:
            if connection is None or self._connection is connection:
                self._connection, self._connected_to, self._is_away = None, "", True
                self._queue.requeue_sent()
                self._changed.notify_all()

    def _send_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: (self._connection is not None and self._queue.next() is not None) or self._closing,
                    self._pulse.every_s if self._pulse is not None else None,
                )
                connection, item = self._connection, self._queue.next()
                if self._closing and (item is None or connection is None):
                    return
                moved = connection is not None and self._address.url() != self._connected_to
            if connection is None:
                continue
            if moved:
                self._drop(connection)
                connection.close_socket()  # the other end may be a stopped process: do not wait for its answer
                continue
            if not self._try_send(connection, item) or item is None:
                continue
            with self._changed:
                if self._connection is connection:
                    self._queue.mark_sent(item)
                self._changed.notify_all()

    def _try_send(self, connection: ClientConnection, item: Numbered | None) -> bool:
        """Send a message, or a pulse if there is none; if that fails, drop the connection and return False."""
        if item is None and self._pulse is None:
            return True
        try:
            if item is not None:
                connection.send(encode(item.message, item.number))
            elif self._pulse is not None:
                connection.send(encode(self._pulse.make()))
        except (OSError, WebSocketException):
            self._drop(connection)
            return False
        return True
