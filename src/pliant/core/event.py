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
    colour, search and endpoint if it is of one."""
    QUEUE_CHANGED = "queue.changed"
    """A queue or a resource group was made, changed or removed by a person. data: name, who."""
    MACHINE_CHANGED = "machine.changed"
    """A machine was drained or returned by a person. data: name, who."""
    WARNING = "warning"


FOR_PROGRAMS: Final = frozenset({EventKind.SLOTS_CHANGED})
"""People are not shown these: other events say the same in words."""


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
