"""What a machine may read and write of a server's state folder, by its orders; what is called how there.

Each order has a ticket, which only the server can make, so that the next server knows it, too.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder

WRITTEN: Final = ("code", "result", "state")
"""The folders of a job that its tasks write to."""
JOBS: Final = "jobs"
ENVIRONMENTS: Final = "environments"
"""In the state folder: a folder for each environment that is built, with what it is built from, and it in `VENV`."""
VENV: Final = "venv"
BUILD_LOG: Final = "build.log"
ADDRESS: Final = "address"
"""In the state folder: what every machine may read."""


def ticket_of(secret: bytes, node_id: str, task_id: str, paths: Sequence[str]) -> str:
    """Return what proves that a task was ordered on a machine, and what it may read."""
    said = json.dumps([node_id, task_id, list(paths)]).encode()
    return hmac.new(secret, b"files of a task\0" + said, hashlib.sha256).hexdigest()


def paths_of(order: StartOrder) -> tuple[str, ...]:
    """Return all that a task may read, as far as its order says."""
    walls = order.confinement
    return (*walls.reads, *walls.writes, *walls.named)


def environments_in(paths: Iterable[str], home: Path) -> frozenset[Path]:
    """Return the folders of the environments of a server's that some paths lie in."""
    folder = home / ENVIRONMENTS
    inside = [Path(path).relative_to(folder) for path in paths if Path(path).is_relative_to(folder)]
    return frozenset(folder / place.parts[0] for place in inside if len(place.parts) > 1 and ".." not in place.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGrant:
    """What a machine may read and write for one task."""

    node_id: NodeId
    task_id: TaskId
    job_id: str
    paths: frozenset[str] = frozenset()
    """What else than the folders of its job it may read."""

    def covers(self, place: Path, home: Path) -> bool:
        """Tell whether something may be read: with an environment also what it is built from."""
        own = [str(home / JOBS / self.job_id / folder) for folder in WRITTEN]
        built = [str(folder) for folder in self.environments(home)]
        return any(place.is_relative_to(path) for path in (*self.paths, *own, *built))

    def environments(self, home: Path) -> frozenset[Path]:
        """Return the folders of the environments that its order names."""
        return environments_in(self.paths, home)
