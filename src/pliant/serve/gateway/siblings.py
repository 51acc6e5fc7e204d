"""The gateways of one machine ask each other what they have counted: clients ask one of them, and mean all.

Each listens at a UNIX socket in a folder that nobody but the server's user can enter. A question is a line of JSON, and
so is its answer; a connection takes several, one after the other:

    {"job": "job-7"}  →  {"success": [3, 0.5], ..., "batches": {"2": [1, 0.2]}, "last_at": 71.2}, or null

Who does not answer in time is left out, and not asked for a moment: it is stopped, or starts anew. Paths of sockets
have 107 bytes at most, so the folder is named by a descriptor of it. Belongs to one event loop.
"""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from pliant.core.job import JobId
from pliant.serve.gateway.meter import TimeSum, VersionTotals

ANSWER_S: Final = 0.5
"""So long a sibling may take for an answer, or a few."""
SILENT_S: Final = 1.0
"""Who has not answered is not asked for so long."""
_IDLE_S: Final = 5.0
"""So long the next question of a connection may take to come."""
_AT_ONCE: Final = 4
"""Connections to one sibling."""
_MAX_OPEN: Final = 32
"""Connections from each; those that have just ended count until that is noticed."""
_FEW: Final = 64
"""Questions that are sent before their answers are read."""
_MAX_QUESTIONS: Final = 1 << 16
"""Of one connection."""
_MAX_QUESTION: Final = 1024
_MAX_ANSWER: Final = 64 << 10
_MAX_SIZES: Final = 1024
"""Of batches."""
_PARTS: Final = ("success", "fail", "queue", "service")
_log = logging.getLogger(__name__)


class Siblings:
    """The other gateways of a machine, as one of them sees them.

    Args:
        folder: where all of them listen.
        number: of this one.
        numbers: of all.
    """

    def __init__(self, folder: Path, number: int, numbers: range) -> None:
        self._folder = folder
        self._number = number
        self._of = len(numbers)
        self._others = {other: _Sibling(folder, other) for other in numbers if other != number}

    async def listen(self, totals: Callable[[JobId], VersionTotals | None]) -> None:
        """Answer the others until it is cancelled.

        Args:
            totals: what this gateway has counted of a version; None: it does not know it.

        Raises:
            OSError: the folder cannot be written.
        """
        asking: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            asking.add(task)
            try:
                if len(asking) <= _MAX_OPEN * self._of:
                    await _answer(reader, writer, totals)
            except (OSError, TimeoutError, ValueError) as error:  # it is gone, says nothing, or asks for nonsense
                _log.debug("a gateway that asked for statistics is cut off: %s", error)
            finally:
                asking.discard(task)
                writer.close()

        name = _name_of(self._number)
        server = await asyncio.start_server(serve, sock=_open_socket(self._folder, name), limit=_MAX_QUESTION)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            (self._folder / name).unlink(missing_ok=True)

    async def totals(self, job_id: JobId) -> list[VersionTotals]:
        """Return what the others have counted of a version: those that know it and answer."""
        return (await self.totals_of([job_id]))[job_id]

    async def totals_of(self, job_ids: Sequence[JobId]) -> Mapping[JobId, list[VersionTotals]]:
        """Return the same of several versions."""
        found: dict[JobId, list[VersionTotals]] = {job_id: [] for job_id in job_ids}
        if not found:
            return found
        for answers in await asyncio.gather(*(other.ask(tuple(found)) for other in self._others.values())):
            for job_id, totals in answers.items():
                found[job_id].append(totals)
        return found


class _Sibling:
    """Another gateway."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = number
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._ask_again_at = 0.0

    async def ask(self, job_ids: Sequence[JobId]) -> Mapping[JobId, VersionTotals]:
        """Return what it has counted, as far as it says so in time."""
        found: dict[JobId, VersionTotals] = {}
        clock = asyncio.get_running_loop().time
        async with self._turns:
            if clock() < self._ask_again_at:
                return found
            try:
                await self._ask(job_ids, found)
            except (FileNotFoundError, ConnectionError):  # it is not there at the moment, and says so at once
                return found
            except (OSError, TimeoutError, ValueError) as error:
                _log.warning("the gateway %d does not say what it has counted: %r", self._number, error)
                self._ask_again_at = clock() + SILENT_S
        return found

    async def _ask(self, job_ids: Sequence[JobId], found: dict[JobId, VersionTotals]) -> None:
        async with asyncio.timeout(ANSWER_S):
            with _inside(self._folder) as place:
                path = f"{place}/{_name_of(self._number)}"
                reader, writer = await asyncio.open_unix_connection(path, limit=_MAX_ANSWER)
        try:
            for few in _split(job_ids):
                async with asyncio.timeout(ANSWER_S):
                    writer.write(b"".join(_line({"job": job_id}) for job_id in few))
                    for job_id in few:
                        totals = _read_totals(await _read_line(reader))
                        if totals is not None:
                            found[job_id] = totals
        finally:
            writer.transport.abort()


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, totals: Callable[[JobId], VersionTotals | None]
) -> None:
    """Answer what comes by a connection, until its end."""
    for _ in range(_MAX_QUESTIONS):
        async with asyncio.timeout(_IDLE_S):
            line = await _read_line(reader)
            found = totals(_read_question(line))
            writer.write(_line(None if found is None else _say_totals(found)))
            await writer.drain()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line.

    Raises:
        ConnectionError: there is none.
        ValueError: it is too long.
    """
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the other side has ended")
    return line


def _split(job_ids: Sequence[JobId]) -> Iterator[Sequence[JobId]]:
    return (job_ids[at : at + _FEW] for at in range(0, len(job_ids), _FEW))


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _say_totals(totals: VersionTotals) -> dict[str, Any]:
    return {
        **{name: _say_sum(getattr(totals, name)) for name in _PARTS},
        "batches": {str(size): _say_sum(batch) for size, batch in totals.batches.items()},
        "last_at": totals.last_at,
    }


def _say_sum(total: TimeSum) -> list[float]:
    return [total.count, total.seconds]


def _read_question(line: bytes) -> JobId:
    """Return the version that a line asks about.

    Raises:
        ValueError: it asks for nothing of the kind.
    """
    try:
        return JobId(str(json.loads(line)["job"]))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{line[:80]!r} is no question") from error


def _read_totals(line: bytes) -> VersionTotals | None:
    """Return what a line says.

    Raises:
        ValueError: it says nothing of the kind.
    """
    try:
        said = json.loads(line)
        if said is None:
            return None
        parts = {name: _read_sum(said[name]) for name in _PARTS}
        batches = {int(size): _read_sum(batch) for size, batch in said["batches"].items()}
        last_at = None if said["last_at"] is None else float(said["last_at"])
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{line[:80]!r} is no answer") from error
    if len(batches) > _MAX_SIZES:
        raise ValueError(f"{len(batches)} sizes of batches; at most {_MAX_SIZES} are taken")
    return VersionTotals(**parts, batches=batches, last_at=last_at)


def _read_sum(said: Any) -> TimeSum:
    count, seconds = said
    return TimeSum(int(count), float(seconds))


def _name_of(number: int) -> str:
    return f"sibling-{number}"


@contextmanager
def _inside(folder: Path) -> Iterator[str]:
    """Name a folder by a path that is short."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{place}"
    finally:
        os.close(place)


def _open_socket(folder: Path, name: str) -> socket.socket:
    """Listen in a folder, in place of whoever listened there before, who is dead."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _inside(folder) as place:
            new = f"{place}/.{name}.new"
            with suppress(FileNotFoundError):
                os.unlink(new)
            sock.bind(new)
            os.chmod(new, 0o600)
            sock.listen()
            sock.setblocking(False)
            os.rename(new, f"{place}/{name}")
    except OSError:
        sock.close()
        raise
    return sock
