"""Sends what the tasks of one job write on this machine back to the server.

Logs go as they grow, byte by byte, and go on where an earlier agent has stopped. Any other file goes whole, once it
rests; one that is written to all the time goes now and then. A file that was here as the server has it, and is gone, is
removed there. What tasks write is a stranger's: it is opened as such, and only plain files of the folder's owner are
sent.
"""

import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from pliant.cluster.mirror.bringing import Facts, Placed, facts_of, is_passing
from pliant.cluster.mirror.keeper import STRANGE_LIMITS, digest_of_open
from pliant.cluster.mirror.messages import CHUNK_BYTES, Put
from pliant.core.errors import Conflict
from pliant.files.untrusted.opening import OpenFile, hollowness, open_below, open_folder
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import FoundEntry, walk

_LOGS: Final = ("stdout", "stderr")
_RESTS_S: Final = 0.3
_CHANGES_S: Final = 10.0
"""A file that never rests is sent so often."""
_PAUSE_SHARE: Final = 10.0
"""A file that has changed since it was sent waits so many times as long as that took."""
_MAX_PAUSE_S: Final = 60.0


class Taker(Protocol):
    """The server's end, for whoever sends; see `FileConnection`."""

    def append(self, path: str, name: str, offset: int, content: bytes) -> int: ...

    def put(self, put: Put, read: Callable[[int, int], bytes]) -> bool: ...

    def remove(self, path: str, name: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class SentTree:
    """One of the folders that a job's tasks write to, and what of it the server has."""

    path: str
    place: UntrustedPath
    known: dict[str, Placed] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    """Of logs: how many bytes the server has."""
    refused: dict[str, Facts] = field(default_factory=dict)
    """What the server does not take as it is."""
    not_before: dict[str, float] = field(default_factory=dict)
    changing_since: dict[str, float] = field(default_factory=dict)
    """Since when a file is not as the server has it."""

    def note(self, brought: Mapping[str, Placed]) -> None:
        """Take note of what was brought."""
        self.known.update(brought)

    def send_logs(self, connection: Taker, *, log_root: str) -> None:
        """Send what logs have grown by.

        Args:
            connection: has claimed a task of the job.
            log_root: the folder of all logs, from the top.

        Raises:
            Unavailable: the connection is lost.
            NotFound: the server does not want it any more.
            Conflict: it does not take it.
        """
        with suppress(FileNotFoundError), open_folder(self.place / log_root) as top:
            for found in walk(top):
                if found.is_file and found.name.count("/") == 1 and found.name.endswith(_LOGS):
                    self._send_log(connection, top, found, f"{log_root}/{found.name}")

    def send_files(
        self, connection: Taker, *, log_root: str, is_last: bool = False, now: Callable[[], float] = time.time
    ) -> list[str]:
        """Send what has changed, and remove what is gone; return what the server does not take, in words.

        Args:
            connection: has claimed a task of the job.
            log_root: the folder of all logs, from the top; empty: there is none in this tree.
            is_last: nobody writes any more.
            now: seconds since the epoch.

        Raises:
            Unavailable, NotFound: as of `send_logs`.
        """
        troubles: list[str] = []
        unseen: list[str] = []
        with suppress(FileNotFoundError), open_folder(self.place) as top:
            there = set()
            for found in walk(top, limits=STRANGE_LIMITS, leave_out=lambda name, why: unseen.append(f"{name}: {why}")):
                there.add(found.name)
                if found.is_file and not _is_left_out(found.name, log_root):
                    try:
                        self._send_file(connection, top, found, now, is_last=is_last)
                    except Conflict as error:
                        self.refused[found.name] = facts_of(found.facts)
                        troubles.append(f"{found.name}: {error}")
            if not unseen:
                self._remove_gone(connection, there)
        return [*troubles, *unseen] if is_last else troubles

    def _send_log(self, connection: Taker, top: int, found: FoundEntry, name: str) -> None:
        sent = self.sent.get(name)
        if sent is None:
            sent = self._sent_before(connection, name, found.facts.st_size)
        if found.facts.st_size <= sent:
            return
        for file in _opened(top, found.name):
            while content := file.read_at(sent, CHUNK_BYTES):
                length = connection.append(self.path, name, sent, content)
                sent = self.sent[name] = length if length < sent else sent + len(content)

    def _sent_before(self, connection: Taker, name: str, num_bytes: int) -> int:
        """Return how much of a log the server has of an earlier agent, but for its end, which may not be whole there.

        Its tasks only add to a log: the server is asked how long its own is.
        """
        if num_bytes <= CHUNK_BYTES:
            return 0
        return max(0, connection.append(self.path, name, num_bytes, b"") - CHUNK_BYTES)

    def _send_file(
        self, connection: Taker, top: int, found: FoundEntry, now: Callable[[], float], *, is_last: bool
    ) -> None:
        facts, known = facts_of(found.facts), self.known.get(found.name)
        if (known is not None and known.facts == facts) or self.refused.get(found.name) == facts:
            return
        if not is_last and not self._is_due(found, now()):
            return
        began_at = now()
        for file in _opened(top, found.name):
            if why := hollowness(file.facts):
                raise Conflict(why)
            facts = facts_of(file.facts)
            digest = digest_of_open(file.descriptor, file.num_bytes)
            if known is None or known.digest != digest:
                put = Put(
                    path=self.path,
                    name=found.name,
                    num_bytes=file.num_bytes,
                    digest=digest,
                    mode=stat.S_IMODE(file.facts.st_mode) & 0o777,
                    mtime_ns=file.facts.st_mtime_ns,
                )
                is_sent = _put(connection, put, file, facts)
                self.not_before[found.name] = now() + min(_MAX_PAUSE_S, _PAUSE_SHARE * (now() - began_at))
                if not is_sent:
                    return
            self.known[found.name] = Placed(facts=facts, digest=digest)
            self.refused.pop(found.name, None)
            self.changing_since.pop(found.name, None)

    def _is_due(self, found: FoundEntry, now: float) -> bool:
        """Tell whether a file that has changed is sent now: it rests, or has been written to for long."""
        since = self.changing_since.setdefault(found.name, now)
        rests = now - found.facts.st_mtime >= _RESTS_S or now - since >= _CHANGES_S
        return rests and now >= self.not_before.get(found.name, 0.0)

    def _remove_gone(self, connection: Taker, there: Collection[str]) -> None:
        for name in [name for name in self.known if name not in there]:
            del self.known[name]
            with suppress(Conflict):  # a folder has its name now
                connection.remove(self.path, name)


def _is_left_out(name: str, log_root: str) -> bool:
    folder, _, last = name.rpartition("/")
    if is_passing(name) or "__pycache__" in folder.split("/"):
        return True
    return bool(log_root) and name.startswith(f"{log_root}/") and (last.startswith(".") or last in _LOGS)


def _opened(top: int, name: str) -> Iterator[OpenFile]:
    """Yield a file of the folder's owner; nothing, if it is none, or is gone."""
    facts = os.fstat(top)
    owner = None if facts.st_uid == os.geteuid() else facts.st_uid
    try:
        file = open_below(top, name, owner=owner)
    except OSError:
        return
    try:
        yield file
    finally:
        file.close()


def _put(connection: Taker, put: Put, file: OpenFile, facts: Facts) -> bool:
    """Send a file as it was when it was opened; tell whether the server has that. It may have grown meanwhile."""
    try:
        return connection.put(put, _reader(file))
    except Conflict:
        if _is_unchanged(file, facts):
            raise
        return False  # it was not what had been said: it has changed


def _is_unchanged(file: OpenFile, facts: Facts) -> bool:
    return facts_of(os.fstat(file.descriptor)) == facts


def _reader(file: OpenFile) -> Callable[[int, int], bytes]:
    return lambda offset, num_bytes: file.read_at(offset, num_bytes)
