"""Asks where the threads of a job's tasks are, and gathers the answers wherever they come."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pliant.api.job_views import EventPage, StacksAsked
from pliant.client.http.connection import Connection, Params, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.nouns.logs import log_files
from pliant.core.event import Event, EventKind

_ASKED: Final = LazyAdapter(StacksAsked)
_EVENTS: Final = LazyAdapter(EventPage)
_POLL_S: Final = 0.1
_MAX_EVENTS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStacks:
    """Where the threads of one task are."""

    task_id: str
    line: str = ""
    """Of its main thread; empty if it is not known."""
    waits: bool | None = None
    """It waits for other tasks; None if it is not known."""
    text: str = ""
    """As Python shows it; empty if the task did not answer."""


def fetch_stacks(connection: Connection, job_id: str, *, timeout_s: float) -> tuple[TaskStacks, ...]:
    """Ask, and wait until all tasks have answered or the time is over.

    Raises:
        NotFound: no such job.
        Conflict: it has ended or has no process; or somebody asked a moment ago.
    """
    path = f"/jobs/{quote(job_id, safe='')}"
    before = {log.task_id: log.num_bytes for log in log_files(connection, job_id) if log.stream == "stderr"}
    asked = parse(_ASKED, connection.call("POST", f"{path}/stacks"))
    if asked.answer == "events":
        found = _from_events(connection, job_id, asked, time.monotonic() + timeout_s)
    else:
        found = _from_stderr(connection, job_id, asked.task_ids, before, time.monotonic() + timeout_s)
    return tuple(found.get(task_id, TaskStacks(task_id=task_id)) for task_id in asked.task_ids)


def recorded_stacks(events: Sequence[Event]) -> tuple[TaskStacks, ...]:
    """Return the newest stacks of every task that stand in these events of a job."""
    return tuple({stacks.task_id: stacks for event in events for stacks in _stacks_of(event)}.values())


def _stacks_of(event: Event) -> Iterator[TaskStacks]:
    if event.kind is EventKind.TASK_STACKS and event.task_id is not None:
        yield TaskStacks(
            task_id=event.task_id,
            line=str(event.data.get("at_line", "")),
            waits=bool(event.data.get("waits")),
            text=str(event.data.get("stacks", "")),
        )


def _from_events(connection: Connection, job_id: str, asked: StacksAsked, deadline: float) -> Mapping[str, TaskStacks]:
    found: dict[str, TaskStacks] = {}
    after = asked.after
    while True:
        params: Params = {"after": after, "limit": _MAX_EVENTS, "job_id": job_id}
        page = connection.get(_EVENTS, "/events", params)
        after = page.last
        found |= {stacks.task_id: stacks for stacks in recorded_stacks(page.events)}
        if found.keys() >= set(asked.task_ids) or time.monotonic() >= deadline:
            return found
        time.sleep(_POLL_S)


def _from_stderr(
    connection: Connection, job_id: str, task_ids: Sequence[str], before: Mapping[str, int], deadline: float
) -> Mapping[str, TaskStacks]:
    """Wait until the stderr of all tasks is longer than before, and does not grow any more; return what is new."""
    sizes: Mapping[str, int] = {}
    while time.monotonic() < deadline:
        time.sleep(_POLL_S)
        now = {log.task_id: log.num_bytes for log in log_files(connection, job_id) if log.stream == "stderr"}
        has_grown = all(now.get(task_id, 0) > before.get(task_id, 0) for task_id in task_ids)
        if has_grown and now == sizes:
            break
        sizes = now
    found = {}
    for task_id in task_ids:
        if (start := before.get(task_id, 0)) < sizes.get(task_id, 0):
            path = f"/jobs/{quote(job_id, safe='')}/logs/{quote(task_id, safe='')}/stderr"
            with connection.stream(path, {"offset": start}, timeout_s=connection.timeout_s) as chunks:
                text = b"".join(chunks).decode(errors="replace")
            found[task_id] = TaskStacks(task_id=task_id, text=text)
    return found
