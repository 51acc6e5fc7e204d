"""How jobs stand beside each other, by the newest decision: who waits in which place, and the rows of lists."""

from collections.abc import Callable, Mapping

from pliant.api.job_rows import JobRow, WaitingView, job_row
from pliant.api.view import fill
from pliant.control.jobs.live import LiveJob
from pliant.core.job import Job, JobId
from pliant.core.plan import Policy, Snapshot
from pliant.policy.schedule.waiting import WaitingPlace, places


class JobStanding:
    """Answers from what the newest decision saw; safe to call from any thread."""

    def __init__(self, *, find: Callable[[JobId], LiveJob | None], policy: Policy) -> None:
        self._find = find
        self._policy = policy
        self._known: tuple[Snapshot, Mapping[JobId, WaitingPlace]] = (_NOTHING, {})
        self._seen = _NOTHING

    def note(self, seen: Snapshot) -> None:
        """Take note of what a decision saw."""
        self._seen = seen

    def places(self) -> Mapping[JobId, WaitingPlace]:
        """Return where those stand that want slots and have none; worked out once for each decision."""
        seen, (known, found) = self._seen, self._known
        if seen is not known:
            found = places(seen, self._policy)
            self._known = (seen, found)
        return found

    def row(self, job: Job) -> JobRow:
        """Return a job as the row of a list."""
        live = self._find(job.id)
        return job_row(job, target_slots=target_slots(live), waiting=self.waiting(job.id))

    def waiting(self, job_id: JobId) -> WaitingView | None:
        """Return where a job stands that wants slots and has none; None for others."""
        place = self.places().get(job_id)
        return None if place is None else fill(WaitingView, place)


_NOTHING = Snapshot(nodes=(), workloads=())


def target_slots(live: LiveJob | None) -> int:
    """Return how many slots the newest decision gives a job."""
    return 0 if live is None or not live.competes else live.job.spec.num_slots_for(live.target)
