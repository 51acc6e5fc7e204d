"""Where a script's `Run` finds out whether it runs under Pliant or alone.

`pliant.entry.task` sets the task's `TrainContext` before it runs the script. Without one the script trains alone, with
one worker. The clocks of that case are the only ones in this room.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from pliant.core.job import MAX_VIRTUAL_WORKERS, Balance, JobId, Mode, TaskId
from pliant.core.link import Form, FromTask
from pliant.core.task_environment import LoneTask, TaskFolders
from pliant.core.virtual_workers import choose
from pliant.tracking.recorder import Recorder
from pliant.train.errors import TrainingError
from pliant.train.group.membership import TaskMembership


@dataclass(slots=True, kw_only=True)
class TrainContext:
    """What a training needs and the script does not say: its tasks, its folders, the job's settings, the clocks."""

    membership: TaskMembership
    clock: Callable[[], float]
    """Monotonic, seconds."""
    now: Callable[[], float]
    """Seconds since the epoch."""
    virtual_workers: int | None = None
    """V of a script that says none; a smaller batch is cut into single samples. None: chosen (`parts_of`)."""
    max_tasks: int = 1
    """The job grows up to this many tasks, as it was submitted."""
    balance: Balance = "even"
    """How virtual workers divide over tasks."""
    checkpoint_freq: int = 0
    checkpoint_every_s: float = 0.0
    """Seconds between checkpoints in the middle of an epoch; 0 makes none."""
    mode: Mode = "exact"
    weights: Path | None = None
    """A `state_dict` to start from."""
    resume_from: Path | None = None
    """Another job's folder of checkpoints to start from, as long as this one has none of its own."""
    own_numbers: bool = False
    """The optimizers keep the numbers that the script gives them when it starts from there."""
    keep_every: int | None = None
    """Keep the state at the end of every so many epochs, for trials that begin from there."""
    memory_dir: Path | None = None
    """The job's folder in this machine's shared memory, if there is one."""
    has_copies: bool = False
    """The folders of the job on this machine are copies."""
    result_dir: Path | None = None
    log_dir: Path | None = None
    metrics_every: int | None = None
    """Record every so many steps as they are; None: means over the steps of a quarter of a second."""
    histograms_every: int | None = None
    """Log histograms of all weights and gradients every so many steps; None: none."""
    tracking: Recorder | None = None
    """Takes what is to be logged to experiment trackers, if the job's variables name some."""
    audit: bool = False
    standalone: bool = False
    """No server manages this training: a person runs it in a terminal."""
    closers: list[Callable[[], None]] = field(default_factory=list)
    """Called when the script has ended without an error: a training that it left early is finished then."""
    cleanups: list[Callable[[], None]] = field(default_factory=list)
    """Called when the script has ended, with or without an error: files are closed, threads ended."""

    def parts_of(self, batch_size: int) -> int:
        """Return V for a script that says none: the job's, or what suits its maximum and the global batch."""
        if self.virtual_workers is None:
            return choose(self.max_tasks, batch_size)
        return max(1, min(self.virtual_workers, batch_size))


TRAIN_CONTEXT: Final[ContextVar[TrainContext]] = ContextVar("pliant_train_context")


def find_context() -> TrainContext:
    """Return the context of this process; a standalone one if none was set."""
    return TRAIN_CONTEXT.get(None) or standalone_context()


def standalone_context() -> TrainContext:
    """Return the context of a script that nobody manages: one worker; results go to RESULT_DIR if it is set.

    Its batch is cut as that of a job of one task is, so that alone and submitted as such it comes to the same result.

    Raises:
        TrainingError: PLIANT_VIRTUAL_WORKERS or PLIANT_MODE is nonsense.
    """

    def discard(_message: FromTask) -> None:
        return None

    me = TaskId("alone")
    membership = TaskMembership(
        job_id=JobId("alone"), task_id=me, pid=os.getpid(), host="127.0.0.1", key=b"", send=discard
    )
    membership.deliver(Form(generation=1, members=(me,), host="", port=0))
    folders, asked = TaskFolders.from_env(os.environ), _read_lone_task(os.environ)
    return TrainContext(
        membership=membership,
        clock=time.monotonic,
        now=time.time,
        virtual_workers=asked.virtual_workers,
        mode=asked.mode,
        result_dir=Path(folders.result) if folders.result else None,
        log_dir=Path(folders.log) if folders.log else None,
        standalone=True,
    )


def _read_lone_task(env: Mapping[str, str]) -> LoneTask:
    try:
        asked = LoneTask.from_env(env)
    except ValueError:
        asked = None
    parts = 1 if asked is None or asked.virtual_workers is None else asked.virtual_workers
    if asked is None or not 1 <= parts <= MAX_VIRTUAL_WORKERS:
        raise TrainingError(
            f"PLIANT_VIRTUAL_WORKERS is {env['PLIANT_VIRTUAL_WORKERS']!r}; give a whole number from 1 to "
            f"{MAX_VIRTUAL_WORKERS}, or unset it"
        )
    if asked.mode not in get_args(Mode):
        raise TrainingError(f"PLIANT_MODE is {asked.mode!r}; give {' or '.join(get_args(Mode))}, or unset it")
    return asked
