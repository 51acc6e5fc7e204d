"""What a job has on the disk, for people who look at it: one file of its results, its code, its checkpoints.

Reads only, and only when somebody asks: no decision waits for it.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pliant.api.job_files import CheckpointFile, CheckpointFiles, SeriesEnds
from pliant.api.job_views import ResultFile, ResultFiles
from pliant.control.requests.origin import CHECKPOINT
from pliant.control.requests.queries import MAX_TIME
from pliant.control.settings import ControlSettings
from pliant.control.upkeep.event_files import EventFile
from pliant.control.upkeep.results import list_results, open_result, pack_results
from pliant.core.errors import Conflict, NotFound
from pliant.core.job import Job
from pliant.core.ports import Store
from pliant.files.untrusted.names import shown
from pliant.files.untrusted.opening import OpenFile, UntrustedFile, refusal, take_file
from pliant.files.untrusted.packing import MadeFile, PackedFile
from pliant.files.untrusted.walking import list_folder

MAX_SERIES: Final = 1000
MAX_FILES: Final = 10_000
MAX_LEFT_OUT: Final = 100


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

    def results(self, job: Job) -> ResultFiles:
        """Return the files of a job's results, as `pack` would pack them now."""
        left_out: list[str] = []

        def leave_out(name: str, why: str) -> None:
            if len(left_out) < MAX_LEFT_OUT:
                left_out.append(f"{shown(name)}: {why}")

        found = list_results(self._settings.folders(job.id), leave_out, EventFile(job=job, charts=self._store))
        files = tuple(
            ResultFile(path=name, num_bytes=facts.st_size, changed_at=min(max(0.0, facts.st_mtime), MAX_TIME))
            for name, facts in islice(found, MAX_FILES)
        )
        if next(found, None) is not None:
            left_out.append(f"only the first {MAX_FILES:,} files are listed; the archive has all")
        return ResultFiles(files=files, left_out=tuple(left_out))

    def pack(
        self, job: Job, *, only: Sequence[str] = (), but: Sequence[str] = (), with_series: bool = False
    ) -> Iterator[bytes]:
        """Return a tar.gz of a job's results, made while it is read; without its checkpoints.

        Args:
            job: the job.
            only: patterns of names in the archive; all if there are none.
            but: patterns of names that are left out.
            with_series: with a file for TensorBoard of its series, if it has any.
        """
        made = EventFile(job=job, charts=self._store) if with_series else None
        return pack_results(self._settings.folders(job.id), only, but, made)

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
