"""Where the tasks of a job keep what is this node's and the job's alone: /tmp, HOME, shared memory.

`STATE_DIR/scratch/JOB/{tmp,home}` on the disk, and the job's folder in shared memory with `shm`, which its tasks see as
/dev/shm, and `checkpoints`. All of it is removed when the job is over.
"""

import logging
import os
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.cluster.agent.shared_memory import SharedMemory
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove

_log = logging.getLogger(__name__)

_SCRATCH: Final = "scratch"
_CACHES: Final = {
    "XDG_CACHE_HOME": "",
    "TORCH_HOME": "torch",
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "TRITON_CACHE_DIR": "triton",
    "HF_HOME": "huggingface",
    "MPLCONFIGDIR": "matplotlib",
    "NUMBA_CACHE_DIR": "numba",
    "CUDA_CACHE_PATH": "cuda",
    "JUPYTER_RUNTIME_DIR": "jupyter",
    "IPYTHONDIR": "ipython",
}
"""Folders below `.cache` of the home; some would be guessable names in /tmp otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpace:
    """The folders of one job on this node."""

    temporary: str | None = None
    home: str | None = None
    memory: str | None = None
    """In shared memory; its tasks see it as /dev/shm."""
    memory_dir: str | None = None
    """In shared memory, for checkpoints."""

    @property
    def folders(self) -> tuple[str, ...]:
        """All that there are."""
        return tuple(filter(None, (self.temporary, self.home, self.memory, self.memory_dir)))

    def variables(self) -> dict[str, str]:
        """Return the variables by which programs find home and caches."""
        if self.home is None:
            return {}
        caches = {name: os.path.join(self.home, ".cache", folder).rstrip("/") for name, folder in _CACHES.items()}
        return {"HOME": self.home, **caches}


class Spaces:
    """The spaces of all jobs on this node.

    Args:
        state_dir: the agent's own; it exists.
        memory_root: in shared memory; None uses none.
    """

    def __init__(self, state_dir: Path, memory_root: Path | None) -> None:
        self._scratch = state_dir / _SCRATCH
        self._memory = SharedMemory(memory_root, state_dir)
        self._removal: threading.Thread | None = None

    def of(self, job_id: str) -> TaskSpace:
        """Return the folders of a job, which may not exist yet."""
        scratch, memory = self._scratch / job_id, self._memory.folder(job_id)
        return TaskSpace(
            temporary=str(scratch / "tmp"),
            home=str(scratch / "home"),
            memory=None if memory is None else str(memory / "shm"),
            memory_dir=None if memory is None else str(memory / "checkpoints"),
        )

    def make(self, space: TaskSpace) -> None:
        """Make the folders of a job.

        Raises:
            OSError: the disk is full, or cannot be written.
        """
        if space.memory is not None:
            self._memory.make(os.path.dirname(space.memory))
        self._scratch.mkdir(mode=0o700, exist_ok=True)
        for folder in space.folders:
            Path(folder).parent.mkdir(mode=0o700, exist_ok=True)
            Path(folder).mkdir(mode=0o700, exist_ok=True)

    def retain(self, job_ids: Collection[str]) -> None:
        """Have the folders of all other jobs removed that are here now; what strangers put there can take its time.

        A job that starts meanwhile is none of them: which folders they are is found here, not by who removes them.
        """
        if self._removal is not None and self._removal.is_alive():
            return
        others = [path for path in (*self._memory.jobs(), *self._scratch_folders()) if path.name not in job_ids]
        if others:
            self._removal = threading.Thread(target=remove_all, args=(others,), name="pliant-removal", daemon=True)
            self._removal.start()

    def _scratch_folders(self) -> list[Path]:
        return list(self._scratch.iterdir()) if self._scratch.is_dir() else []

    def close(self) -> None:
        """Let go; the folders of jobs stay."""
        self._memory.close()


def remove_all(folders: Iterable[Path]) -> None:
    """Remove the folders of some jobs, whatever a stranger has put into them."""
    for folder in folders:
        try:
            remove(UntrustedPath(folder.parent, folder.name))
        except OSError as error:
            _log.warning("what a job left in %s cannot be removed: %s", folder, error)
