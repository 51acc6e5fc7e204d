"""A cluster in virtual time with queues over resource groups. Every plan is checked against the laws of queues."""

from collections.abc import Iterable
from dataclasses import replace

from tests.policy.schedule.world import World, staying

from pliant.core.job import JobId, NodeId
from pliant.core.plan import NodeView, Plan, Policy, PolicyName, QueueRules, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.plan import plan


def queue(
    name: str,
    *,
    group: str = "",
    slots: dict[int, int] | None = None,
    policy: PolicyName = PolicyName.FAIRSHARE,
    weight: int = 1,
    preemption: bool = True,
) -> QueueRules:
    """Return a queue over so many slots of `node-N`, or over all."""
    own = None if slots is None else {NodeId(f"node-{n}"): num for n, num in slots.items()}
    return QueueRules(
        name=name, group=group or f"of-{name}", slots=own, policy=policy, weight=weight, preemption=preemption
    )


def into(view: Workload, name: str) -> Workload:
    """Return the job in a queue."""
    return replace(view, queue=name)


class QueuedWorld(World):
    """Nodes, queues and jobs; carries plans out and checks the laws that queues add."""

    def __init__(
        self,
        nodes: Iterable[NodeView],
        queues: Iterable[QueueRules],
        jobs: Iterable[Workload] = (),
        cooldown_s: float = 0.0,
    ) -> None:
        super().__init__(nodes, jobs, Policy(cooldown_s=cooldown_s))
        self.queues = {view.name: view for view in queues}

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(
            nodes=tuple(self.nodes.values()),
            workloads=tuple(self.jobs.values()),
            queues=tuple(self.queues.values()),
        )

    def decide(self) -> Plan:
        snapshot = self.snapshot
        decision = plan(snapshot, self.policy, self.now)
        check_laws(snapshot, decision, self.now)
        turned = Snapshot(nodes=snapshot.nodes[::-1], workloads=snapshot.workloads[::-1], queues=snapshot.queues[::-1])
        assert plan(turned, self.policy, self.now) == decision, "the order of the input matters"
        self.carry_out(decision)
        return decision

    def check_rest(self, decision: Plan) -> None:
        """Check the laws that hold when nothing is left to do."""
        check_rest(self, decision)

    def sizes(self) -> dict[str, int]:
        """Return how many slots each job holds, by name."""
        return {view.name: sum(len(task.slots) for task in view.tasks) for view in self.jobs.values()}

    def held_by_queue(self) -> dict[str, int]:
        held = dict.fromkeys(self.queues, 0)
        for view in self.jobs.values():
            held[view.queue] += sum(len(task.slots) for task in view.tasks)
        return held


def limits(snapshot: Snapshot) -> dict[tuple[str, NodeId], int]:
    """Return how many slots of every node each group has."""
    return {
        (queue.group, node.id): len(node.slots) if queue.slots is None else queue.slots.get(node.id, 0)
        for queue in snapshot.queues
        for node in snapshot.nodes
    }


def check_laws(snapshot: Snapshot, decision: Plan, now: float) -> None:
    """Check the laws that hold for every single plan."""
    views = {view.id: view for view in snapshot.workloads}
    queues = {view.name: view for view in snapshot.queues}
    limit = limits(snapshot)
    free = {(node.id, slot) for node in snapshot.nodes for slot in node.slots}
    used = dict.fromkeys(limit, 0)
    for view in views.values():
        for task in view.tasks:
            free -= {(task.node_id, slot) for slot in task.slots}
            key = (queues[view.queue].group, task.node_id)
            used[key] = used.get(key, 0) + len(task.slots)
    slots = {(node.id, slot) for node in snapshot.nodes for slot in node.slots}
    assert set(decision.grants) == set(decision.reasons) == set(views)
    for job_id, grant in decision.grants.items():
        view, own = views[job_id], queues[views[job_id].queue]
        stays = staying(view)
        held = [task for task in stays if {(task.node_id, slot) for slot in task.slots} <= slots]
        keeps = not own.preemption
        assert not (grant.start and grant.leave), "starts and leaves at once"
        assert set(grant.leave) <= {task.id for task in stays}
        assert grant.num_tasks <= view.max_tasks
        assert grant.num_tasks == 0 or grant.num_tasks >= view.min_tasks or (keeps and grant.num_tasks >= len(held))
        if keeps:
            gone = len(stays) - len(held)
            above = max(0, len(held) - view.max_tasks)
            assert len(grant.leave) == gone + above, "takes a task of a queue without preemption"
        if not held and grant.start:
            assert len(grant.start) == view.min_tasks, "starts with another number than its minimum"
        for placement in grant.start:
            assert len(placement.slots) == view.slots_per_task
            key = (own.group, placement.node_id)
            used[key] = used.get(key, 0) + view.slots_per_task
            assert used[key] <= limit.get(key, 0), "starts on a slot outside its group"
            for slot in placement.slots:
                assert (placement.node_id, slot) in free, "not free, or granted twice"
                free.remove((placement.node_id, slot))
        if own.policy is PolicyName.FAIRSHARE and len(held) == len(stays) >= view.min_tasks and view.max_tasks:
            over = any(used_of(snapshot, own.group, task.node_id) > limit[own.group, task.node_id] for task in stays)
            assert grant.num_tasks or over, "pauses a job that holds its minimum"
    assert decision.wake_at is None or decision.wake_at > now


def used_of(snapshot: Snapshot, group: str, node_id: NodeId) -> int:
    """Return how many slots of a node the jobs of a group's queues hold and keep."""
    names = {queue.name for queue in snapshot.queues if queue.group == group}
    return sum(
        len(task.slots)
        for view in snapshot.workloads
        if view.queue in names
        for task in staying(view)
        if task.node_id == node_id
    )


def check_rest(world: QueuedWorld, decision: Plan) -> None:
    """Check the laws that hold when nothing is left to do: nothing that somebody could use is idle, and it stays so."""
    snapshot = world.snapshot
    limit = limits(snapshot)
    taken = {(t.node_id, slot) for view in world.jobs.values() for t in view.tasks for slot in t.slots}
    free = {n.id: sum((n.id, slot) not in taken for slot in n.slots) for n in world.nodes.values()}
    for view in world.jobs.values():
        own = world.queues[view.queue]
        places = 0
        for node_id, num in free.items():
            left = limit[own.group, node_id] - used_of(snapshot, own.group, node_id)
            places += max(0, min(num, left)) // view.slots_per_task
        if view.max_tasks > len(view.tasks):
            needed = 1 if view.tasks else view.min_tasks
            assert places < needed, f"slots are idle though {view.id} could use them"
        assert own.preemption or len(view.tasks) <= max(decision.grants[view.id].num_tasks, view.max_tasks)
    again = plan(snapshot, world.policy, world.now + 1000.0)
    assert again.grants == decision.grants, "does not stay at rest"
    assert again.reasons == decision.reasons, "reasons change at rest"


def grown(made: Iterable[Plan], job_id: JobId) -> list[int]:
    """Return the targets of a job in decision after decision."""
    return [decision.grants[job_id].num_tasks for decision in made if job_id in decision.grants]
