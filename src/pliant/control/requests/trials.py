"""What the keeper of a search asks of its trials' jobs: submit, hold, release, stop, and how they stand.

Which trials there are, and which of them go on, is decided elsewhere (`tune.searches`). Here a trial is a job like any
other. Callable from any thread, and twice: what is done already is not done again, and what is asked of a job that has
ended, or is not there, is ignored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pliant.control.jobs import holding
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import stop
from pliant.control.requests import changes
from pliant.control.requests.acceptance import Acceptance
from pliant.control.settings import ControlSettings
from pliant.core.access import VisibleJobs
from pliant.core.job import Job, JobId, JobSpec, Metric
from pliant.core.ports import Store
from pliant.core.trial_facts import TrialFacts
from pliant.files.untrusted.opening import is_file

MAX_POINTS: Final = 10_000
"""So many points are read at once."""


class TrialRequests:
    """The use cases about jobs of trials."""

    def __init__(self, *, ledger: Ledger, acceptance: Acceptance, store: Store, settings: ControlSettings) -> None:
        self._ledger = ledger
        self._acceptance = acceptance
        self._store = store
        self._settings = settings

    # Submission

    def reserve(self) -> JobId:
        """Return an id for a job, which is never given again."""
        with self._ledger.lock:
            return self._acceptance.reserve()[0]

    def check(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> Sequence[str]:
        """Check a submission as if it were queued; return what its owner has to know of it.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: its code is over the limit.
            Unavailable: the disk cannot take the code.
        """
        with self._acceptance.checked(spec, archive, owner, visible) as checked, self._ledger.lock:
            return self._acceptance.notes_of(checked)

    def submit(self, job_id: JobId, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> None:
        """Check a submission and queue it under a reserved id, unless that job is there already, or was deleted.

        Its owner is told of nothing that `check` has noted.

        Raises:
            InvalidInput, TooLarge: as for `check`.
            Unavailable: the server is going down, or the disk cannot take the code.
        """
        if self._is_known(job_id):
            return
        with self._acceptance.checked(spec, archive, owner, visible) as checked, self._ledger.lock:
            if not self._is_known(job_id):
                changes.discard_folder(self._settings.folders(job_id).root)  # of a server that died before it wrote
                self._acceptance.queue(replace(checked, tells=False), [checked.spec], [checked.code], [job_id])

    def _is_known(self, job_id: JobId) -> bool:
        return self._store.job(job_id) is not None or self._store.deleted_job(job_id) is not None

    # What becomes of it

    def hold(self, job_id: JobId, why: str) -> None:
        """Let a job take no slots until it is released.

        One that runs saves its state and leaves its slots at the next step boundary; `why` follows "is held:".

        Raises:
            Conflict: it runs and is of a kind that cannot be paused.
        """
        self._decide(job_id, lambda draft, live: holding.hold(draft, self._ledger.kinds, live, why))

    def release(self, job_id: JobId, why: str) -> None:
        """Let a job that is held compete for slots again; `why` follows "is not held any more:"."""
        self._decide(job_id, lambda draft, live: holding.release(draft, live, why))

    def stop(self, job_id: JobId, why: str) -> None:
        """End a job at its next step boundary, at once if it holds no slots; `why` becomes its reason."""
        self._decide(job_id, lambda draft, live: stop(draft, self._ledger.kinds.of(live.job), live, why))

    def _decide(self, job_id: JobId, decide: Callable[[Draft, LiveJob], object]) -> None:
        """Decide about a job that competes for slots, and carry it out."""
        with self._ledger.lock:
            live = self._ledger.get(job_id)
            if live is not None and live.competes:
                decide(draft := self._ledger.draft(), live)
                self._ledger.commit(draft)

    # How it stands

    def facts(self, job_ids: Iterable[JobId]) -> Mapping[JobId, TrialFacts]:
        """Return how these jobs stand, those that are there."""
        found = {job_id: job for job_id in job_ids if (job := self._job(job_id)) is not None}
        return {job_id: self._facts(job) for job_id, job in found.items()}

    def _job(self, job_id: JobId) -> Job | None:
        live = self._ledger.get(job_id)
        return self._store.job(job_id) if live is None else live.job

    def _facts(self, job: Job) -> TrialFacts:
        return TrialFacts(
            job_id=job.id,
            revision=job.revision,
            state=job.state,
            hold=job.hold,
            reason=job.reason,
            why=job.why,
            num_slots=job.num_slots,
            progress=job.progress,
            has_model=job.ended and is_file(self._settings.folders(job.id).weights),
            ended_at=job.ended_at,
        )

    def subscribe(self, hear: Callable[[Sequence[Metric]], None]) -> None:
        """Call `hear` with what tasks of any job have reported, after it was stored, from any thread and for good."""
        self._ledger.subscribe_metrics(hear)

    def reports(self, job_id: JobId, metrics: Sequence[str], after_step: int) -> tuple[Metric, ...]:
        """Return points of a job's series after a step, in order of (step, name); all that there are of each step.

        There may be more if there are any: ask again with the newest step.
        """
        points = self._store.metrics(job_id, names=metrics, after_step=after_step, limit=MAX_POINTS)
        if len(points) < MAX_POINTS:
            return points
        cut = points[-1].step  # of this step some may be missing
        return tuple(point for point in points if point.step < cut)
