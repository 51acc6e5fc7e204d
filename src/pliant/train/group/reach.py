"""Whether a task reaches the machines of those it waits for; if not, the server is told which they are.

Theory of operation. A peer that is slow, stopped or swapped out looks from outside like one behind a firewall: nothing
comes. But its kernel still takes connections. So when the training thread has waited for a while in one collective or
transfer, or a generation has not connected for a while, a thread connects with every machine of the members waited
for: at the rendezvous of one task there, which listens as long as that task lives. It says nothing there, and hangs up.

     0.0 s   a firewall comes between gpu3 and gpu4; job-1.3, on gpu3, waits in the sum of a step
     2.5 s   the same wait still: it connects with gpu1 and gpu2, at once, and tries gpu4
     5.0 s   gpu4 has not answered: `Unreachable(peers=(job-1.4,))`
     7.5 s   nor again: the same is said again, and now the server acts

A connection that is refused counts as none, since firewalls refuse, too: whether the peer still lives, the server
knows. What goes wrong on this machine, such as too many open files, says nothing about others.

While a training goes on as usual, nobody connects with anybody.
"""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Hashable, Mapping
from errno import ECONNREFUSED, EHOSTUNREACH, EINPROGRESS, ENETUNREACH, EPERM, ETIMEDOUT
from time import monotonic
from typing import Final

from pliant.core.job import TaskId
from pliant.core.link import MAX_PEERS, Form, Unreachable

PATIENCE_S: Final = 2.0
"""A wait that is no longer says nothing."""
ANSWER_S: Final = 2.5
"""A machine that has not taken a connection by then is out of reach: the kernel has asked twice."""
_LOOK_S: Final = 0.5
_AGAIN_S: Final = 2.5
"""At least so long after one try comes the next."""
_NO_WAY: Final = frozenset({ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EPERM, ETIMEDOUT})

Address = tuple[str, int]
Waits = Mapping[Hashable, Form]
"""The generations in which this task waits for others, each by what stays the same as long as it is the same wait."""


def other_machines(form: Form, host: str) -> dict[TaskId, Address]:
    """Return one member of a generation on each machine but this task's own, and where it listens."""
    known = sorted(zip(form.members, form.addresses, strict=False), reverse=True)
    by_host = {address[0]: (task_id, address) for task_id, address in known}  # always the same one of each
    return dict(found for other, found in by_host.items() if other and other != host)


def unreachable(addresses: Mapping[TaskId, Address], within_s: float) -> tuple[TaskId, ...]:
    """Return the tasks at whose addresses nobody takes a connection in time; all are tried at once."""
    deadline, failed = monotonic() + within_s, set[TaskId]()
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for task_id, address in addresses.items():
            begun, number = _begin(address)
            if begun is not None:
                stack.enter_context(begun)
            if begun is not None and number == EINPROGRESS:
                selector.register(begun, selectors.EVENT_WRITE, task_id)
            elif number in _NO_WAY:
                failed.add(task_id)
        while selector.get_map():
            left_s = deadline - monotonic()
            events = selector.select(max(0.0, left_s))  # once more if this process stood still until it was too late
            for key, _ in events:
                connection = selector.unregister(key.fileobj).fileobj
                assert isinstance(connection, socket.socket)
                if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in _NO_WAY:
                    failed.add(key.data)
            if not events and left_s <= 0.0:
                failed.update(key.data for key in selector.get_map().values())
                break
    return tuple(task_id for task_id in addresses if task_id in failed)


def _begin(address: Address) -> tuple[socket.socket | None, int]:
    """Begin to connect; return the connection and the number of what is the matter, 0 if nothing is."""
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        connection = socket.socket(family, kind, protocol)
    except OSError:  # a name that is none, no descriptor left: nothing is known of the peer
        return None, 0
    connection.setblocking(False)
    return connection, connection.connect_ex(target)


class PeerWatch:
    """A thread that looks whether machines waited for can be reached; begun by `begin`, ended by `close`.

    Args:
        host: this task's own address.
        waits: returns in which generations the task waits for others just now; called twice a second.
        send: queues a message to the server.
    """

    def __init__(self, *, host: str, waits: Callable[[], Waits], send: Callable[[Unreachable], None]) -> None:
        self._host = host
        self._waits = waits
        self._send = send
        self._since: dict[Hashable, float] = {}
        self._tried_at = float("-inf")
        self._has_reported = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread, unless it runs or was ended."""
        if self._thread is None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._run, name="pliant-reach", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread, a moment later; nothing is said any more."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(_LOOK_S):
            self.look(monotonic())

    def look(self, now: float) -> None:
        """Try those who are waited for too long, and say who cannot be reached, or that all can again."""
        waits = self._waits()
        self._since = {wait: self._since.get(wait, now) for wait in waits}
        late = [form for wait, form in waits.items() if now - self._since[wait] >= PATIENCE_S]
        if late:
            if now - self._tried_at < _AGAIN_S:
                return
            self._tried_at = now
        peers: dict[TaskId, Address] = {}
        for form in late:
            peers |= other_machines(form, self._host)
        failed = unreachable(peers, ANSWER_S)[:MAX_PEERS]
        if (failed or self._has_reported) and not self._closed.is_set():
            self._send(Unreachable(peers=failed))
        self._has_reported = bool(failed)
