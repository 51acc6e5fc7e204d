"""All that a console shows first, in one answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.api.job_rows import WaitingView
from pliant.core.event import Event
from pliant.core.job import JobKind
from pliant.core.lifecycle import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointsBrief:
    """The endpoints that the caller sees, together."""

    num_endpoints: int
    num_serving: int
    requests_per_s: float | None
    """That were answered lately; null if no gateway has told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBrief:
    """A search that runs."""

    name: str
    owner: str
    num_running: int
    """Trials that train, or wait for slots."""
    num_ended: int
    max_trials: int | None
    """It begins so many at most; null: it has no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that holds no slots and would run if it had some, or once something else is over."""

    id: str
    name: str
    kind: JobKind
    owner: str
    queue: str
    waiting: WaitingView | None
    """Null: it is not slots that it waits for."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBrief:
    """A host."""

    node_id: str
    num_slots: int
    """Those that are excluded do not count, unless somebody still holds them."""
    num_used: int
    drained: bool
    """Nothing is started there until it is returned."""
    num_excluded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBrief:
    """The server."""

    version: str
    started_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What there is, as far as the caller sees it."""

    last_seq: int
    """The newest event that this is sure to show; the stream goes on after it."""
    now: float
    server: ServerBrief
    num_slots: int
    num_used: int
    """Slots that somebody holds, whoever may see them."""
    num_drained: int
    """Of the slots, those of machines that are drained."""
    num_excluded: int
    """Slots that are out of use."""
    jobs: Mapping[JobState, int]
    """How many trainings are in each state, trials not among them; states that none is in are left out."""
    samples_per_s: float
    """Of all trainings that run, trials among them."""
    endpoints: EndpointsBrief | None
    """Null: this server has none, or the caller may not look."""
    searches: tuple[SearchBrief, ...]
    """Those that run; a hundred at most."""
    waiting: tuple[WaitingJob, ...]
    """The first twenty."""
    num_waiting: int
    """All of them."""
    events: tuple[Event, ...]
    """The newest twenty that people want to know of, the newest last."""
    machines: tuple[MachineBrief, ...]
