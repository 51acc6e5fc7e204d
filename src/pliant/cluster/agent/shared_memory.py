"""Folders in this machine's shared memory, one for every job: what a job keeps there outlives all of its tasks.

`ROOT/OWNER/JOB/`, mode 700. OWNER is a random name that the agent keeps in its state folder, so that no two agents
share a folder, also if they run in containers that see the same shared memory. `ROOT/OWNER/owner` names the state
folder, and every living agent of it holds a lock on that file; an agent that was stopped may hold it beside the next
one. An agent that starts removes the folders of owners that are gone; those of jobs that are over are removed by
`pliant.cluster.agent.space`. If shared memory cannot be used, tasks train without it.
"""

import fcntl
import logging
import os
import secrets
import shutil
import stat
from pathlib import Path

from pliant.files.folder import write_whole
from pliant.files.lock import hold_lock

_log = logging.getLogger(__name__)

_OWNER = "owner"
_NAME = "memory"
"""File of the state folder."""


class SharedMemory:
    """One agent's part of the shared memory.

    Args:
        root: made if missing; None uses none.
        state_dir: the agent's own; it exists.
    """

    def __init__(self, root: Path | None, state_dir: Path) -> None:
        self._lock: int | None = None
        self._own: Path | None = None
        if root is None:
            return
        try:
            _make_private(root)
            with hold_lock(root):  # an agent that has not locked its new folder yet would look like one that is gone
                self._own = root / owner_of(state_dir)
                self._claim(self._own, state_dir)
                for other in root.iterdir():
                    if other != self._own and _is_orphaned(other):
                        shutil.rmtree(other, ignore_errors=True)
        except OSError as error:
            _log.warning("checkpoints in shared memory are off: %s", error)
            self.close()

    def folder(self, job_id: str) -> Path | None:
        """Return a job's folder, which may not exist yet; None if there is no shared memory."""
        return None if self._own is None else self._own / job_id

    def make(self, folder: str | None) -> None:
        """Make a job's folder."""
        if folder is not None and self._own is not None:
            try:
                Path(folder).mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                _log.warning("a job gets no shared memory: %s", error)

    def close(self) -> None:
        """Unlock; keep the folders of jobs, and remove the agent's own if there are none."""
        if self._own is not None:
            self._remove_if_empty(self._own)
            self._own = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remove_if_empty(self, own: Path) -> None:
        try:
            with hold_lock(own.parent):
                if not self.jobs():
                    shutil.rmtree(own, ignore_errors=True)
        except OSError as error:
            _log.warning("the folder in shared memory could not be removed: %s", error)

    def jobs(self) -> list[Path]:
        """Return the folders of all jobs."""
        if self._own is None or not self._own.is_dir():
            return []
        return [path for path in self._own.iterdir() if path.is_dir()]

    def _claim(self, own: Path, state_dir: Path) -> None:
        own.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(own / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.pwrite(self._lock, str(state_dir).encode(), 0)


def _make_private(root: Path) -> None:
    """Make a folder that only this user can use; a group may pass through (see `pliant.isolation.users`).

    Raises:
        OSError: it cannot be made, or somebody else made it.
    """
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o067:
        raise PermissionError(f"{root} is not a folder of this user's alone (mode 700); remove it")


def owner_of(state_dir: Path) -> str:
    """Return the random name by which an agent's folders outside its state folder are known."""
    path = state_dir / _NAME
    if not path.exists() or not path.read_text().isalnum():
        write_whole(path, secrets.token_hex(8).encode(), durable=False)
    return path.read_text()


def _is_orphaned(folder: Path) -> bool:
    """Return whether the agent of this folder and its state folder are gone."""
    try:
        with (folder / _OWNER).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            state_dir = Path(file.read().decode())
        return (state_dir / _NAME).read_text() != folder.name
    except BlockingIOError:
        return False
    except (FileNotFoundError, NotADirectoryError):
        return True
