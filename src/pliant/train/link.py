"""The task's end of the control link: a WebSocket to the server, kept by a thread of its own.

It reconnects for ever, says `Hello` first on every connection, and keeps what could not be sent for the next one,
merging reports that wait. Training never waits for it. Knows nothing of generations: it hands messages over.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from pliant.core.errors import InvalidInput
from pliant.core.link import Dismiss, FromTask, Hello, Report, ToTask
from pliant.wire.link import LINK_PATH, MAX_FRAME_BYTES, decode_to_task, encode

_RETRY_FIRST_S: Final = 0.05
_RETRY_MOST_S: Final = 1.0
_REFUSED: Final = (401, 403, 404, 410)


class Link:
    """Keeps the connection.

    Args:
        url: the server's base URL.
        token: the job's token.
        hello: makes the first message of a connection; called in the link's thread.
        deliver: takes every message from the server; called in the link's thread, must be quick.
    """

    def __init__(
        self, *, url: str, task_id: str, token: str, hello: Callable[[], Hello], deliver: Callable[[ToTask], None]
    ) -> None:
        parts = urlsplit(url)
        scheme = {"http": "ws", "https": "wss"}[parts.scheme]
        self._url = f"{scheme}://{parts.netloc}{LINK_PATH}?task={task_id}"
        self._token = token
        self._hello = hello
        self._deliver = deliver
        self._outbox: deque[FromTask] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._refused = False
        self._connection: ClientConnection | None = None
        self._receiver = threading.Thread(target=self._receive_for_ever, name="pliant-link", daemon=True)
        self._sender = threading.Thread(target=self._send_for_ever, name="pliant-link-send", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._receiver.start()
        self._sender.start()

    def send(self, message: FromTask) -> None:
        """Queue a message; of several reports that wait, the points are kept and only the newest progress."""
        with self._changed:
            waiting = self._outbox[-1] if self._outbox else None
            if isinstance(message, Report) and isinstance(waiting, Report) and len(waiting.points) < 1000:
                self._outbox.pop()
                message = Report(
                    generation=message.generation,
                    progress=message.progress,
                    points=(*waiting.points, *message.points),
                )
            self._outbox.append(message)
            self._changed.notify_all()

    def close(self, timeout_s: float) -> bool:
        """Send what waits, say goodbye and end; tell whether everything was sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._outbox or self._refused, timeout_s)
            flushed = not self._outbox
            self._closing = True
            self._changed.notify_all()
            connection = self._connection
        if connection is not None:
            connection.close()  # waits for the server's answer, so that it has read everything before we exit
        return flushed

    def _receive_for_ever(self) -> None:
        delay_s = _RETRY_FIRST_S
        while not self._closing:
            try:
                with connect(
                    self._url,
                    additional_headers={"Authorization": f"Bearer {self._token}"},
                    max_size=MAX_FRAME_BYTES,
                    open_timeout=5,
                    close_timeout=2,
                    proxy=None,
                    compression=None,
                ) as connection:
                    delay_s = _RETRY_FIRST_S
                    self._serve(connection)
            except InvalidHandshake as error:
                status = getattr(getattr(error, "response", None), "status_code", 0)
                if status in _REFUSED:
                    self._refuse(f"the server refuses this task (HTTP {status})")
                    return
                delay_s = min(2 * delay_s, _RETRY_MOST_S)
            except (OSError, TimeoutError, WebSocketException, InvalidURI):
                delay_s = min(2 * delay_s, _RETRY_MOST_S)
            self._set_connection(None)
            with self._changed:
                self._changed.wait_for(lambda: self._closing, delay_s)

    def _refuse(self, reason: str) -> None:
        with self._changed:
            self._refused = True
            self._changed.notify_all()
        self._deliver(Dismiss(reason=reason))

    def _serve(self, connection: ClientConnection) -> None:
        connection.send(encode(self._hello()))
        self._set_connection(connection)
        for frame in connection:
            try:
                self._deliver(decode_to_task(frame))
            except InvalidInput as error:
                print(f"pliant: ignored a message of the server: {error}", flush=True)

    def _set_connection(self, connection: ClientConnection | None) -> None:
        with self._changed:
            self._connection = connection
            self._changed.notify_all()

    def _send_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: (self._outbox and self._connection is not None) or self._closing)
                if self._closing and not (self._outbox and self._connection is not None):
                    return
                connection, message = self._connection, self._outbox[0]
            assert connection is not None
            try:
                connection.send(encode(message))
            except (OSError, WebSocketException):
                self._set_connection(None)
                continue
            with self._changed:
                if self._outbox and self._outbox[0] is message:
                    self._outbox.popleft()
                self._changed.notify_all()
