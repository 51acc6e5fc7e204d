"""When the scheduler is asked: if anything changed that it sees, or when it asked to be woken."""

from pliant.control.jobs.fixed import see
from pliant.control.jobs.ledger import Ledger
from pliant.control.loop.gate import Gate
from pliant.control.loop.scheduling import apply_plan, snapshot
from pliant.control.requests.queues import Queues
from pliant.core.plan import NodeView, Policy
from pliant.core.ports import Cluster
from pliant.policy.schedule.plan import plan


class Planner:
    """Keeps what the newest decision was based on. Used under the ledger's lock."""

    def __init__(self, *, ledger: Ledger, cluster: Cluster, policy: Policy, gate: Gate, queues: Queues) -> None:
        self.wake_at: float | None = None
        """When the decision may change though nothing happens."""
        self._ledger = ledger
        self._cluster = cluster
        self._policy = policy
        self._gate = gate
        self._queues = queues
        self._nodes: tuple[NodeView, ...] = ()

    def plan(self, now: float) -> None:
        """Decide anew if there is reason to."""
        self._gate.look()
        observed = self._cluster.observe()
        if see(draft := self._ledger.draft(), observed):
            self._ledger.commit(draft)
        due = self.wake_at is not None and self.wake_at <= now
        if not (self._ledger.dirty or due or observed.nodes != self._nodes):
            return
        queues = self._queues.views(observed.nodes)
        decision = plan(snapshot(tuple(self._ledger.jobs().values()), observed, queues), self._policy, now)
        self._queues.deserved = decision.deserved
        draft = self._ledger.draft()
        apply_plan(draft, decision, self._queues.run_as)
        self._ledger.dirty = False  # if the plan changes something another follows, until they come to rest
        self._ledger.commit(draft)
        instants = [decision.wake_at, *(live.held_until for live in self._ledger.jobs().values())]
        self.wake_at = min((at for at in instants if at is not None and at > now), default=None)
        self._nodes = observed.nodes
