"""Jobs at a server: submit, watch, change, stop, fetch; and a handle on one of them, for notebooks and scripts."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pliant.api.jobs import JobPatch, JobRequest, NotedJob
from pliant.api.view import fill
from pliant.client.folders.pack import Limits
from pliant.client.folders.result import fetch_result
from pliant.client.folders.script import find_script
from pliant.client.http.connection import Params, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.patience import observe
from pliant.client.http.stream import stream_events
from pliant.client.nouns.job_lists import JobLists
from pliant.client.nouns.noun import checked
from pliant.client.nouns.submission import DELETE_TIMEOUT_S, UPLOAD_TIMEOUT_S, send_code
from pliant.core.job import Job, JobId, JobSpec, Metric
from pliant.core.lifecycle import JobState

if TYPE_CHECKING:  # a submission needs none of them: their bodies take long to make, and tunnels need websockets
    from pliant.api.histograms import HistogramNames, HistogramPage
    from pliant.api.job_views import ChartPage, EventPage, JobDetail, LogFile, MetricPage, ResultFiles, Why
    from pliant.api.rerun import Difference, RerunJob
    from pliant.api.shares import ShareView
    from pliant.api.tunnel import ShellRequest, TunnelView
    from pliant.client.nouns.stacks import TaskStacks
    from pliant.core.event import Event
    from pliant.core.tunnel import Frame
    from pliant.tunnel.channels import TunnelChannels
    from pliant.tunnel.stream import TunnelStream

_MAX_EVENTS: Final = 10_000
_LOOK_S: Final = 0.3

_JOB: Final = LazyAdapter(Job)
_NOTED_JOB: Final = LazyAdapter(NotedJob)
_RERUN_JOB: "Final[LazyAdapter[RerunJob]]" = LazyAdapter("pliant.api.rerun:RerunJob")
_RESULT_FILES: "Final[LazyAdapter[ResultFiles]]" = LazyAdapter("pliant.api.job_views:ResultFiles")
_JOB_DETAIL: "Final[LazyAdapter[JobDetail]]" = LazyAdapter("pliant.api.job_views:JobDetail")
_WHY: "Final[LazyAdapter[Why]]" = LazyAdapter("pliant.api.job_views:Why")
_TUNNEL: "Final[LazyAdapter[TunnelView]]" = LazyAdapter("pliant.api.tunnel:TunnelView")
_SHARES: "Final[LazyAdapter[ShareView]]" = LazyAdapter("pliant.api.shares:ShareView")
_EVENT_PAGE: "Final[LazyAdapter[EventPage]]" = LazyAdapter("pliant.api.job_views:EventPage")
_CHART_PAGE: "Final[LazyAdapter[ChartPage]]" = LazyAdapter("pliant.api.job_views:ChartPage")
_METRIC_PAGE: "Final[LazyAdapter[MetricPage]]" = LazyAdapter("pliant.api.job_views:MetricPage")
_HISTOGRAM_NAMES: "Final[LazyAdapter[HistogramNames]]" = LazyAdapter("pliant.api.histograms:HistogramNames")
_HISTOGRAM_PAGE: "Final[LazyAdapter[HistogramPage]]" = LazyAdapter("pliant.api.histograms:HistogramPage")


class JobClient(JobLists):
    """The jobs of a server; errors as `Client` says."""

    def submit(
        self,
        code: Path | str,
        request: JobRequest | None = None,
        *,
        limits: Limits | None = None,
        also: Sequence[Path] = (),
        **options: Any,
    ) -> "JobHandle":
        """Pack a folder or a single file, upload it and submit a job that runs a script in it.

        Args:
            code: a folder of code, or one Python file. A folder is packed without .git, .venv and the like, and without
                what its .pliantignore names.
            request: all that is asked for; or leave it out and give its fields as keywords.
            limits: of what is sent; 64 MiB packed if left out, lest data are sent by mistake. A server takes 512.
            also: files from elsewhere that are to lie beside the code.
            options: the fields of `JobRequest`, which the options of `pliant submit` are named after: `max_tasks=8`,
                `args=["--lr", "0.1"]`, `env={"A": "b"}`, `dataset="flowers"`, `fixed=True`, `mail="ada@example.org"`,
                `tags={"lr": 0.1, "baseline": ""}`.
                Without `script` the file itself is run, or the folder's train.py, main.py or only Python file.

        Returns:
            A handle on the job: `job.wait()`, `job.lines()`, `job.result(folder)`. `job.notes` says what to know of it.

        Raises:
            InvalidInput: with everything that is wrong, in the words of the command.
            TooLarge: the code is over the limit.
            TypeError: both a request and options are given.
        """
        folder = Path(code).expanduser()
        if request is not None and options:
            raise TypeError("give a request or options, not both")
        asked = request or _request_of(folder, options)
        response = send_code(self._connection, "/jobs", folder, asked, limits, also=also)
        return JobHandle(self, parse(_NOTED_JOB, response))

    def rerun(self, job_id: str, **changes: Any) -> "JobHandle":
        """Submit a job's code and settings again, as it was submitted, but for changes: `args=["--lr", "0.01"]`.

        Args:
            job_id: which: one of ours, or one that is shared with us.
            changes: the fields of `JobRequest`; None for one that need not be given. Variables in `env` are added.

        Returns:
            A handle on the new job: `job.differences` says what is otherwise, `job.notes` which secrets were left out.

        Raises:
            Conflict: its code is not kept, or it trains a model.
            InvalidInput: with everything that is wrong with the new job.
        """
        from pliant.api.rerun import RerunRequest

        body = checked(RerunRequest, changes)
        answer = self._connection.send("POST", f"{_path(job_id)}/rerun", body, timeout_s=UPLOAD_TIMEOUT_S)
        return JobHandle(self, parse(_RERUN_JOB, answer))

    def handle(self, job_id: str) -> "JobHandle":
        """Return a handle on a job that was submitted earlier, perhaps by somebody else.

        Raises:
            NotFound: no job of that id that we may see.
        """
        return JobHandle(self, fill(NotedJob, self.job(job_id).job, notes=()))

    def job(self, job_id: str) -> "JobDetail":
        """Return a job with its tasks and generations."""
        return self._connection.get(_JOB_DETAIL, _path(job_id))

    def change(self, job_id: str, patch: JobPatch) -> NotedJob:
        """Change the priority, minimum, maximum or queue of a job that waits or runs, or the tags of any."""
        return parse(_NOTED_JOB, self._connection.send("PATCH", _path(job_id), patch))

    def stop(self, job_id: str, *, now: bool = False) -> Job:
        """Ask a job to leave its slots at the next step boundary and end; or end it at once, without what it did since.

        Raises:
            Conflict: it has ended.
        """
        return parse(_JOB, self._connection.call("POST", f"{_path(job_id)}/stop", params={"now": now}))

    def delete(self, job_id: str) -> None:
        """Delete a job that has ended, for good, with its results, checkpoints, logs and series.

        Raises:
            Conflict: it has not ended; or somebody needs it, and the message says who.
        """
        self._connection.call("DELETE", _path(job_id), timeout_s=DELETE_TIMEOUT_S)

    def stacks(self, job_id: str, *, timeout_s: float = 5.0) -> "tuple[TaskStacks, ...]":
        """Return where the threads of every task of a job are; of one that does not answer in time nothing is known.

        Raises:
            Conflict: it has ended or has no process; or somebody asked a moment ago.
        """
        from pliant.client.nouns.stacks import fetch_stacks

        return fetch_stacks(self._connection, job_id, timeout_s=timeout_s)

    def open_shell(self, job_id: str, request: "ShellRequest") -> "TunnelStream":
        """Start a shell, or a command, beside a task of a job; return what leads to it.

        Raises:
            InvalidInput: several tasks run, and the request does not say which is meant.
            Conflict: it has ended, or has no process.
            Unavailable: the server cannot be reached by WebSocket.
        """
        from pliant.client.http.tunnel import connect_tunnel
        from pliant.tunnel.stream import TunnelStream

        made = parse(_TUNNEL, self._connection.send("POST", f"{_path(job_id)}/shells", request))
        return TunnelStream(connect_tunnel(self._connection, made))

    def open_notebook(self, job_id: str, ready: Callable[[str], None]) -> "TunnelChannels":
        """Open a tunnel to the notebook server that a job runs; its `serve` passes on what comes until it is closed.

        Args:
            job_id: which.
            ready: called, by `serve`, with the token of the notebook server as soon as that answers.

        Raises:
            InvalidInput: it runs none.
            Conflict: the job has ended, or has no process.
            Unavailable: the server cannot be reached by WebSocket.
        """

        from pliant.client.http.tunnel import connect_tunnel
        from pliant.core.notebook import read_token
        from pliant.core.tunnel import FrameKind
        from pliant.tunnel.channels import TunnelChannels

        def take(frame: "Frame") -> None:
            if frame.kind is FrameKind.READY:
                ready(read_token(frame.content))

        made = parse(_TUNNEL, self._connection.call("POST", f"{_path(job_id)}/notebook"))
        return TunnelChannels(connect_tunnel(self._connection, made), note=take)

    def recorded_stacks(self, job_id: str) -> "tuple[TaskStacks, ...]":
        """Return the newest recorded stacks of every task of a job: it was stuck, or somebody asked."""
        from pliant.client.nouns.stacks import recorded_stacks

        return recorded_stacks(self._all_events(job_id))

    def why(self, job_id: str) -> "Why":
        """Return why a job has the slots it has."""
        return self._connection.get(_WHY, f"{_path(job_id)}/why")

    def shares(self, job_id: str) -> "ShareView":
        """Return with whom a job of ours is shared."""
        return self._connection.get(_SHARES, f"{_path(job_id)}/shares")

    def share(self, job_id: str, names: Sequence[str], *, revision: int | None = None) -> "ShareView":
        """Let these people (`*`: everybody) see a job of ours, and nobody else.

        Raises:
            InvalidInput: with every name that no user has.
            Stale: the shares are not at this revision any more.
        """
        from pliant.api.shares import ShareRequest

        body = ShareRequest(shared_with=tuple(names))
        return parse(_SHARES, self._connection.send("PUT", f"{_path(job_id)}/shares", body, revision))

    def events(self, *, after: int = 0, job_id: str | None = None, limit: int = 1000) -> "EventPage":
        """Return events in order."""
        params: Params = {"after": after, "limit": limit, "job_id": job_id}
        return self._connection.get(_EVENT_PAGE, "/events", params)

    def stream(self, *, after: int | None = None, job_id: str | None = None) -> "Iterator[Event]":
        """Yield events as they happen, from number `after` on or from now; close the generator to end it.

        A broken connection is taken up again without losing or repeating an event.
        """
        start = self._last_seq() if after is None else after
        return stream_events(self._connection, after=start, job_id=job_id)

    def _all_events(self, job_id: str) -> "list[Event]":
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
    ) -> "ChartPage":
        """Return series downsampled for a chart: buckets with count, mean and extremes of their points."""
        params: Params = {
            "name": list(names),
            "first_step": first_step,
            "last_step": last_step,
            "max_buckets": max_buckets,
        }
        return self._connection.get(_CHART_PAGE, f"{_path(job_id)}/chart", params)

    def metrics(self, job_id: str, *, names: Sequence[str] = (), after_step: int = -1) -> "MetricPage":
        """Return points of a job's series in order of step."""
        params: Params = {"after_step": after_step, "name": list(names)}
        return self._connection.get(_METRIC_PAGE, f"{_path(job_id)}/metrics", params)

    def series(self, job_id: str, name: str) -> Iterator[Metric]:
        """Yield all points of one series of a job, in order of step."""
        after = -1
        while points := self.metrics(job_id, names=[name], after_step=after).points:
            yield from points
            after = points[-1].step

    def histogram_names(self, job_id: str) -> "HistogramNames":
        """Return what a job has logged histograms of, such as `weights/fc1.weight`."""
        return self._connection.get(_HISTOGRAM_NAMES, f"{_path(job_id)}/histograms")

    def histograms(self, job_id: str, name: str) -> "HistogramPage":
        """Return the histograms of one name in order of step: 64 at most, evenly over the training."""
        return self._connection.get(_HISTOGRAM_PAGE, f"{_path(job_id)}/histograms/{quote(name)}")

    def logs(self, job_id: str) -> "tuple[LogFile, ...]":
        """Return the log files of a job."""
        from pliant.client.nouns.logs import log_files

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
        from pliant.api.job_views import LogFile
        from pliant.client.nouns.logs import read_log

        log = LogFile(task_id=task_id, stream=stream, num_bytes=0)
        return read_log(self._connection, log, job_id, tail=tail, follow=follow, offset=offset)

    def files(self, job_id: str) -> "ResultFiles":
        """Return the files of a job's results, without fetching them."""
        return self._connection.get(_RESULT_FILES, f"{_path(job_id)}/files")

    def result(self, job_id: str, to: Path, *, only: Sequence[str] = ()) -> Path:
        """Fetch the results of a job (without its checkpoints) into the new or empty folder `to`.

        With `only`, those that one of these patterns fits, as in `.pliantignore`: `*.pt`, `model/`, `work/runs/`.
        """
        return fetch_result(self._connection, job_id, to, only)

    def wait(
        self,
        job_id: str,
        *,
        timeout_s: float = math.inf,
        poll_s: float = 0.5,
        on_poll: Callable[[Job], None] | None = None,
    ) -> Job:
        """Wait until a job has ended and return it. A server that restarts meanwhile does not matter.

        Args:
            job_id: which.
            timeout_s: how long at most, in seconds.
            poll_s: seconds between two looks.
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


class JobHandle:
    """One job of a server. Every method asks the server; errors are those of the method of `Client` of that name."""

    def __init__(self, client: JobClient, job: NotedJob) -> None:
        self._client = client
        self.job = job
        """As it was submitted, or found."""

    def __repr__(self) -> str:
        return f"<{self.id} ({self.job.spec.name})>"

    @property
    def id(self) -> JobId:
        """Such as `job-3`."""
        return self.job.id

    @property
    def spec(self) -> JobSpec:
        """What was asked for."""
        return self.job.spec

    @property
    def notes(self) -> tuple[str, ...]:
        """What its owner should know of the submission, in sentences."""
        return self.job.notes

    @property
    def rerun_of(self) -> JobId | None:
        """Which job it runs again; None if it runs none."""
        return self.job.rerun_of

    @property
    def differences(self) -> "tuple[Difference, ...]":
        """What is otherwise than in the job that it runs again; nothing if it runs none again."""
        return getattr(self.job, "differences", ())

    @property
    def state(self) -> JobState:
        """Its present state."""
        return self.show().job.state

    def show(self) -> "JobDetail":
        """Return the job as it is now, with its tasks and generations."""
        return self._client.job(self.id)

    def wait(self, *, timeout_s: float = math.inf, on_poll: Callable[[Job], None] | None = None) -> Job:
        """Wait until it has ended and return it; its `state` and `reason` say how.

        Raises:
            TimeoutError: it has not ended after `timeout_s` seconds.
        """
        return self._client.wait(self.id, timeout_s=timeout_s, on_poll=on_poll)

    def lines(
        self, stream: str = "stdout", *, task_id: str | None = None, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """Yield the lines that a task has written: that which leads, unless one is named.

        With `follow`, wait for it to start and go on until it has ended. Without, nothing if it has not started.
        """
        while (chosen := task_id or self._leader()) is None:
            if not follow or self.show().job.ended:
                return
            time.sleep(_LOOK_S)
        yield from self._client.read_log(self.id, chosen, stream, tail=tail, follow=follow)

    def _leader(self) -> str | None:
        detail = self.show()
        members = detail.generations[-1].members if detail.generations else ()
        if members:
            return members[0]
        started_at = max((task.started_at for task in detail.tasks), default=0.0)
        return next((task.id for task in detail.tasks if task.started_at == started_at), None)

    def events(self, *, follow: bool = False) -> "Iterator[Event]":
        """Yield what happened to it, in order; with `follow` also what happens from now on, until it has ended."""
        from pliant.core.event import EventKind

        seen = 0
        while page := self._client.events(after=seen, job_id=self.id).events:
            yield from page
            seen = page[-1].seq
        if not follow or self.show().job.ended:
            return
        for event in self._client.stream(after=seen, job_id=self.id):
            yield event
            if event.kind is EventKind.JOB_STATE and event.data.get("to") in _ENDS:
                return

    def series(self, name: str = "loss") -> Iterator[Metric]:
        """Yield all points of one of its series, in order of step."""
        return self._client.series(self.id, name)

    def why(self) -> "Why":
        """Return why it has the slots it has."""
        return self._client.why(self.id)

    def stacks(self, *, timeout_s: float = 5.0) -> "tuple[TaskStacks, ...]":
        """Return where the threads of its tasks are; `timeout_s` in seconds."""
        return self._client.stacks(self.id, timeout_s=timeout_s)

    def change(self, **fields: Any) -> NotedJob:
        """Change its `priority`, `min_tasks`, `max_tasks`, `queue`, what it runs `after`, or its `tags` (None: off)."""
        return self._client.change(self.id, checked(JobPatch, fields))

    def rerun(self, **changes: Any) -> "JobHandle":
        """Submit it again, but for changes, and return a handle on the new job."""
        return self._client.rerun(self.id, **changes)

    def share(self, *names: str) -> "ShareView":
        """Let these people (`*`: everybody) see it, and nobody else."""
        return self._client.share(self.id, names)

    def stop(self, *, now: bool = False) -> Job:
        """Ask it to end at the next step boundary; or end it at once, without what it did since."""
        return self._client.stop(self.id, now=now)

    def delete(self) -> None:
        """Delete it for good, with its results; it has ended."""
        self._client.delete(self.id)

    def files(self) -> "ResultFiles":
        """Return the files of its results, without fetching them."""
        return self._client.files(self.id)

    def result(self, to: Path | str, *, only: Sequence[str] = ()) -> Path:
        """Fetch its results into the new or empty folder `to`; with `only`, those that a pattern fits."""
        return self._client.result(self.id, Path(to), only=only)


_ENDS: Final = frozenset(state.value for state in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED))


def _request_of(code: Path, options: dict[str, Any]) -> JobRequest:
    script = options.get("script") or find_script(code)
    return checked(JobRequest, {**options, "script": script})


def _path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"
