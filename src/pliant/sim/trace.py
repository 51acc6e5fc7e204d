"""What is to happen in a simulated pool: jobs that arrive, changes by people, tasks that die. Read from JSON, or made.

Queues and resource groups are those of the REST API; hosts are named node-1, node-2, …

A trace is a value; the same seed makes the same day. It knows no policy.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Annotated, Final

from pydantic import Field, ValidationError

from pliant.api.faults import problems_of
from pliant.api.jobs import JobPatch
from pliant.api.queues import GroupRequest, QueueRequest
from pliant.api.request import Request
from pliant.control.kinds import KINDS
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import DEFAULT_PRIORITY, JobSpec, NumTasks, Priority
from pliant.core.queue import DEFAULT_GROUP, DEFAULT_QUEUE

_MIN_VIRTUAL_WORKERS = 8
MAX_NODES: Final = 10_000
MAX_SLOTS: Final = 1000
"""Of each node."""
Instant = Annotated[float, Field(ge=0, le=31 * 86_400, allow_inf_nan=False)]


class Arrival(Request):
    """A job is submitted."""

    name: Annotated[str, Field(min_length=1, max_length=40)]
    at_s: Instant
    slot_hours: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]
    """Its work: with n slots it trains for an n-th of this."""
    min_tasks: NumTasks = 1
    max_tasks: NumTasks = 1
    slots_per_task: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    priority: Priority = DEFAULT_PRIORITY
    queue: str = DEFAULT_QUEUE
    fixed: Annotated[bool, Field(strict=True)] = False
    """It has `max_tasks` processes or none, which is its minimum too, and starts from the beginning after a loss."""
    after: tuple[str, ...] = ()
    """Names of jobs that have arrived before it and must have completed before it starts."""
    after_any: tuple[str, ...] = ()
    """The same of jobs that must have ended."""

    def spec(self) -> JobSpec:
        """Return what is submitted, but for what it runs after: that has ids only once it has arrived."""
        given = self.model_dump(exclude={"at_s", "slot_hours", "after", "after_any"})
        return JobSpec(**given, script="train.py", virtual_workers=max(_MIN_VIRTUAL_WORKERS, self.max_tasks))


class Later(Request):
    """Something happens to a job that has arrived."""

    at_s: Instant
    job: str


class Change(Later):
    """A person changes it; nothing happens if it has ended by then."""

    set: JobPatch


class ScriptedLoss(Later):
    """Its newest member is killed; nothing happens if it holds no slots then."""


class Trace(Request):
    """A pool and what happens to it."""

    nodes: Annotated[int, Field(ge=1, le=MAX_NODES, strict=True)] = 1
    slots: Annotated[int, Field(ge=1, le=MAX_SLOTS, strict=True)] = 8
    """Of each node."""
    groups: tuple[GroupRequest, ...] = ()
    queues: tuple[QueueRequest, ...] = ()
    """Beside the default queue. One that names no policy has the one that is played."""
    jobs: Annotated[tuple[Arrival, ...], Field(max_length=20_000)]
    changes: tuple[Change, ...] = ()
    losses: tuple[ScriptedLoss, ...] = ()

    @property
    def num_slots(self) -> int:
        return self.nodes * self.slots


def parse(text: str | bytes) -> Trace:
    """Return the trace in a JSON text.

    Raises:
        InvalidInput: with everything that is wrong with its shape.
    """
    try:
        return Trace.model_validate_json(text)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def on_pool(trace: Trace, nodes: int | None, slots: int | None) -> Trace:
    """Return the trace on a pool of another size, checked; None keeps what it says.

    Raises:
        InvalidInput: with everything in it that does not fit together.
    """
    trace = trace.model_copy(update={"nodes": nodes or trace.nodes, "slots": slots or trace.slots})
    if problems := (
        *_queue_problems(trace),
        *_arrival_problems(trace),
        *_order_problems(trace),
        *_reference_problems(trace),
    ):
        raise InvalidInput(*problems)
    return trace


def _queue_problems(trace: Trace) -> Iterator[Problem]:
    groups, queues = [DEFAULT_GROUP], [DEFAULT_QUEUE]
    for number, group in enumerate(trace.groups):
        yield from _taken(f"groups.{number}.name", group.name, groups)
        groups.append(group.name)
    for number, queue in enumerate(trace.queues):
        yield from _taken(f"queues.{number}.name", queue.name, queues)
        yield from _unknown(f"queues.{number}.resource_group", "resource group", queue.resource_group, groups)
        queues.append(queue.name)
        for field in ("default_environment", "run_as"):
            if getattr(queue, field) is not None:
                message = "means nothing here, where no process runs; leave it out"
                yield Problem(field=f"queues.{number}.{field}", message=message)
    for number, job in enumerate(trace.jobs):
        yield from _unknown(f"jobs.{number}.queue", "queue", job.queue, queues)


def _taken(field: str, name: str, names: Sequence[str]) -> Iterator[Problem]:
    if name in names:
        yield Problem(field=field, message=f"{name!r} is there already; choose another name")


def _unknown(field: str, what: str, name: str, names: Sequence[str]) -> Iterator[Problem]:
    if name not in names:
        yield Problem(field=field, message=f"there is no {what} {name!r}; there are {', '.join(names)}")


def _arrival_problems(trace: Trace) -> Iterator[Problem]:
    if not trace.jobs:
        yield Problem(field="jobs", message="there are none; give one at least")
    seen: set[str] = set()
    for number, job in enumerate(trace.jobs):
        if job.name in seen:
            yield Problem(field=f"jobs.{number}.name", message=f"{job.name!r} is there twice; rename one")
        seen.add(job.name)
        spec = job.spec()
        for problem in KINDS.of_spec(spec).problems(spec):
            yield Problem(field=f"jobs.{number}.{problem.field}", message=problem.message)
        if trace.slots // job.slots_per_task * trace.nodes < job.min_tasks:
            message = (
                f"{job.min_tasks} tasks of {job.slots_per_task} slots never fit on {trace.nodes} nodes of "
                f"{trace.slots} slots; lower the minimum or enlarge the pool"
            )
            yield Problem(field=f"jobs.{number}.min_tasks", message=message)


def _order_problems(trace: Trace) -> Iterator[Problem]:
    """Yield what a job is to run after that has not arrived before it; at one instant they come in the list's order."""
    arrived: set[str] = set()
    for number, job in sorted(enumerate(trace.jobs), key=lambda numbered: numbered[1].at_s):
        for field in ("after", "after_any"):
            for name in getattr(job, field):
                if name not in arrived:
                    message = f"no job {name!r} arrives before {job.name!r}; name one that does"
                    yield Problem(field=f"jobs.{number}.{field}", message=message)
        arrived.add(job.name)


def _reference_problems(trace: Trace) -> Iterator[Problem]:
    arrivals = {job.name: job.at_s for job in trace.jobs}
    lines: list[tuple[str, Later]] = [(f"changes.{n}", change) for n, change in enumerate(trace.changes)]
    for place, line in [*lines, *((f"losses.{n}", loss) for n, loss in enumerate(trace.losses))]:
        if line.job not in arrivals:
            message = f"no job is named {line.job!r}; there are {', '.join(sorted(arrivals)[:8])}"
            yield Problem(field=f"{place}.job", message=message)
        elif line.at_s < arrivals[line.job]:
            message = f"{line.at_s:g} is before {line.job!r} arrives at {arrivals[line.job]:g}; give a later instant"
            yield Problem(field=f"{place}.at_s", message=message)


def story() -> Trace:
    """Return a long job on 8 slots, and a short one that does not wait for its end.

    A needs 8 hours on all slots. After an hour B comes, 20 minutes of work for all slots; its priority is doubled
    after 10 minutes, and 10 minutes later one of its tasks dies.
    """
    return Trace(
        jobs=(
            Arrival(name="A", at_s=0, slot_hours=64, max_tasks=8),
            Arrival(name="B", at_s=3600, slot_hours=8 / 3, max_tasks=8),
        ),
        changes=(Change(at_s=4200, job="B", set=JobPatch(priority=10_000)),),
        losses=(ScriptedLoss(at_s=4800, job="B"),),
    )


def day(seed: int, num_jobs: int = 36) -> Trace:
    """Return a mixed day on two nodes of 8 slots: small and large jobs, two urgent ones, and five losses."""
    random = Random(seed)
    jobs = tuple(
        Arrival(
            name=f"job-{number:02}",
            at_s=at_s,
            slot_hours=round(random.lognormvariate(1.5, 1.0), 2),
            min_tasks=min_tasks,
            max_tasks=random.choice((2, 4, 8, 16)),
            slots_per_task=random.choice((1, 1, 1, 2)),
            priority=random.choice((2500, 5000, 5000, 10_000)),
        )
        for number, (at_s, min_tasks) in enumerate(
            sorted((float(random.randrange(20 * 3600)), random.choice((1, 1, 2))) for _ in range(num_jobs)), start=1
        )
    )
    urgent, unlucky = random.sample(jobs, 2), random.sample(jobs, 5)
    return Trace(
        nodes=2,
        slots=8,
        jobs=jobs,
        changes=tuple(Change(at_s=job.at_s + 900, job=job.name, set=JobPatch(priority=10_000)) for job in urgent),
        losses=tuple(ScriptedLoss(at_s=job.at_s + random.randrange(60, 3600), job=job.name) for job in unlucky),
    )
