"""Pliant's states in IBM's words: of execs and applications, and of the tasks of one. Pure tables.

Loops of clients wait for a job to end: the command line while a state is among all of IBM's active ones, notebooks
while it is `PENDING_CRD_SCHEDULER`, `SUBMITTED` or `RUNNING`, older ones while it is `SUBMITTED` or `RUNNING`. So a job
that has not ended is in one of the two states that all of them know.
"""

from collections.abc import Mapping
from typing import Final

from pliant.core.job import Job, Task
from pliant.core.lifecycle import JobState, TaskState

STATES: Final[Mapping[JobState, str]] = {
    JobState.PENDING: "SUBMITTED",
    JobState.STARTING: "RUNNING",
    JobState.RUNNING: "RUNNING",
    JobState.PAUSED: "SUBMITTED",
    JobState.STOPPING: "RUNNING",
    JobState.COMPLETED: "FINISHED",
    JobState.FAILED: "ERROR",
    JobState.STOPPED: "KILLED",
}
EXECUTOR_STATES: Final[Mapping[TaskState, str]] = {
    TaskState.STARTING: "LAUNCHING",
    TaskState.WARM: "LAUNCHING",
    TaskState.TRAINING: "RUNNING",
    TaskState.LEAVING: "RUNNING",
    TaskState.EXITED: "FINISHED",
    TaskState.LOST: "KILLED",
}
OTHER_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "NEW": frozenset(),
    "LAUNCHING": frozenset(),
    "RECOVERING": frozenset(),
    "UNKNOWN": frozenset(),
    "WAITING": frozenset({"SUBMITTED"}),
    "PENDING": frozenset({"SUBMITTED"}),
    "PENDING_JOB_SCHEDULER": frozenset({"SUBMITTED"}),
    "PENDING_CRD_SCHEDULER": frozenset({"SUBMITTED"}),
    "FAILED": frozenset({"ERROR"}),
    "STOPPED": frozenset({"KILLED"}),
}
"""States that a client may ask for and nothing is in, or that are other words for some."""


def state_of(job: Job) -> str:
    """Return the state of a job's exec and application."""
    return STATES[job.state]


def executor_state(task: Task) -> str:
    """Return the state of a task as an executor's."""
    return EXECUTOR_STATES[task.state]


def parse_states(text: str | None) -> frozenset[str] | None:
    """Return which states `state=A,B` asks for, in the words of `STATES`; None if any.

    What nobody knows matches nothing.
    """
    if not text:
        return None
    names = {name.strip().upper() for name in text.split(",") if name.strip()}
    return frozenset().union(*(OTHER_NAMES.get(name, frozenset({name})) for name in names))
