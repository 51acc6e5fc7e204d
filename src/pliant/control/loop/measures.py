"""What can be measured of the pool and of control now: one value, from which monitoring makes its text.

Reads memory alone, never the store, so that it may be asked every second.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pliant.control.jobs.counts import ENDED
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.control.requests.out_of_use import OutOfUse
from pliant.control.requests.queues import Queues
from pliant.core.event import EventKind
from pliant.core.histogram import Histogram
from pliant.core.job import JobId, NodeId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.machine import MachineFacts
from pliant.core.ports import Cluster
from pliant.core.serving import VersionLoad

OLD_FACTS_S = 60.0
"""Older facts of a machine are no measure of how it is now."""
LIVE_STATES = tuple(state for state in JobState if state not in ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMeasures:
    """One queue."""

    held: int
    """Slots that its jobs hold."""
    wanted: int
    """Slots that its jobs would take if there were enough: what they have, and what they may have more."""
    deserved: int
    """Slots that it deserves, by the newest decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMeasures:
    """One job that holds slots."""

    kind: str
    queue: str
    owner: str
    held: int
    target: int
    """Slots that the newest decision gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMeasures:
    """One version of an endpoint whose job has not ended."""

    job_id: JobId
    owner: str
    queue: str
    wanted: int
    kernels: Mapping[str, int]
    """How many are `starting`, `ready` and `leaving`."""
    load: VersionLoad | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMeasures:
    """All that is measured, at one instant."""

    slots: Mapping[NodeId, tuple[int, int, int]]
    """Of each node: slots that are held, excluded and held by nobody, and all."""
    machines: Mapping[NodeId, MachineFacts]
    """What machines told of themselves in the last minute."""
    jobs: Mapping[tuple[JobState, str, str], int]
    """Jobs that have not ended, by state, kind and queue; each combination of what there is."""
    queues: Mapping[str, QueueMeasures]
    holders: Mapping[JobId, JobMeasures]
    versions: Mapping[tuple[str, int], VersionMeasures]
    """By the endpoint's name and the version's number."""
    events: Mapping[str, int]
    """By their kind."""
    ended: Mapping[str, int]
    """Jobs by their last state."""
    pauses_s: Histogram
    plans_s: Histogram
    ticks_s: Histogram
    tick_age_s: float


class Measures:
    """Takes the measures. Safe to call from any thread."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        cluster: Cluster,
        queues: Queues,
        out_of_use: OutOfUse,
        tick_age_s: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._kinds = ledger.kinds
        self._queues = queues
        self._out_of_use = out_of_use
        self._tick_age_s = tick_age_s

    def take(self) -> PoolMeasures:
        """Return how things stand."""
        with self._ledger.lock:
            lives = tuple(self._ledger.jobs().values())
            counts = self._ledger.counts
            nodes, taken = self._ledger.observe().nodes, _held_slots(lives)
            held = Counter(node_id for node_id, _ in taken)
            excluded = Counter(node_id for node_id, _ in self._out_of_use.excluded(nodes) - taken)
            by_queue: dict[str, list[LiveJob]] = defaultdict(list)
            for live in lives:
                by_queue[live.job.queue].append(live)
            names = {kept.noun.name for kept in self._queues.queues()} | by_queue.keys()
            by_state = Counter((live.job.state, self._kinds.of(live.job).name, live.job.queue) for live in lives)
            return PoolMeasures(
                slots={node.id: (held[node.id], excluded[node.id], len(node.slots)) for node in nodes},
                machines={
                    node_id: one.facts for node_id, one in self._cluster.measured().items() if one.age_s < OLD_FACTS_S
                },
                jobs={
                    (state, kind, queue): by_state[state, kind, queue]
                    for state in LIVE_STATES
                    for kind in self._kinds.names
                    for queue in sorted(names)
                },
                queues={name: self._queue(name, by_queue[name]) for name in sorted(names)},
                holders={live.id: self._job(live) for live in lives if live.num_slots},
                versions=_versions(lives),
                events={kind.value: counts.events[kind] for kind in EventKind},
                ended={state.value: counts.ended[state] for state in ENDED},
                pauses_s=counts.pauses_s.histogram(),
                plans_s=counts.plans_s.histogram(),
                ticks_s=counts.ticks_s.histogram(),
                tick_age_s=max(0.0, self._tick_age_s()),
            )

    def _queue(self, name: str, lives: Sequence[LiveJob]) -> QueueMeasures:
        return QueueMeasures(
            held=len(_held_slots(lives)),
            wanted=sum(self._wanted(live) for live in lives),
            deserved=self._queues.deserved.get(name, 0),
        )

    def _wanted(self, live: LiveJob) -> int:
        if not live.wants_slots:
            return 0
        return live.job.spec.num_slots_for(self._kinds.of(live.job).view(live).max_tasks)

    def _job(self, live: LiveJob) -> JobMeasures:
        return JobMeasures(
            kind=self._kinds.of(live.job).name,
            queue=live.job.queue,
            owner=live.job.owner,
            held=live.num_slots,
            target=live.job.spec.num_slots_for(live.target) if live.competes else 0,
        )


def _held_slots(lives: Iterable[LiveJob]) -> set[tuple[NodeId, int]]:
    """Return the slots that jobs hold, or a part of them."""
    return {(task.node_id, slot) for live in lives for task in live.running for slot in task.slots}


def _versions(lives: tuple[LiveJob, ...]) -> Mapping[tuple[str, int], VersionMeasures]:
    """Return the versions that run; of two jobs of one version that which competes, or else the newer one, counts."""
    found: dict[tuple[str, int], EndpointJob] = {}
    for live in sorted(lives, key=lambda one: (one.competes, one.job.submitted_at)):
        if isinstance(live, EndpointJob) and live.job.spec.endpoint is not None and not live.job.ended:
            found[live.job.spec.endpoint.name, live.job.spec.endpoint.version] = live
    return {key: _version(live) for key, live in found.items()}


def _version(live: EndpointJob) -> VersionMeasures:
    states = Counter(task.state for task in live.running)
    ready, leaving = states[TaskState.TRAINING], states[TaskState.LEAVING]
    return VersionMeasures(
        job_id=live.id,
        owner=live.job.owner,
        queue=live.job.queue,
        wanted=live.wanted if live.competes else 0,
        kernels={"starting": len(live.running) - ready - leaving, "ready": ready, "leaving": leaving},
        load=live.load,
    )
