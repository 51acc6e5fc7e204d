"""What is removed from a machine that has copies: files of jobs that are over, and what nobody has used for long."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.brought import Brought
from pliant.cluster.mirror.grants import ADDRESS, JOBS
from pliant.cluster.mirror.job import MirroredJobs
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove

UNSENT: Final = "unsent"
"""In the folder of a job: something of it is not with the server."""
_UNUSED_S: Final = 7 * 86_400.0
_EVERY_S: Final = 3600.0


class Removing:
    """Removes, from one thread at a time."""

    def __init__(self, bringer: Bringer, brought: Brought, jobs: MirroredJobs) -> None:
        self._bringer = bringer
        self._brought = brought
        self._jobs = jobs
        self._at = time.monotonic()

    def retain(self, job_ids: Collection[str]) -> None:
        """Remove the files of all other jobs that no task here needs, and now and then what nobody has used.

        Raises:
            OSError: something cannot be removed.
        """
        used = {one for job in self._jobs.all() for one in (job.job_id, *job.uses)}
        folder: Path = self._bringer.home / JOBS
        for found in list(folder.iterdir()) if folder.is_dir() else []:
            if found.name not in used and found.name not in job_ids and not (found / UNSENT).exists():
                remove(UntrustedPath(folder, found.name))
        if time.monotonic() >= self._at + _EVERY_S:
            self._at = time.monotonic()
            self.remove_unused(time.time() - _UNUSED_S)

    def remove_unused(self, before: float) -> None:
        """Remove what of the server's own no job here uses, and none has used since then, seconds since the epoch.

        Raises:
            OSError: something cannot be removed.
        """
        jobs = self._jobs.all()
        if any(job.is_adopted for job in jobs):
            return
        used = {str(self._bringer.home / ADDRESS), *(path for job in jobs for path in job.paths)}
        for path in self._brought.take_unused(before, but=used):
            if (tree := self._bringer.tree(path, job_id="")) is not None:
                remove(tree.place)
        self._bringer.sweep(before)
