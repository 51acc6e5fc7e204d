"""The gate before the scheduler: a job whose environment is not ready takes no slot, and fails here if it cannot be.

Nothing is built here and nothing is waited for: who makes environments (`Preparations`) is asked at every tick. What
it answers is kept in memory only; after a restart it is asked again.
"""

from dataclasses import replace
from typing import assert_never

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import fail
from pliant.control.settings import ControlSettings
from pliant.core.access import Sight
from pliant.core.errors import Problem
from pliant.core.event import EventKind
from pliant.core.job import Job, JobSpec
from pliant.core.preparation import Broken, Preparation, Preparations, Ready, Waiting

WAITS = "waits for its environment"


class NoPreparations:
    """Of a server that makes no environments: nobody can ask for one."""

    def problems(self, spec: JobSpec, code: str, *, sight: Sight | None = None) -> tuple[Problem, ...]:  # noqa: ARG002
        """Refuse every environment."""
        if spec.environment is None:
            return ()
        message = f"{spec.environment!r} cannot be made: this server makes no environments; leave it out"
        return (Problem(field="environment", message=message),)

    def status(self, job: Job, code: str) -> Preparation:  # noqa: ARG002 (the protocol's)
        """Refuse every environment."""
        return Broken(why=f"the environment {job.spec.environment!r} cannot be made: this server makes none")


class Gate:
    """Lets jobs through whose environment is ready. Used under the ledger's lock."""

    def __init__(self, *, ledger: Ledger, preparations: Preparations, settings: ControlSettings) -> None:
        self._ledger = ledger
        self._preparations = preparations
        self._settings = settings

    def look(self) -> None:
        """Ask for every job that waits here, and note what has changed."""
        for live in self._ledger.jobs().values():
            if live.unprepared and live.competes:
                found = self._preparations.status(live.job, str(self._settings.folders(live.id).code))
                prepared(draft := self._ledger.draft(), live, found)
                if draft.touched:
                    self._ledger.commit(draft)


def prepared(draft: Draft, live: LiveJob, found: Preparation) -> None:
    """Note how far the environment of a job is.

    A job that trains already (the server has come back) goes on with the tasks that it has: they are none the worse
    for an environment that cannot be made again. It gets no more of them, and fails when it has none.
    """
    match found:
        case Ready():
            if live.job.why.startswith(WAITS):
                draft.say(EventKind.JOB_PREPARED, f"{live.label}: its environment is ready", job_id=live.id)
            draft.put(replace(live, python=found.python))
        case Waiting():
            why = f"{WAITS}: {found.why}"
            if why != live.job.why and not live.running:
                if not live.job.why.startswith(WAITS):
                    draft.say(EventKind.JOB_PREPARED, f"{live.label} {why}", job_id=live.id)
                draft.put(replace(live, job=replace(live.job, why=why)))
        case Broken():
            if not live.running:
                fail(draft, live, found.why)
        case _:
            assert_never(found)
