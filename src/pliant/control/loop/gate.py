"""Before the scheduler: a job whose environment is not ready takes no slot, and fails if it cannot be made.

Nothing is built here, and nobody waits: `Preparations`, which make environments, are asked at every tick. Their answer
is kept in memory only; after a restart they are asked again.
"""

from dataclasses import replace
from typing import assert_never

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import fail
from pliant.control.settings import ControlSettings
from pliant.core.event import EventKind
from pliant.core.preparation import Preparation, Preparations, Prepared, Preparing, Unpreparable

WAITS = "waits for its environment"


class PreparationCheck:
    """Finds out whose environment is ready by now. Used under the ledger's lock."""

    def __init__(self, *, ledger: Ledger, preparations: Preparations, settings: ControlSettings) -> None:
        self._ledger = ledger
        self._preparations = preparations
        self._settings = settings

    def check(self) -> None:
        """Ask for every job that waits for its environment, and note what has changed."""
        for live in self._ledger.jobs().values():
            if live.unprepared and live.competes and not (live.waits or live.on_hold):
                found = self._preparations.status(live.job, str(self._settings.folders(live.id).code))
                note_preparation(draft := self._ledger.draft(), live, found)
                if draft.touched:
                    self._ledger.commit(draft)


def note_preparation(draft: Draft, live: LiveJob, found: Preparation) -> None:
    """Note how far the environment of a job is.

    After a restart of the server a job may train already although its environment cannot be made again. It goes on with
    the tasks that it has, gets no new ones, and fails when it has none left.
    """
    match found:
        case Prepared():
            if live.job.why.startswith(WAITS):
                draft.say(EventKind.JOB_PREPARED, f"{live.label}: its environment is ready", job_id=live.id)
            draft.put(replace(live, python=found.python))
        case Preparing():
            why = f"{WAITS}: {found.why}"
            if why != live.job.why and not live.running:
                if not live.job.why.startswith(WAITS):
                    draft.say(EventKind.JOB_PREPARED, f"{live.label} {why}", job_id=live.id)
                draft.put(replace(live, job=replace(live.job, why=why)))
        case Unpreparable():
            if not live.running:
                fail(draft, live, found.why)
        case _:
            assert_never(found)
