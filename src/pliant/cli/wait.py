"""Waits for a job, and says on stderr how far it is: on a terminal in one line that changes, else in one a change."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from pliant.cli import formatting
from pliant.cli.screen import console, say
from pliant.client import Client
from pliant.core.job import Job


def wait_for_end(client: Client, job_id: str) -> Job:
    """Return a job when it has ended."""
    with leaving_alone(job_id), StatusLine() as line:
        return client.wait(job_id, timeout_s=math.inf, on_poll=line.show)


@contextmanager
def leaving_alone(job_id: str, back: str = "`pliant logs -f {}` follows it") -> Iterator[None]:
    """Say at Ctrl-C that the job goes on without us, how to come back to it, and how to end it."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\n{job_id} goes on: {back.format(job_id)}, `pliant stop {job_id}` ends it", stderr=True)
        raise


class StatusLine:
    """How far a job is, as long as its block runs."""

    def __init__(self) -> None:
        from rich.live import Live  # draws, when a server was asked already

        terminal = console(stderr=True)
        self._live = Live(console=terminal, transient=True, auto_refresh=False) if terminal.is_terminal else None
        self._said: object = None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, job: Job) -> None:
        """Show how far it is; where lines stay, only if it is in another state, epoch or size than before."""
        if job.ended:
            return  # who waits says how it has ended
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(status(job), no_wrap=True, overflow="ellipsis"), refresh=True)
            return
        change = (job.state, job.num_slots, None if job.progress is None else job.progress.epoch)
        if change != self._said:
            self._said = change
            say(status(job), stderr=True)


def status(job: Job) -> str:
    """Return how far a job is, in a line."""
    slots = f" on {formatting.count_of(job.num_slots, 'slot')}" if job.num_slots else ""
    parts = []
    if job.progress is not None:
        parts.append(f"epoch {formatting.epochs(job.progress)} ({formatting.percent(job.progress)})")
        if job.progress.loss is not None:
            parts.append(f"loss {formatting.loss(job.progress)}")
        if (left := formatting.time_left(job)) != formatting.NOTHING:
            parts.append(f"{left} left")
    elif not job.num_slots and job.why:
        parts.append(job.why)
    return f"{job.id} is {job.state.value}{slots}" + (f": {', '.join(parts)}" if parts else "")
