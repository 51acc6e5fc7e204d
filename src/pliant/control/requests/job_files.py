"""What a job has on the disk, for people who look at it: one file of its results, its code, its checkpoints.

Reads only, and only when somebody asks: no decision waits for it.
"""

from typing import Final

from pliant.api.job_files import CheckpointFile, CheckpointFiles, SeriesEnds
from pliant.control.requests.origin import CHECKPOINT
from pliant.control.requests.queries import MAX_TIME
from pliant.control.settings import ControlSettings
from pliant.control.upkeep.event_files import EventFile
from pliant.control.upkeep.results import open_result
from pliant.core.errors import Conflict, NotFound
from pliant.core.job import Job
from pliant.core.ports import Store
from pliant.files.untrusted.names import shown
from pliant.files.untrusted.opening import OpenFile, UntrustedFile, refusal, take_file
from pliant.files.untrusted.packing import MadeFile, PackedFile
from pliant.files.untrusted.walking import list_folder

MAX_SERIES: Final = 1000


class JobFileQueries:
    """Answers from the folders of jobs and from the store; safe to call from any thread."""

    def __init__(self, store: Store, settings: ControlSettings) -> None:
        self._store = store
        self._settings = settings

    def open_result(self, job: Job, name: str) -> PackedFile | MadeFile:
        """Return one file of a job's results, by its name in the archive of them; who calls this closes it.

        Raises:
            NotFound: the results have none of that name.
            Conflict: it is there, and is not sent.
        """
        folders = self._settings.folders(job.id)
        try:
            return open_result(folders, name, EventFile(job=job, charts=self._store))
        except UntrustedFile as error:
            raise Conflict(f"{shown(name)!r} of {job.id} is not sent: {error}") from error
        except OSError as error:
            raise NotFound(f"{job.id} has no result {shown(name)!r}; its files list those that it has") from error

    def open_code(self, job: Job) -> OpenFile:
        """Return the code that a job was submitted with, packed; who calls this closes it.

        Raises:
            NotFound: it is not kept.
        """
        try:
            return take_file(self._settings.folders(job.id).archive)
        except OSError as error:
            raise NotFound(
                f"the code that {job.id} was submitted with is not kept here: it was removed, or the job was submitted "
                f"to an earlier version"
            ) from error

    def checkpoints(self, job: Job) -> CheckpointFiles:
        """Return the checkpoints that a job has on the disk, newest first; those in memory are its node's."""
        found = list_folder(self._settings.folders(job.id).checkpoints)
        files = [
            CheckpointFile(step=int(name[1]), num_bytes=facts.st_size, at=min(max(0.0, facts.st_mtime), MAX_TIME))
            for entry, facts in found
            if (name := CHECKPOINT.fullmatch(entry)) and not refusal(facts, None)
        ]
        return CheckpointFiles(checkpoints=tuple(sorted(files, key=lambda file: -file.step)))

    def series(self, job: Job, after: str, limit: int) -> SeriesEnds:
        """Return which series a job has after a name, in the order of their names, and how each ends."""
        found = self._store.series_ends(job.id, after=after, limit=limit + 1)
        return SeriesEnds(series=found[:limit], next=found[limit - 1].name if len(found) > limit else None)

    def series_names(self, job: Job) -> tuple[str, ...]:
        """Return the names of a job's series, the first thousand."""
        return tuple(one.name for one in self._store.series_ends(job.id, limit=MAX_SERIES))
