"""Who held how many slots when, as a chart of stacked layers shows it: what is read, and what is answered.

Three nouns are read (`SlotRecords` with its `JobLayer`s and `CapacitySpan`s), and `SlotChart` is made of them by
`pliant.policy.slot_chart`. A slot that several jobs hold a part of each counts once for each of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.core.job import Job, JobId

HOUR_S: Final = 3600
MAX_TOP: Final = 50
"""Layers of a chart beside the sums of the rest."""

ChartBy = Literal["job", "trial", "endpoint", "search", "queue", "group", "user"]
"""What the layers are: each workload, or each and every trial of searches, or only endpoints or searches, or all of
a queue, a resource group or a user as one. Of a group all that its queues hold, which are in it now."""
LayerKind = Literal["job", "endpoint", "search", "queue", "group", "user"]

Step = tuple[float, JobId, int]
"""From this instant on the job held so many slots."""
HourSum = tuple[int, JobId, int, float]
"""Within this hour since the epoch what the job held changed by so many slots in all; these changes alone came to so
many slot-seconds by its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacitySpan:
    """While a server kept records, there were so many slots."""

    number: int
    """1, 2, 3, … in the order in which they began."""
    from_at: float
    until_at: float
    """A server was there until then at least; a running one moves it on every few seconds."""
    num_slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLayer:
    """What a chart, or a mark on it, has to know of a job."""

    job_id: JobId
    name: str
    owner: str
    queue: str
    search: str | None
    """The search that it is a trial of."""
    endpoint: str | None
    """The endpoint that it serves."""
    colour: int
    submitted_at: float
    started_at: float | None


def layer_of(job: Job) -> JobLayer:
    """Return what a chart has to know of a job."""
    return JobLayer(
        job_id=job.id,
        name=job.spec.name,
        owner=job.owner,
        queue=job.queue,
        search=None if job.spec.trial is None else job.spec.trial.search,
        endpoint=None if job.spec.endpoint is None else job.spec.endpoint.name,
        colour=job.colour,
        submitted_at=job.submitted_at,
        started_at=job.started_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecords:
    """What was recorded of a window, all of it at one instant."""

    held: Mapping[JobId, int]
    """What jobs held when the window begins; those that held something."""
    steps: Sequence[Step] = ()
    """In the order of time."""
    hours: Sequence[HourSum] = ()
    """Instead of steps, if the window begins with an hour and was read so."""
    spans: Sequence[CapacitySpan] = ()
    """That reach into the window, and the one before it, or else the first one of all."""
    layers: Mapping[JobId, JobLayer] = field(default_factory=dict)
    """Of all jobs that are named."""
    last_seq: int = 0
    """The newest event that was stored then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKey:
    """One layer of a chart. What tells it from others is its kind with its id."""

    id: str
    """A job's id; the name of an endpoint, a search, a queue or a user."""
    name: str
    kind: LayerKind
    colour: int
    """The same wherever it is shown, 0 to 23; of queues and users within one chart."""
    slot_seconds: float
    """What it held in the whole chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRest:
    """The layers that are not shown one by one, as one."""

    num_keys: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """A part of time, seconds since the epoch (UTC)."""

    from_at: float = field(metadata={"alias": "from"})
    until_at: float = field(metadata={"alias": "until"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotChart:
    """Slots over time in layers. Each list of values has one for each of `times`, which it holds until the next.

    Law: the values of a layer times the lengths of their buckets add up to its slot-seconds.
    """

    from_at: float = field(metadata={"alias": "from"})
    """Where the first bucket begins; it may be before what was asked for."""
    until_at: float = field(metadata={"alias": "until"})
    """Where the last bucket ends; never after `now`."""
    now: float
    width_s: int
    """Of every bucket but the last, seconds; they begin at multiples of it. 0 if it is exact."""
    exact: bool
    """`times` are the instants of the changes and nothing is averaged; else values are means over time."""
    times: tuple[float, ...]
    keys: tuple[LayerKey, ...]
    """From the bottom to the top: who had slots first, then endpoints."""
    values: tuple[tuple[float, ...], ...]
    """Slots of each key."""
    rest: LayerRest
    others: tuple[float, ...]
    """Slots of jobs that the caller may not see."""
    capacity: tuple[float, ...]
    """Slots that there were; where there is no record, as many as before."""
    gaps: tuple[TimeSpan, ...]
    """When no server kept records: what is shown there is what was so before."""
    last_seq: int
    """The newest event that is in it: those of kind `slots.changed` that come after it go on from here."""
