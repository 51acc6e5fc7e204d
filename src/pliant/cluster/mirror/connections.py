"""The connections for files of a machine: kept while nobody uses them, lent to one thread at a time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from pliant.cluster.mirror.connection import FileConnection, FileServer
from pliant.cluster.mirror.messages import Claim, Put
from pliant.core.errors import Unavailable
from pliant.core.job import TaskId

_AGAIN_S: Final = 1.0


class FileConnections:
    """Lends connections. Safe to use from any thread."""

    def __init__(self, server: FileServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._idle: list[FileConnection] = []
        self._lent: set[FileConnection] = set()
        self._is_closed = False
        self._not_before, self._why_not = 0.0, ""

    @contextmanager
    def borrow(self) -> Iterator[FileConnection]:
        """Yield a connection that nobody else uses.

        Raises:
            Unavailable: there is none to be had.
        """
        connection = self.take()
        try:
            yield connection
        finally:
            self.put_back(connection)

    def take(self) -> FileConnection:
        """Return a connection that nobody else uses; it is put back.

        Raises:
            Unavailable: there is none to be had.
        """
        connection = self._take_idle() or self._connect()
        with self._lock:
            if self._is_closed:
                connection.close()
                raise Unavailable("this machine's agent ends")
            self._lent.add(connection)
        return connection

    def put_back(self, connection: FileConnection) -> None:
        """Keep a connection for the next, if it is of use."""
        with self._lock:
            self._lent.discard(connection)
            if not connection.is_lost and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all, also those that are lent."""
        with self._lock:
            self._is_closed = True
            connections = [*self._idle, *self._lent]
        for connection in connections:
            connection.close()

    def _connect(self) -> FileConnection:
        """Connect, if nobody has tried in vain a moment ago: all threads of a machine together try once a second."""
        with self._lock:
            if time.monotonic() < self._not_before:
                raise Unavailable(self._why_not)
        try:
            return self._server.connect()
        except Unavailable as error:
            with self._lock:
                self._not_before, self._why_not = time.monotonic() + _AGAIN_S, str(error)
            raise

    def _take_idle(self) -> FileConnection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()


class TaskConnection:
    """A connection for one task, made when there is something to be sent; implements `sending.Taker`."""

    def __init__(self, connections: FileConnections, task_id: TaskId) -> None:
        self._connections = connections
        self._task_id = task_id
        self._connection: FileConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connections.put_back(self._connection)

    def append(self, path: str, name: str, offset: int, content: bytes) -> int:
        return self._use().append(path, name, offset, content)

    def put(self, put: Put, read: Callable[[int, int], bytes]) -> bool:
        return self._use().put(put, read)

    def remove(self, path: str, name: str) -> None:
        self._use().remove(path, name)

    def _use(self) -> FileConnection:
        if self._connection is None:
            self._connection = self._connections.take()
            self._connection.claim(Claim(task_id=self._task_id))
        return self._connection
