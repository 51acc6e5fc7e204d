"""Reads the output of a job's tasks: what there is, or as it is written, whatever tasks come and go."""

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from pliant.cli.readable import readable_log
from pliant.cli.screen import print_outcome, say
from pliant.cli.wait import leaving_alone, wait_for_end
from pliant.client import Client
from pliant.core.errors import NotFound, PliantError
from pliant.core.job import Job, Task
from pliant.core.lifecycle import JobState

if TYPE_CHECKING:
    from pliant.api.job_views import JobDetail

STREAMS: Final = ("stdout", "stderr")
_POLL_S: Final = 0.3
_QUEUED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that a task wrote."""

    task_id: str
    stream: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A reader has finished."""

    error: PliantError | None = None


Write = Callable[[LogLine], None]


def write_plain(line: LogLine) -> None:
    """Write a line to the stream that the task wrote it to; a terminal gets nothing that changes more than colours."""
    out = sys.stdout if line.stream == "stdout" else sys.stderr
    out.write(f"{readable_log(line.line) if out.isatty() else line.line}\n")
    out.flush()


def write_prefixed(line: LogLine) -> None:
    """Write a line after the id of its task."""
    write_plain(LogLine(task_id=line.task_id, stream=line.stream, line=f"[{line.task_id}] {line.line}"))


def follow_job(
    client: Client,
    job_id: str,
    *,
    streams: Sequence[str] = STREAMS,
    every_task: bool = False,
    tail: int | None = None,
    write: Write = write_plain,
) -> Job:
    """Write what a job's leader (or every task) prints until the job has ended; return the job.

    The leader is followed until it has ended, also if another task leads meanwhile: most scripts print the same in
    every task. Then whoever leads is followed, from its start if it started later. `tail` counts for the first.
    """
    readers = Readers(client, job_id, streams)
    seen: list[str] = []
    with leaving_alone(job_id):
        while True:
            detail = client.job(job_id)
            chosen = detail.tasks if every_task else leaders(detail) if readers.idle else ()
            for task in chosen:
                if task.id not in seen:
                    first = every_task or not seen
                    readers.start(task.id, tail if first else _tail_of_next(detail, seen[-1], task))
                    seen.append(task.id)
            tail = None if seen else tail
            readers.write_for(_POLL_S, write)
            if detail.job.ended:
                readers.write_rest(write)
                return detail.job


def follow_to_end(
    client: Client, job_id: str, said: str, noun: Any, *, follow: bool, wait: bool, as_json: bool
) -> Job | None:
    """Say that a job was begun; return it when it has ended, or None at once if nobody wants to `follow` or `wait`.

    Args:
        said: that it was begun, in words.
        noun: what was begun, for JSON; not printed if another one will be.
    """
    if not (follow or wait):
        print_outcome(noun, f"{said}; `pliant logs -f {job_id}` follows it", as_json=as_json)
        return None
    say(said, stderr=True)
    return follow_job(client, job_id) if follow else wait_for_end(client, job_id)


def print_end(label: str, job: Job) -> None:
    """Say how a job has ended; end with code 1 unless it completed."""
    say(f"{label} {job.state.value}" + (f": {job.reason}" if job.reason else ""), stderr=True)
    if job.state is not JobState.COMPLETED:
        raise typer.Exit(1)


def _tail_of_next(detail: "JobDetail", last_id: str, task: Task) -> int | None:
    """Return how many of its lines to begin with: none, if it printed beside the one that was followed."""
    ends = [other.ended_at for other in detail.tasks if other.id == last_id]
    beside = not ends or ends[0] is None or task.started_at < ends[0]
    return 0 if beside else None


def leaders(detail: "JobDetail") -> tuple[Task, ...]:
    """Return the task that leads the newest generation that trained; nothing if there is none.

    Before one has, the first task that has not failed; if all have, the first.
    """
    tasks = {task.id: task for task in detail.tasks}
    for generation in reversed(detail.generations):
        if generation.switched_at is not None and generation.members and generation.members[0] in tasks:
            return (tasks[generation.members[0]],)
    return tuple(task for task in detail.tasks if not task.ended or task.exit_code == 0)[:1] or detail.tasks[:1]


def read_tasks(
    client: Client, job_id: str, task_ids: Sequence[str], *, streams: Sequence[str], tail: int | None
) -> Iterator[LogLine]:
    """Yield what tasks have written, one stream after the other. A stream that was never written has no lines."""
    there = {(log.task_id, log.stream) for log in client.logs(job_id)}
    for task_id in task_ids:
        for stream in streams:
            if (task_id, stream) in there:
                for line in client.read_log(job_id, task_id, stream, tail=tail):
                    yield LogLine(task_id=task_id, stream=stream, line=line)


class Readers:
    """Threads that each follow one stream of one task into one queue."""

    def __init__(self, client: Client, job_id: str, streams: Sequence[str]) -> None:
        self._client = client
        self._job_id = job_id
        self._streams = streams
        self._lines: queue.Queue[LogLine | End] = queue.Queue(maxsize=_QUEUED)
        self._num_open = 0

    @property
    def idle(self) -> bool:
        """Nothing is followed, or all that was has ended."""
        return self._num_open == 0

    def start(self, task_id: str, tail: int | None) -> None:
        """Follow a task, too."""
        for stream in self._streams:
            self._num_open += 1
            threading.Thread(target=self._read, args=(task_id, stream, tail), daemon=True).start()

    def write_for(self, seconds: float, write: Write) -> None:
        """Write what comes in so long.

        Raises:
            PliantError: a stream could not be read.
        """
        deadline = time.monotonic() + seconds
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                self._take(self._lines.get(timeout=left_s), write)
            except queue.Empty:
                return

    def write_rest(self, write: Write) -> None:
        """Write until every task that is followed has ended."""
        while self._num_open:
            self._take(self._lines.get(), write)

    def _take(self, got: LogLine | End, write: Write) -> None:
        if isinstance(got, LogLine):
            write(got)
            return
        self._num_open -= 1
        if got.error is not None:
            raise got.error

    def _read(self, task_id: str, stream: str, tail: int | None) -> None:
        error = None
        try:
            for line in self._client.read_log(self._job_id, task_id, stream, tail=tail, follow=True):
                self._lines.put(LogLine(task_id=task_id, stream=stream, line=line))
        except NotFound:
            error = None  # the task ended before it wrote anything
        except PliantError as caught:
            error = caught
        self._lines.put(End(error=error))
