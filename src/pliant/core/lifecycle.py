"""The lifecycles of jobs, tasks and generations, one table each.

A table maps a state to the events that are legal in it and the state that each leads to. An event that is not listed
raises `IllegalTransition` and changes nothing. A state with an empty row is final.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from pliant.core.errors import IllegalTransition

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class JobState(StrEnum):
    """Where a job is in its life."""

    PENDING = "pending"
    """Waits for its first slots."""
    STARTING = "starting"
    """Holds slots; no step has been trained yet in this run of it."""
    RUNNING = "running"
    """Trains."""
    PAUSED = "paused"
    """Its state is saved and it holds no slots; it goes on when slots free up."""
    STOPPING = "stopping"
    """Leaves its slots at the next step boundary because a person asked."""
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


class JobEvent(StrEnum):
    """What can happen to a job."""

    GRANT = "grant"
    """Its first task was started."""
    TRAIN = "train"
    """A generation of its tasks is training."""
    VACATE = "vacate"
    """Its last task left or was lost, with work still to do."""
    STOP = "stop"
    """A person asked for its end."""
    VANISH = "vanish"
    """The last task of a stopping job is gone."""
    COMPLETE = "complete"
    FAIL = "fail"


class TaskState(StrEnum):
    """Where a task (one process on its slots) is in its life."""

    STARTING = "starting"
    """Ordered from the cluster; the process may not exist yet, or is importing and building its model."""
    WARM = "warm"
    """Connected, its model built: can join a generation at any moment."""
    TRAINING = "training"
    """Member of the generation that trains."""
    LEAVING = "leaving"
    """Asked to leave at the next step boundary."""
    EXITED = "exited"
    """Ended as it should."""
    LOST = "lost"
    """Died, was killed, or its host went away."""


class TaskEvent(StrEnum):
    """What can happen to a task."""

    READY = "ready"
    JOIN = "join"
    LEAVE = "leave"
    EXIT = "exit"
    LOSE = "lose"


class GenerationState(StrEnum):
    """Where a generation (one numbered membership of a job) is in its life."""

    FORMING = "forming"
    """Announced; its members connect in the background while the one before it trains."""
    ACTIVE = "active"
    """Trains."""
    RETIRED = "retired"
    """Replaced at a step boundary."""
    ABANDONED = "abandoned"
    """Given up because a member was lost."""


class GenerationEvent(StrEnum):
    """What can happen to a generation."""

    SWITCH = "switch"
    RETIRE = "retire"
    ABANDON = "abandon"


JOB_LIFECYCLE: Final[Mapping[JobState, Mapping[JobEvent, JobState]]] = {
    JobState.PENDING: {
        JobEvent.GRANT: JobState.STARTING,
        JobEvent.STOP: JobState.STOPPED,
        JobEvent.FAIL: JobState.FAILED,
    },
    JobState.STARTING: {
        JobEvent.TRAIN: JobState.RUNNING,
        JobEvent.VACATE: JobState.PENDING,
        JobEvent.STOP: JobState.STOPPING,
        JobEvent.COMPLETE: JobState.COMPLETED,
        JobEvent.FAIL: JobState.FAILED,
    },
    JobState.RUNNING: {
        JobEvent.TRAIN: JobState.RUNNING,
        JobEvent.VACATE: JobState.PAUSED,
        JobEvent.STOP: JobState.STOPPING,
        JobEvent.COMPLETE: JobState.COMPLETED,
        JobEvent.FAIL: JobState.FAILED,
    },
    JobState.PAUSED: {
        JobEvent.GRANT: JobState.STARTING,
        JobEvent.STOP: JobState.STOPPED,
        JobEvent.FAIL: JobState.FAILED,
    },
    JobState.STOPPING: {
        JobEvent.TRAIN: JobState.STOPPING,
        JobEvent.STOP: JobState.STOPPING,
        JobEvent.VANISH: JobState.STOPPED,
        JobEvent.COMPLETE: JobState.COMPLETED,
        JobEvent.FAIL: JobState.FAILED,
    },
    JobState.COMPLETED: {},
    JobState.FAILED: {},
    JobState.STOPPED: {},
}

TASK_LIFECYCLE: Final[Mapping[TaskState, Mapping[TaskEvent, TaskState]]] = {
    TaskState.STARTING: {
        TaskEvent.READY: TaskState.WARM,
        TaskEvent.LEAVE: TaskState.LEAVING,
        TaskEvent.EXIT: TaskState.EXITED,
        TaskEvent.LOSE: TaskState.LOST,
    },
    TaskState.WARM: {
        TaskEvent.READY: TaskState.WARM,
        TaskEvent.JOIN: TaskState.TRAINING,
        TaskEvent.LEAVE: TaskState.LEAVING,
        TaskEvent.EXIT: TaskState.EXITED,
        TaskEvent.LOSE: TaskState.LOST,
    },
    TaskState.TRAINING: {
        TaskEvent.READY: TaskState.TRAINING,
        TaskEvent.JOIN: TaskState.TRAINING,
        TaskEvent.LEAVE: TaskState.LEAVING,
        TaskEvent.EXIT: TaskState.EXITED,
        TaskEvent.LOSE: TaskState.LOST,
    },
    TaskState.LEAVING: {
        TaskEvent.READY: TaskState.LEAVING,
        TaskEvent.JOIN: TaskState.LEAVING,
        TaskEvent.LEAVE: TaskState.LEAVING,
        TaskEvent.EXIT: TaskState.EXITED,
        TaskEvent.LOSE: TaskState.LOST,
    },
    TaskState.EXITED: {},
    TaskState.LOST: {},
}

GENERATION_LIFECYCLE: Final[Mapping[GenerationState, Mapping[GenerationEvent, GenerationState]]] = {
    GenerationState.FORMING: {
        GenerationEvent.SWITCH: GenerationState.ACTIVE,
        GenerationEvent.ABANDON: GenerationState.ABANDONED,
    },
    GenerationState.ACTIVE: {
        GenerationEvent.RETIRE: GenerationState.RETIRED,
        GenerationEvent.ABANDON: GenerationState.ABANDONED,
    },
    GenerationState.RETIRED: {},
    GenerationState.ABANDONED: {},
}


def advance(table: Mapping[S, Mapping[E, S]], state: S, event: E) -> S:
    """Return the state that `event` leads to from `state`.

    Raises:
        IllegalTransition: the table does not list the event for this state.
    """
    try:
        return table[state][event]
    except KeyError:
        legal = ", ".join(sorted(table[state])) or "nothing: it is final"
        raise IllegalTransition(f"event {event!s} in state {state!s}; legal here: {legal}") from None


def is_final(table: Mapping[S, Mapping[E, S]], state: S) -> bool:
    """Tell whether nothing can happen any more in this state."""
    return not table[state]


ENDED_STATES: Final = tuple(state for state in JobState if is_final(JOB_LIFECYCLE, state))
UNENDED_STATES: Final = tuple(state for state in JobState if not is_final(JOB_LIFECYCLE, state))
STATE_WORDS: Final[Mapping[str, tuple[JobState, ...]]] = MappingProxyType(
    {
        **{state.value: (state,) for state in JobState},
        "waiting": (JobState.PENDING, JobState.PAUSED),
        "ended": ENDED_STATES,
    }
)
"""What people call states: each by its name, and some together."""
