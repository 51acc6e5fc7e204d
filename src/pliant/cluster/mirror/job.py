"""One job that has tasks on this machine: its folders, and who reads and sends them when."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from pliant.cluster.mirror.bringing import ASK
from pliant.cluster.mirror.keeper import JOBS, WRITTEN
from pliant.cluster.mirror.sending import SentTree
from pliant.core.job import TaskId
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import list_folder

RESULT = "result"
LOGS = "log"
CHECKPOINTS = "checkpoint"
"""The folder in the results that its tasks ask for when they need it."""


@dataclass(slots=True, kw_only=True)
class MirroredJob:
    """A job, and what of its folders the server has. Whoever reads or sends files holds `files`, and of logs `logs`."""

    job_id: str
    root: Path
    tasks: dict[TaskId, None] = field(default_factory=dict)
    """Those that have begun here and whose exits were not told."""
    uses: set[str] = field(default_factory=set)
    """Other jobs whose files were brought for it."""
    trees: dict[str, SentTree] = field(default_factory=dict)
    files: threading.Lock = field(default_factory=threading.Lock)
    logs: threading.Lock = field(default_factory=threading.Lock)
    due_at: float = 0.0
    """When its files are looked at next, monotonic time."""

    def __post_init__(self) -> None:
        for name in WRITTEN:
            path = UntrustedPath(self.root, name)
            self.trees[name] = SentTree(path=str(path), place=path)

    @property
    def results(self) -> SentTree:
        """The folder of its results, with its logs."""
        return self.trees[RESULT]

    def log_root(self, name: str) -> str:
        """Return where logs lie in one of its folders; empty: there are none."""
        return LOGS if name == RESULT else ""

    def tree_of(self, path: str) -> SentTree | None:
        """Return which of its folders a path is."""
        return next((tree for tree in self.trees.values() if tree.path == path), None)

    def asked(self) -> list[UntrustedPath]:
        """Return what its tasks ask for."""
        folder = self.results.place / CHECKPOINTS
        return [
            folder / name for name, _ in list_folder(folder) if name.startswith(ASK) and not name.endswith(".failed")
        ]


def job_folder(home: Path, job_id: str) -> Path:
    """Return where the files of a job lie."""
    return home / JOBS / job_id
