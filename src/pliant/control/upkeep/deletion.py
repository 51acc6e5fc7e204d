"""Removes the files of jobs that people have deleted.

Theory of operation. Deleting a job is one transaction: all that the store holds of it goes, and a row is left that says
so and that its folder is still there. Then the folder is removed, and the row says that, too. If the server dies in
between, or the folder cannot be removed, the row remains, and whoever runs the upkeep next removes the folder: this
server an hour later, or the next one at its start. Ids are never given again, so the folder is nobody else's; and to do
it twice, or to go on where somebody else has begun, does no harm.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from pliant.core.event import Event, EventKind
from pliant.core.job import DeletedJob, JobId
from pliant.core.ports import Clock, Store, Writes
from pliant.files.space import cause_of
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import empty_trash, remove

log = logging.getLogger(__name__)

ForgetCopies = Callable[[JobId], None]
"""Removes the copies of a job; raises `OSError` if they are still there."""


def forget_nothing(job_id: JobId) -> None:
    """Remove the copies of a job that has none."""


def remove_files(
    store: Store, clock: Clock, jobs: Path, deleted: Iterable[DeletedJob], forget: ForgetCopies = forget_nothing
) -> None:
    """Remove the folders of deleted jobs from the folder of all jobs, and the copies that an object store has of them.

    What cannot be removed is told, and stays noted.

    Raises:
        PliantError: the store does not answer.
    """
    for one in deleted:
        try:
            remove(UntrustedPath(jobs, one.id))
            forget(one.id)
        except OSError as error:
            message = f"the files of {one.id}, which was deleted, could not be removed: {cause_of(error)}"
            log.warning("%s; it is tried again in an hour", message)
            event = Event(at=clock.now(), kind=EventKind.WARNING, message=message, job_id=one.id)
            store.write(Writes(events=(event,)))
        else:
            store.write(Writes(deleted=(replace(one, has_files=False),)))


def remove_what_is_left(store: Store, clock: Clock, jobs: Path, forget: ForgetCopies = forget_nothing) -> None:
    """Go on with all removals that did not come to their end.

    Raises:
        PliantError: the store does not answer.
    """
    if not jobs.is_dir():
        return
    try:
        empty_trash(jobs)
    except OSError as error:
        log.warning("what is being removed in %s is not gone: %s; it is tried again in an hour", jobs, error)
    remove_files(store, clock, jobs, store.deleted_jobs(), forget)
