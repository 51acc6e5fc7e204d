"""When the scheduler is asked: if anything changed that it sees, or when it asked to be woken."""

from pliant.control.jobs.ledger import Ledger
from pliant.control.loop.arrays import held_back, note_held
from pliant.control.loop.gate import PreparationCheck
from pliant.control.loop.machine_news import machine_news
from pliant.control.loop.scheduling import apply_plan, observe, seen_by_scheduler
from pliant.control.requests.out_of_use import OutOfUse
from pliant.control.requests.queues import Queues
from pliant.control.requests.standing import JobStanding
from pliant.core.event import EventKind
from pliant.core.plan import NodeView, Policy
from pliant.core.ports import Observation
from pliant.policy.schedule.plan import plan


class Planner:
    """Keeps what the newest decision was based on. Used under the ledger's lock."""

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy,
        preparations: PreparationCheck,
        queues: Queues,
        standing: JobStanding,
        out_of_use: OutOfUse,
    ) -> None:
        self.wake_at: float | None = None
        """When the decision may change though nothing happens."""
        self._ledger = ledger
        self._kinds = ledger.kinds
        self._policy = policy
        self._preparations = preparations
        self._queues = queues
        self._standing = standing
        self._out_of_use = out_of_use
        self._nodes: tuple[NodeView, ...] = ()
        self._observed: Observation | None = None
        """What the kinds took note of last: they have nothing to note of it again unless there are new processes."""

    def plan(self, now: float) -> None:
        """Decide anew if there is reason to."""
        self._preparations.check()
        observed = self._ledger.observe()
        if observed is not self._observed or self._ledger.dirty:
            observe(draft := self._ledger.draft(), self._kinds, observed)
            if draft.touched:
                self._ledger.commit(draft)
            self._observed = observed
        due = self.wake_at is not None and self.wake_at <= now
        if not (self._ledger.dirty or due or observed.nodes != self._nodes):
            return
        jobs = tuple(self._ledger.jobs().values())
        held = held_back(jobs)
        seen = seen_by_scheduler(
            jobs, self._ledger.kinds, self._ledger.view, observed, held, self._queues.views, self._out_of_use
        )
        with self._ledger.counts.timed(self._ledger.counts.plans_s):
            decision = plan(seen, self._policy, now)
        self._queues.deserved = decision.deserved
        self._standing.note(seen)
        draft = self._ledger.draft()
        for name, words in machine_news(self._nodes, observed.nodes):
            draft.say(EventKind.MACHINE_CHANGED, words, data={"name": name})
        is_whole = apply_plan(draft, self._kinds, decision, self._queues.run_as)
        note_held(draft, held)
        self._ledger.dirty = not is_whole  # if the plan changes something another follows, until they come to rest
        self._ledger.commit(draft)
        instants = [decision.wake_at, *(live.held_until for live in self._ledger.jobs().values())]
        self.wake_at = min((at for at in instants if at is not None and at > now), default=None)
        self._nodes = observed.nodes
