"""How jobs stand beside each other: who waits in which place by the newest decision, the rows of lists, the news."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pliant.api.job_rows import JobRow, WaitingView, job_row
from pliant.api.view import fill
from pliant.control.jobs.live import LiveJob
from pliant.core.access import VisibleJobs
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import JobState
from pliant.core.plan import Policy, Snapshot
from pliant.core.ports import EventFilter, Store
from pliant.policy.schedule.waiting import WaitingPlace, places


class JobStanding:
    """Answers from what the newest decision saw, and from the store; safe to call from any thread."""

    def __init__(self, *, store: Store, find: Callable[[JobId], LiveJob | None], policy: Policy) -> None:
        self._store = store
        self._find = find
        self._policy = policy
        self._known: tuple[Snapshot, Mapping[JobId, WaitingPlace]] = (_NOTHING, {})
        self._seen = _NOTHING

    def note(self, seen: Snapshot) -> None:
        """Take note of what a decision saw."""
        self._seen = seen

    def seen(self) -> Snapshot:
        """Return what the newest decision saw."""
        return self._seen

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

    def news(
        self, after: int, kinds: Sequence[EventKind], limit: int, visible: VisibleJobs | None
    ) -> tuple[Event, ...]:
        """Return the newest events of some kinds after a number, as far as somebody sees them, in order."""
        found: tuple[Event, ...] = ()
        while page := self._store.events(EventFilter(after=after, kinds=tuple(kinds), visible=visible, limit=_PAGE)):
            found, after = (*found, *page)[-limit:], page[-1].seq
        return found

    def num_by_state(self, visible: VisibleJobs | None) -> Mapping[JobState, int]:
        """Return how many trainings that somebody sees are in each state, trials not among them."""
        return self._store.num_by_state(JobFilter(kinds=("training", "fixed")), visible=visible)


_PAGE: Final = 1000
_NOTHING = Snapshot(nodes=(), workloads=())


def target_slots(live: LiveJob | None) -> int:
    """Return how many slots the newest decision gives a job."""
    return 0 if live is None or not live.competes else live.job.spec.num_slots_for(live.target)
