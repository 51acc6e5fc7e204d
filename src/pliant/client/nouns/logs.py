"""Reads one stream of one task's log, whole or its end, and goes on while the task writes."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from pliant.api.job_views import LogFile
from pliant.client.http.connection import Connection, Idle, Params
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.lines import lines_of, text_of
from pliant.client.http.patience import Patience
from pliant.core.errors import Unavailable

_IDLE_S: Final = 60.0
_FIRST_WINDOW: Final = 1 << 16
_FILES: Final = LazyAdapter(tuple[LogFile, ...])


def log_files(connection: Connection, job_id: str) -> tuple[LogFile, ...]:
    """Return the log files of a job."""
    return connection.get(_FILES, f"/jobs/{quote(job_id, safe='')}/logs")


def read_log(
    connection: Connection, log: LogFile, job_id: str, *, tail: int | None, follow: bool, offset: int
) -> Iterator[str]:
    """Yield the lines of a log from `offset` bytes on, or its last `tail` lines.

    With `follow`, go on until the task has ended; a broken connection is taken up again at the byte where it broke.

    Raises:
        NotFound: no such job, task or stream.
        Unavailable: the server does not answer, with `follow` for longer than our patience.
    """
    path = f"/jobs/{quote(job_id, safe='')}/logs/{quote(log.task_id, safe='')}/{quote(log.stream, safe='')}"
    if not follow:
        params: Params = {"offset": offset} if tail is None else {"tail": tail}
        with connection.stream(path, params, timeout_s=connection.timeout_s) as chunks:
            yield from map(text_of, lines_of(chunks))
        return
    if tail is not None:
        size = next((f.num_bytes for f in log_files(connection, job_id) if (f.task_id, f.stream) == _key(log)), 0)
        offset = _offset_of_tail(connection, path, size, tail)
    yield from map(text_of, lines_of(_follow(connection, path, offset, Patience())))


def _follow(connection: Connection, path: str, offset: int, patience: Patience) -> Iterator[bytes]:
    while True:
        try:
            with connection.stream(path, {"offset": offset, "follow": True}, timeout_s=_IDLE_S) as chunks:
                for chunk in chunks:
                    patience.reset()
                    offset += len(chunk)
                    yield chunk
                return
        except Idle:
            continue
        except Unavailable as error:
            patience.wait_after(error)


def _offset_of_tail(connection: Connection, path: str, size: int, num_lines: int) -> int:
    """Return the byte at which the last lines of the first `size` bytes begin, reading no more than needed."""
    window = _FIRST_WINDOW
    while True:
        start = max(0, size - window)
        with connection.stream(path, {"offset": start}, timeout_s=connection.timeout_s) as chunks:
            text = _first(chunks, size - start)
        begin = _begin_of_tail(text, num_lines)
        if start == 0 or begin > 0:
            return start + begin
        window *= 8


def _begin_of_tail(text: bytes, num_lines: int) -> int:
    """Return where the last lines of `text` begin; 0 if it has no more than those."""
    begin = len(text)
    end = begin - 1 if text.endswith(b"\n") else begin
    for _ in range(num_lines):
        begin = text.rfind(b"\n", 0, end) + 1
        if begin == 0:
            break
        end = begin - 1
    return begin


def _first(chunks: Iterator[bytes], num_bytes: int) -> bytes:
    text = b""
    for chunk in chunks:
        text += chunk
        if len(text) >= num_bytes:
            break
    return text[:num_bytes]


def _key(log: LogFile) -> tuple[str, str]:
    return log.task_id, log.stream
