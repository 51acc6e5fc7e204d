"""What is remembered on disk about every task of this machine, so that a later server can adopt it.

One file per task, `STATE_DIR/TASK_ID.json`, always replaced as a whole. The agent writes it before it orders the task,
the zygote when the process exists and when it has ended, the agent again when the exit was reported. `STATE_DIR/term`
holds the number of the newest agent: a zygote forks only under the file's lock and only for the newest, so that no task
of an older server can appear after a later one has read the records. Knows no processes.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pliant.core.job import TaskId
from pliant.core.slot import WHOLE_SLOT
from pliant.files.folder import write_whole
from pliant.files.lock import hold_lock

_TERM = "term"
"""File of the number of the newest agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One task of this machine: where it runs, and how it ended."""

    task_id: TaskId
    slots: tuple[int, ...]
    job: str = ""
    """By which the folders of its job are known on this node."""
    folders: tuple[str, ...] = ()
    """On the disk, which it writes to, and whose size counts; each lies in a folder that is ours."""
    slot_share: int = WHOLE_SLOT
    """Thousandths of its slot that it holds."""
    memory_bytes: int | None = None
    """It is ended when it uses more."""
    log_dir: str | None = None
    result_dir: str | None = None
    model: str | None = None
    """As in its order: where what it leaves behind is found."""
    python: str | None = None
    """Another interpreter than the agent's own; it may lack Pliant."""
    group: str | None = None
    """Its control group: a folder that is there as long as one of its processes may live."""
    pid: int | None = None
    """None until the process exists."""
    stamp: str | None = None
    """With `pid`, names the process for ever."""
    zygote_pid: int | None = None
    """Its parent, who writes its end."""
    zygote_stamp: str | None = None
    ended_at: float | None = None
    """None while it lives, as far as is known."""
    exit_code: int | None = None
    error: str = ""
    """Why it could not be started, if it never ran."""
    cause: str = ""
    """Why it was ended though nobody had asked for that, in words that follow its name."""
    reported: bool = False
    """The listener has its exit."""


def path_of(state_dir: Path, task_id: TaskId) -> Path:
    """Return the file of a task's record."""
    return state_dir / f"{task_id}.json"


def program_path(state_dir: Path, task_id: TaskId) -> Path:
    """Return the file that tells a child what to become; it removes that as soon as it has read it."""
    return state_dir / f".{task_id}.program"


def write(state_dir: Path, record: Record) -> None:
    """Replace a task's record; a reader sees the old one or the new one, never a part.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    write_whole(path_of(state_dir, record.task_id), json.dumps(asdict(record)).encode(), durable=False)


def begin(state_dir: Path, record: Record, *, term: int) -> bool:
    """Write a task's first record, unless a later agent has begun and read the records; return whether it was written.

    Raises:
        OSError: it could not be written; the record is as it was.
    """
    with lock_term(state_dir) as newest:
        if newest <= term:
            write(state_dir, record)
        return newest <= term


def read(state_dir: Path, task_id: TaskId) -> Record | None:
    """Return a task's record; None if there is none."""
    try:
        fields = json.loads(path_of(state_dir, task_id).read_text())
    except FileNotFoundError:
        return None
    lists = {name: tuple(fields.get(name, ())) for name in ("slots", "folders")}
    return Record(**{**fields, **lists})


def read_all(state_dir: Path) -> list[Record]:
    """Return the records of all tasks."""
    found = (read(state_dir, TaskId(path.stem)) for path in sorted(state_dir.glob("[!.]*.json")))
    return [record for record in found if record is not None]


def forget(state_dir: Path, *, reported_before: float) -> None:
    """Remove the records of tasks that ended before an instant and whose exits were reported."""
    for record in read_all(state_dir):
        if record.reported and (record.ended_at or 0.0) < reported_before:
            path_of(state_dir, record.task_id).unlink(missing_ok=True)


def new_term(state_dir: Path) -> int:
    """Begin the term of a new agent: from now on no zygote of an earlier one forks."""
    with hold_lock(state_dir / _TERM) as file:
        term = _number(file) + 1
        os.pwrite(file, str(term).encode(), 0)
        return term


def term(state_dir: Path) -> int | None:
    """Return the number of the newest agent; None if that cannot be read."""
    try:
        return int((state_dir / _TERM).read_text())
    except (OSError, ValueError):
        return None


@contextmanager
def lock_term(state_dir: Path) -> Iterator[int]:
    """Keep other agents from beginning while the block runs, no longer than a fork or a write takes.

    Yields the newest one's number.
    """
    with hold_lock(state_dir / _TERM) as file:
        yield _number(file)


def _number(file: int) -> int:
    return int(os.pread(file, 32, 0) or b"0")
