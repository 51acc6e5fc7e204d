"""The process that copies what jobs write to an object store, for a server, which starts it. Not for people to call.

`python -P -m pliant.entry.copier SOCKET`: SOCKET is the number of an open socket to the server, which says
`BeginCopying` first (`pliant.objects.messages`). It ends at once when the server is gone: the next server starts
another one, and two would remove each other's objects.
"""

import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from pliant.cluster.json_lines import LineSocket, by_kind, decode, encode
from pliant.control.upkeep.copied import files_to_copy
from pliant.objects.bringing import NotBrought, bring_back
from pliant.objects.copier import LOOK_S, Copier, CopyState
from pliant.objects.messages import (
    ActiveJobs,
    BeginCopying,
    BringBack,
    BroughtBack,
    CopiesForgotten,
    CopyNews,
    EndCopying,
    ForgetJobCopies,
    FromCopier,
    StoreReached,
    StoreRefused,
    ToCopier,
)
from pliant.objects.pool_mark import OtherPool, PoolMark
from pliant.objects.store import ObjectStore, StoreAway

TO_COPIER: Final[Mapping[str, type[ToCopier]]] = by_kind(
    (BeginCopying, ActiveJobs, ForgetJobCopies, BringBack, EndCopying)
)
_NICENESS: Final = 5


def main(argv: Sequence[str]) -> int:
    """Copy until the server is gone, or says that it ends; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    os.nice(_NICENESS)
    server = _Server(socket.socket(fileno=int(argv[0])))
    begin = server.next(None)
    assert isinstance(begin, BeginCopying), "it is said first"
    try:
        store = ObjectStore(begin.url)
        store.probe()
        mark = PoolMark(pool=begin.pool)
        is_known = mark.put(store)
        store.drop_unfinished()
    except (StoreAway, OtherPool) as error:
        server.say(StoreRefused(reason=str(error), is_other=isinstance(error, OtherPool)))
        return 1
    server.say(StoreReached(is_known=is_known))
    store.guard = partial(mark.check, store)
    _serve(server, store, Path(begin.jobs))
    return 0


def _serve(server: "_Server", store: ObjectStore, jobs: Path) -> None:
    copier, said, is_active_known = Copier(store, jobs, files_to_copy, time.time), CopyState(), False
    while True:
        message = server.next(LOOK_S)
        if isinstance(message, ActiveJobs):
            copier.active, is_active_known = frozenset(message.jobs), True
        elif isinstance(message, ForgetJobCopies):
            server.say(CopiesForgotten(job=message.job, problem=_forget(copier, message.job)))
        elif isinstance(message, BringBack):
            server.say(_bring_back(store, jobs, message.job))
        if is_active_known and (message is None or isinstance(message, ActiveJobs | EndCopying)):
            copier.turn(server.is_waiting)
        if copier.state != said:
            said = copier.state
            server.say(CopyNews(why_away=said.why_away, num_waiting=said.num_waiting))
        if isinstance(message, EndCopying):
            return


def _forget(copier: Copier, job_id: str) -> str:
    try:
        copier.forget(job_id)
    except StoreAway as error:
        return str(error)
    return ""


def _bring_back(store: ObjectStore, jobs: Path, job_id: str) -> BroughtBack:
    try:
        return BroughtBack(job=job_id, what=bring_back(store, jobs, job_id), problem="")
    except (StoreAway, NotBrought) as error:
        return BroughtBack(job=job_id, what="", problem=str(error))


class _Server:
    """The socket to the server. A thread reads it, so that its end is noticed whatever is being sent."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._messages: queue.Queue[ToCopier] = queue.Queue()
        threading.Thread(target=self._read, name="server", daemon=True).start()

    def next(self, timeout_s: float | None) -> ToCopier | None:
        """Return what the server says within a while; None: nothing."""
        try:
            return self._messages.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def is_waiting(self) -> bool:
        """Tell whether it has said something that was not looked at."""
        return not self._messages.empty()

    def say(self, message: FromCopier) -> None:
        """Send a message, wholly."""
        self._channel.sendall(encode(message))

    def _read(self) -> None:
        lines = LineSocket(self._channel)
        while (received := lines.receive()) is not None:
            for line in received:
                self._messages.put(decode(line, TO_COPIER))
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
