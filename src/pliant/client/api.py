"""The client: one method per route of the REST API, nouns in and nouns out, errors as `pliant.core.errors`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from pliant.api.jobs import (
    ChartPage,
    ClusterView,
    EventPage,
    JobDetail,
    JobPage,
    JobPatch,
    JobRequest,
    LogFile,
    MetricPage,
    NotedJob,
    ResultFiles,
    ShareRequest,
    ShareView,
    UsagePage,
    Why,
)
from pliant.api.trust import Trust
from pliant.api.upkeep import RetentionRequest, RetentionView
from pliant.client.folders.result import fetch_result
from pliant.client.http.connection import Connection, Params, parse
from pliant.client.http.home import read_record, read_token
from pliant.client.http.patience import observe
from pliant.client.http.stream import stream_events
from pliant.client.nouns.arrays import ArrayClient
from pliant.client.nouns.backup import fetch_backup
from pliant.client.nouns.datasets import DatasetClient
from pliant.client.nouns.environments import EnvironmentClient
from pliant.client.nouns.logs import log_files, read_log
from pliant.client.nouns.models import ModelClient, TemplateClient
from pliant.client.nouns.people import PeopleClient
from pliant.client.nouns.queues import GroupClient, QueueClient
from pliant.client.nouns.stacks import TaskStacks, fetch_stacks, recorded_stacks
from pliant.client.nouns.submission import UPLOAD_TIMEOUT_S, send_code
from pliant.core.errors import Unavailable
from pliant.core.event import Event
from pliant.core.job import Job, Metric
from pliant.core.lifecycle import JobState
from pliant.core.upkeep import Sweep

_MAX_EVENTS: Final = 10_000

_JOB: Final = TypeAdapter(Job)
_NOTED_JOB: Final = TypeAdapter(NotedJob)
_RESULT_FILES: Final = TypeAdapter(ResultFiles)
_JOB_PAGE: Final = TypeAdapter(JobPage)
_JOB_DETAIL: Final = TypeAdapter(JobDetail)
_WHY: Final = TypeAdapter(Why)
_SHARES: Final = TypeAdapter(ShareView)
_EVENT_PAGE: Final = TypeAdapter(EventPage)
_CHART_PAGE: Final = TypeAdapter(ChartPage)
_RETENTION: Final = TypeAdapter(RetentionView)
_SWEEP: Final = TypeAdapter(Sweep)
_METRIC_PAGE: Final = TypeAdapter(MetricPage)
_USAGE_PAGE: Final = TypeAdapter(UsagePage)
_CLUSTER: Final = TypeAdapter(ClusterView)


class Client:
    """Talks to one Pliant server. Safe to share between threads.

    Every method raises `Unavailable` if the server does not answer, `Unauthorized` if the token does not open it,
    `NotFound` for an unknown job, `InvalidInput` with all problems, `Conflict` and `TooLarge`.

    Example:
        >>> with Client.from_home(Path.home() / ".pliant") as client:
        ...     job = client.submit(Path("train.py"), JobRequest(script="train.py", max_tasks=8))
        ...     print(client.wait(job.id, timeout_s=600).state)
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        trust: Trust | None = None,
    ) -> None:
        """Prepare to talk to the server at `url`; nothing is sent yet. Without a token we can only log on.

        Raises:
            InvalidInput: the URL, the token or the certificate cannot be one.
        """
        self._connection = Connection(url, token, timeout_s, transport, trust)
        self.arrays = ArrayClient(self._connection)
        self.datasets = DatasetClient(self._connection)
        self.people = PeopleClient(self._connection)
        self.environments = EnvironmentClient(self._connection)
        self.templates = TemplateClient(self._connection)
        self.models = ModelClient(self._connection)
        self.queues = QueueClient(self._connection)
        self.groups = GroupClient(self._connection)

    @classmethod
    def from_home(cls, home: Path, *, timeout_s: float = 30.0) -> Self:
        """Return a client of the server that runs for this home folder.

        Raises:
            Unavailable: none runs.
        """
        record = read_record(home)
        return cls(record.url, read_token(home), timeout_s=timeout_s, trust=record.trust)

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._connection.url

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, code: Path, request: JobRequest) -> NotedJob:
        """Pack a folder or a single file, upload it and submit a job that runs `request.script` in it.

        Its `notes` say what its owner should know of it.
        """
        return parse(_NOTED_JOB, send_code(self._connection, "/jobs", code, request))

    def jobs(self, *, states: Sequence[JobState] = (), before: str | None = None, limit: int = 100) -> JobPage:
        """Return jobs, newest first."""
        params: Params = {"limit": limit, "state": [state.value for state in states], "before": before}
        return self._connection.get(_JOB_PAGE, "/jobs", params)

    def job(self, job_id: str) -> JobDetail:
        """Return a job with its tasks and generations."""
        return self._connection.get(_JOB_DETAIL, _path(job_id))

    def change(self, job_id: str, patch: JobPatch) -> NotedJob:
        """Change the priority, minimum, maximum or queue of a job that waits or runs, or what it waits for."""
        return parse(_NOTED_JOB, self._connection.send("PATCH", _path(job_id), patch))

    def stop(self, job_id: str, *, now: bool = False) -> Job:
        """Ask a job to leave its slots at the next step boundary and end; or end it at once, without what it did since.

        Raises:
            Conflict: it has ended.
        """
        return parse(_JOB, self._connection.call("POST", f"{_path(job_id)}/stop", params={"now": now}))

    def stacks(self, job_id: str, *, timeout_s: float = 5.0) -> tuple[TaskStacks, ...]:
        """Return where the threads of every task of a job are; of one that does not answer in time nothing is known.

        Raises:
            Conflict: it has ended or has no process; or somebody asked a moment ago.
        """
        return fetch_stacks(self._connection, job_id, timeout_s=timeout_s)

    def recorded_stacks(self, job_id: str) -> tuple[TaskStacks, ...]:
        """Return the newest recorded stacks of every task of a job: it was stuck, or somebody asked."""
        return recorded_stacks(self._all_events(job_id))

    def why(self, job_id: str) -> Why:
        """Return why a job has the slots it has."""
        return self._connection.get(_WHY, f"{_path(job_id)}/why")

    def shares(self, job_id: str) -> ShareView:
        """Return with whom a job of ours is shared."""
        return self._connection.get(_SHARES, f"{_path(job_id)}/shares")

    def share(self, job_id: str, names: Sequence[str], *, revision: int | None = None) -> ShareView:
        """Let these people (`*`: everybody) see a job of ours, and nobody else.

        Raises:
            InvalidInput: with every name that no user has.
            Stale: the shares are not at this revision any more.
        """
        body = ShareRequest(shared_with=tuple(names))
        return parse(_SHARES, self._connection.send("PUT", f"{_path(job_id)}/shares", body, revision))

    def events(self, *, after: int = 0, job_id: str | None = None, limit: int = 1000) -> EventPage:
        """Return events in order."""
        params: Params = {"after": after, "limit": limit, "job_id": job_id}
        return self._connection.get(_EVENT_PAGE, "/events", params)

    def stream(self, *, after: int | None = None, job_id: str | None = None) -> Iterator[Event]:
        """Yield events as they happen, from number `after` on or from now; close the generator to end it.

        A broken connection is taken up again without losing or repeating an event.
        """
        start = self._last_seq() if after is None else after
        return stream_events(self._connection, after=start, job_id=job_id)

    def _all_events(self, job_id: str) -> list[Event]:
        found: list[Event] = []
        while (page := self.events(after=found[-1].seq if found else 0, job_id=job_id)).events:
            found += page.events
        return found

    def _last_seq(self) -> int:
        last = 0
        while (page := self.events(after=last, limit=_MAX_EVENTS)).events:
            last = page.last
        return last

    def chart(
        self,
        job_id: str,
        *,
        names: Sequence[str] = (),
        first_step: int = 0,
        last_step: int | None = None,
        max_buckets: int = 500,
    ) -> ChartPage:
        """Return series downsampled for a chart: buckets with count, mean and extremes of their points."""
        params: Params = {
            "name": list(names),
            "first_step": first_step,
            "last_step": last_step,
            "max_buckets": max_buckets,
        }
        return self._connection.get(_CHART_PAGE, f"{_path(job_id)}/chart", params)

    def retention(self) -> RetentionView:
        """Return how long what ended jobs left is kept."""
        return self._connection.get(_RETENTION, "/retention")

    def set_retention(self, rules: RetentionRequest, *, revision: int | None = None) -> RetentionView:
        """Replace the rules.

        Raises:
            Stale: they are not at this revision any more.
        """
        return parse(_RETENTION, self._connection.send("PUT", "/retention", rules, revision))

    def clean_up(self, *, dry_run: bool) -> Sweep:
        """Remove what the rules remove, or only tell what that would be."""
        response = self._connection.call(
            "POST",
            "/cleanup",
            params={"dry_run": dry_run},
            timeout_s=max(UPLOAD_TIMEOUT_S, self._connection.timeout_s),
        )
        return parse(_SWEEP, response)

    def backup(self, to: Path, *, results: bool = True, data: bool = True) -> Path:
        """Write a backup of all that the server holds to a new file of mode 600, whole or not at all.

        Raises:
            Conflict: the file exists.
            Unavailable: the server did not finish it, or the disk is full.
        """
        return fetch_backup(self._connection, to, results=results, data=data)

    def metrics(self, job_id: str, *, names: Sequence[str] = (), after_step: int = -1) -> MetricPage:
        """Return points of a job's series in order of step."""
        params: Params = {"after_step": after_step, "name": list(names)}
        return self._connection.get(_METRIC_PAGE, f"{_path(job_id)}/metrics", params)

    def series(self, job_id: str, name: str) -> Iterator[Metric]:
        """Yield all points of one series of a job, in order of step."""
        after = -1
        while points := self.metrics(job_id, names=[name], after_step=after).points:
            yield from points
            after = points[-1].step

    def usage(self, *, since: float = 0.0, job_id: str | None = None) -> UsagePage:
        """Return how many slots jobs held over time."""
        return self._connection.get(_USAGE_PAGE, "/usage", {"since": since, "job_id": job_id})

    def cluster(self) -> ClusterView:
        """Return the pool of slots and who holds them."""
        return self._connection.get(_CLUSTER, "/cluster")

    def logs(self, job_id: str) -> tuple[LogFile, ...]:
        """Return the log files of a job."""
        return log_files(self._connection, job_id)

    def read_log(
        self,
        job_id: str,
        task_id: str,
        stream: str,
        *,
        tail: int | None = None,
        follow: bool = False,
        offset: int = 0,
    ) -> Iterator[str]:
        """Yield the lines of a task's `stdout` or `stderr`: from `offset` bytes on, or the last `tail` lines.

        With `follow`, go on until the task has ended.
        """
        log = LogFile(task_id=task_id, stream=stream, num_bytes=0)
        return read_log(self._connection, log, job_id, tail=tail, follow=follow, offset=offset)

    def files(self, job_id: str) -> ResultFiles:
        """Return the files of a job's results, without fetching them."""
        return self._connection.get(_RESULT_FILES, f"{_path(job_id)}/files")

    def result(self, job_id: str, to: Path, *, only: Sequence[str] = ()) -> Path:
        """Fetch the results of a job (without its checkpoints) into the new or empty folder `to`.

        With `only`, those that one of these patterns fits, as in `.pliantignore`: `*.pt`, `model/`, `work/runs/`.
        """
        return fetch_result(self._connection, job_id, to, only)

    def shutdown(self) -> None:
        """Ask the server to drain its tasks and end; returns at once."""
        self._connection.call("POST", "/shutdown")

    def healthy(self) -> bool:
        """Tell whether the server answers and its loop runs."""
        try:
            self._connection.call("GET", "/healthz", timeout_s=min(5.0, self._connection.timeout_s))
        except Unavailable:
            return False
        return True

    def wait(
        self, job_id: str, *, timeout_s: float, poll_s: float = 0.5, on_poll: Callable[[Job], None] | None = None
    ) -> Job:
        """Wait until a job has ended and return it. A server that restarts meanwhile does not matter.

        Args:
            on_poll: gets the job every time that we have looked.

        Raises:
            TimeoutError: it has not ended after `timeout_s`.
        """
        for detail in observe(lambda: self.job(job_id), timeout_s=timeout_s, poll_s=poll_s):
            job = detail.job
            if on_poll is not None:
                on_poll(job)
            if job.ended:
                return job
        raise TimeoutError(f"{job_id} has not ended after {timeout_s:g} s; it is {job.state.value}")


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"
