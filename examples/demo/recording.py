"""What the demo has seen so far, through the public API: the only thing that its threads share.

`Recording` collects, `Seen` is an immutable picture of it at one instant; screen, chart and scenario read `Seen` alone.
"""

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from examples.demo.timeline import Timeline, held_by_job, working_by_job
from pliant.api.job_views import JobDetail
from pliant.api.searches import SearchView
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import JobId, TaskId
from pliant.core.lifecycle import GenerationState


class DemoFailed(Exception):
    """The demo did not go as it must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One act of the scenario."""

    number: int
    title: str
    began_at: float
    ended_at: float | None = None
    now_text: str = ""
    """What the stage is waiting for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one request to an endpoint; times are seconds since the epoch."""

    intended_at: float
    """When it was to be sent, whatever became of those before it."""
    sent_at: float
    done_at: float
    status: int
    """Of HTTP; 0 if there was no answer."""
    fault: str = ""
    """Why it failed, or how the answer is wrong; empty if it is right."""

    @property
    def is_right(self) -> bool:
        """Whether it came, and says what it must."""
        return self.status == HTTPStatus.OK and not self.fault

    @property
    def latency_s(self) -> float:
        """Return the time from when it was to be sent, so that a queue before the sender counts, too."""
        return self.done_at - self.intended_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that was seen up to `now`."""

    began_at: float
    now: float
    num_slots: int
    labels: Mapping[JobId, str]
    """The jobs in the order of submission, with the letters that people see."""
    details: Mapping[JobId, JobDetail]
    events: tuple[Event, ...]
    usage: tuple[Usage, ...]
    stages: tuple[Stage, ...]
    endpoint_id: JobId | None = None
    """The one among the jobs that answers requests."""
    answers: tuple[Answer, ...] = ()
    """In the order in which they came."""
    search: SearchView | None = None
    """The newest one, as it is now."""

    def elapsed_s(self, at: float) -> float:
        """Return the seconds from the start of the demo to `at`."""
        return at - self.began_at

    def name(self, job_id: JobId) -> str:
        """Return what people call a job: the first word of its label, so that `A alone` is A, too."""
        return self.labels[job_id].split()[0]

    def hue(self, job_id: JobId) -> int:
        """Return the number of a job's colour: one for every name, in the order of submission."""
        return list(dict.fromkeys(map(self.name, self.labels))).index(self.name(job_id))

    def kernels_at(self, at: float) -> int:
        """Return how many kernels of the endpoint answered at an instant."""
        return 0 if self.endpoint_id is None else self.working_at(self.endpoint_id, at)

    def events_of(self, kind: EventKind, job_id: JobId | None = None) -> tuple[Event, ...]:
        """Return the events of one kind, oldest first."""
        return tuple(e for e in self.events if e.kind is kind and job_id in (None, e.job_id))

    def members(self, job_id: JobId) -> tuple[TaskId, ...]:
        """Return the tasks that the job trains with now, its leader first."""
        detail = self.details.get(job_id)
        if detail is None or detail.job.ended:
            return ()
        active = [g for g in detail.generations if g.state is GenerationState.ACTIVE]
        return active[-1].members if active else ()

    def size(self, job_id: JobId) -> int:
        """Return how many tasks the job trains with now; 0 if it does not train."""
        return len(self.members(job_id))

    def slots_at(self, job_id: JobId, at: float) -> int:
        """Return how many slots the job's processes held at an instant."""
        return self.held().get(job_id, Timeline()).at(at)

    def working_at(self, job_id: JobId, at: float) -> int:
        """Return how many of those slots trained, or answered; in the others a process began, or was to leave."""
        return min(self.working().get(job_id, Timeline()).at(at), self.slots_at(job_id, at))

    def held(self) -> Mapping[JobId, Timeline]:
        """Return the slots that each job held: for those who ask of many instants."""
        return held_by_job(self.usage)

    def working(self) -> Mapping[JobId, Timeline]:
        """Return the tasks of each job that trained, or answered."""
        return working_by_job(self.events, self.endpoint_id)

    def is_trial(self, job_id: JobId) -> bool:
        """Tell whether a job is the trial of a search."""
        detail = self.details.get(job_id)
        return detail is not None and detail.job.spec.trial is not None


def quantile(values: Iterable[float], part: float) -> float:
    """Return the least of the values that so large a part of them does not exceed; NaN if there are none.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    ordered = sorted(values)
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)] if ordered else math.nan


class Recording:
    """Collects what the demo's threads see; every method may be called from any thread."""

    def __init__(self, *, began_at: float, num_slots: int) -> None:
        self._lock = threading.Lock()
        self._seen = Seen(
            began_at=began_at, now=began_at, num_slots=num_slots, labels={}, details={}, events=(), usage=(), stages=()
        )
        self._error: BaseException | None = None

    def at(self, now: float) -> Seen:
        """Return what was seen.

        Raises:
            DemoFailed: a watching thread has ended; the message says of what.
        """
        with self._lock:
            if isinstance(self._error, DemoFailed):
                raise self._error
            if self._error is not None:
                raise DemoFailed(f"lost sight of the server: {self._error}") from self._error
            self._seen = replace(self._seen, now=now)
            return self._seen

    def add_job(self, job_id: JobId, label: str) -> None:
        """Take note of a job that was submitted."""
        with self._lock:
            self._seen = replace(self._seen, labels={**self._seen.labels, job_id: label})

    def add_endpoint(self, job_id: JobId, label: str) -> None:
        """Take note of the job that runs an endpoint's kernels."""
        self.add_job(job_id, label)
        with self._lock:
            self._seen = replace(self._seen, endpoint_id=job_id)

    def add_answer(self, answer: Answer) -> None:
        """Append what became of a request."""
        with self._lock:
            self._seen = replace(self._seen, answers=(*self._seen.answers, answer))

    def add_event(self, event: Event) -> None:
        """Append an event; one that is known already changes nothing."""
        with self._lock:
            if not self._seen.events or event.seq > self._seen.events[-1].seq:
                self._seen = replace(self._seen, events=(*self._seen.events, event))

    @property
    def details(self) -> Mapping[JobId, JobDetail]:
        """What the server said of the jobs last."""
        with self._lock:
            return self._seen.details

    def set_state(self, details: Sequence[JobDetail], usage: Sequence[Usage]) -> None:
        """Replace what the server says of jobs and slots."""
        with self._lock:
            self._seen = replace(self._seen, details={d.job.id: d for d in details}, usage=tuple(usage))

    def set_search(self, search: SearchView) -> None:
        """Replace what the server says of the newest search."""
        with self._lock:
            self._seen = replace(self._seen, search=search)

    def set_stage(self, stage: Stage) -> None:
        """Add a stage or replace the one with its number."""
        with self._lock:
            others = [s for s in self._seen.stages if s.number != stage.number]
            stages = tuple(sorted([*others, stage], key=lambda s: s.number))
            self._seen = replace(self._seen, stages=stages)

    def fail(self, error: BaseException) -> None:
        """Tell whoever looks next that a watching thread has ended."""
        with self._lock:
            self._error = self._error or error
