"""What happened, in words that people read and fields that programs read. Append-only; numbered by the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pliant.core.job import JobId, TaskId

Value = str | int | float | bool | None


class EventKind(StrEnum):
    """The kinds of events, `noun.verb`."""

    SERVER_STARTED = "server.started"
    SERVER_STOPPING = "server.stopping"
    JOB_SUBMITTED = "job.submitted"
    JOB_CHANGED = "job.changed"
    """Priority, minimum, maximum, queue, tags or what it waits for were changed by a person. data: who, and each."""
    JOB_DELETED = "job.deleted"
    """An ended job was deleted by a person, with all other events of it."""
    JOB_PREPARED = "job.prepared"
    """Its environment is being made, or is ready."""
    JOB_HELD = "job.held"
    """It leaves its slots, or takes none, until it is released: it is a trial that waits at a rung."""
    JOB_RELEASED = "job.released"
    """What it was to run after is over, or nothing holds it any more."""
    JOB_STALLED = "job.stalled"
    """It does no step for much longer than usual. data: step, idle_s, limit_s."""
    JOB_RESUMED = "job.resumed"
    """It was stalled and goes on by itself. data: step, idle_s."""
    JOB_STATE = "job.state"
    """data: from, to; of a job that ends also num_slots, which it held."""
    JOB_NOTIFIED = "job.notified"
    """Who submitted it was sent a message that it is over. data: channel, delivery."""
    DECISION = "decision"
    """The scheduler changed how many tasks a job shall have. data: from, to, from_slots, num_slots. The message is the
    reason."""
    DEMAND = "demand"
    """The load of an endpoint needs another number of kernels. data: from, to. The message is the reason."""
    TASK_STARTED = "task.started"
    TASK_READY = "task.ready"
    TASK_STACKS = "task.stacks"
    """Where the threads of a task are. data: stacks (text, as Python shows it), waits, at_line."""
    TASK_ENTERED = "task.entered"
    """Somebody opened a shell beside a task. data: who."""
    TASK_LEFT = "task.left"
    TASK_LOST = "task.lost"
    GENERATION_FORMING = "generation.forming"
    GENERATION_SWITCHED = "generation.switched"
    """data: generation, size, from_size, step, pause_ms, redone_steps."""
    GENERATION_ABANDONED = "generation.abandoned"
    EPOCH_FINISHED = "epoch.finished"
    CHECKPOINT_SAVED = "checkpoint.saved"
    CHECKPOINT_FAILED = "checkpoint.failed"
    MODEL_SAVED = "model.saved"
    CLAIM_WEAKENED = "claim.weakened"
    """The results are worth less than they were, or than was asked for. data: from, to, step, fingerprint, reason."""
    CLEANED_UP = "cleaned_up"
    """Things of ended jobs were removed by the rules of this server. data: num_removals, num_bytes, num_failed."""
    SLOTS_CHANGED = "slots.changed"
    """A job holds another number of slots now: written with every point of its usage, for programs that draw it; people
    read the other events. data: num_slots, from_slots, and what a chart has to know of the job: name, owner, queue,
    colour, search and endpoint if it is of one. Who may not see the job reads data: change (how many slots more it
    holds, or less), and nothing of whose they are."""
    QUEUE_CHANGED = "queue.changed"
    """A queue or a resource group was made, changed or removed by a person. data: name, who."""
    MACHINE_CHANGED = "machine.changed"
    """A machine was drained or returned, or slots of it excluded or included, by a person. data: name, who."""
    ALGORITHM_CHANGED = "algorithm.changed"
    """What is shown of an algorithm is out of date: it was added, changed or removed. data: name. Like every event of
    a noun that has owners: only who may read the noun reads it, and the next event of the same noun takes its place.
    Who saw the noun and does not any more reads one of the same kind without a name."""
    DATASET_CHANGED = "dataset.changed"
    """The same of a data set, also while it is imported."""
    ENDPOINT_CHANGED = "endpoint.changed"
    """The same of an endpoint, but for its load; what its kernels do are events of their jobs."""
    ENVIRONMENT_CHANGED = "environment.changed"
    """The same of an environment, also when it was built."""
    MODEL_CHANGED = "model.changed"
    """The same of a model or one of its trainings. data: the model's name."""
    SEARCH_CHANGED = "search.changed"
    """The same of a search or any of its trials."""
    SHARE_CHANGED = "share.changed"
    """A job is shared with others than before. data: name (the job's id)."""
    TEMPLATE_CHANGED = "template.changed"
    """The same of a template."""
    UPLOAD_CHANGED = "upload.changed"
    """The uploads of whoever reads this have come further, or are others; once a second at most for each."""
    WARNING = "warning"


OF_NOUNS: Final = frozenset(
    {
        EventKind.ALGORITHM_CHANGED,
        EventKind.DATASET_CHANGED,
        EventKind.ENDPOINT_CHANGED,
        EventKind.ENVIRONMENT_CHANGED,
        EventKind.MODEL_CHANGED,
        EventKind.SEARCH_CHANGED,
        EventKind.SHARE_CHANGED,
        EventKind.TEMPLATE_CHANGED,
        EventKind.UPLOAD_CHANGED,
    }
)
"""Written with every change of a noun that belongs to somebody; only the newest of each noun is kept."""

FOR_PROGRAMS: Final = OF_NOUNS | {EventKind.SLOTS_CHANGED}
"""People are not shown these: other events, or the audit log, say the same in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened."""

    seq: int = 0
    """Given by the store: 1, 2, 3, … without gaps; 0 before it is stored."""
    at: float
    kind: EventKind
    message: str
    """One sentence."""
    job_id: JobId | None = None
    task_id: TaskId | None = None
    data: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """From `at` on, the job's processes held `num_slots` slots (a point of a step function)."""

    at: float
    job_id: JobId
    num_slots: int
