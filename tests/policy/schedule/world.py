"""A cluster in virtual time for the scheduler's tests, and builders of what it decides on. Every plan is checked."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.plan import NodeView, Plan, Policy, PolicyName, Snapshot
from pliant.core.workload import TaskView, Workload
from pliant.policy.schedule.plan import plan


def pool(*sizes: int) -> tuple[NodeView, ...]:
    """Return nodes `node-1`, `node-2`, … of so many slots."""
    return tuple(NodeView(id=NodeId(f"node-{n}"), slots=tuple(range(size))) for n, size in enumerate(sizes, 1))


def job(
    name: str,
    number: int,
    *,
    priority: int = 5000,
    bounds: tuple[int, int] = (1, 8),
    size: int = 1,
    on: Sequence[tuple[int, int]] = (),
    leaving: int = 0,
) -> Workload:
    """Return `job-NUMBER`, older the smaller its number, with tasks at (node, first slot); the last `leaving` leave."""
    tasks = tuple(
        TaskView(
            id=TaskId(f"job-{number}.{n}"),
            node_id=NodeId(f"node-{node}"),
            slots=tuple(range(slot, slot + size)),
            leaving=n > len(on) - leaving,
        )
        for n, (node, slot) in enumerate(on, 1)
    )
    return Workload(
        id=JobId(f"job-{number}"),
        name=name,
        priority=priority,
        min_tasks=bounds[0],
        max_tasks=bounds[1],
        slots_per_task=size,
        submitted_at=float(number),
        tasks=tasks,
    )


def line(node: int, slots: Iterable[int]) -> list[tuple[int, int]]:
    """Return places on one node."""
    return [(node, slot) for slot in slots]


def staying(view: Workload) -> list[TaskView]:
    return [task for task in view.tasks if not task.leaving]


class World:
    """Nodes and jobs; carries plans out and checks their laws."""

    def __init__(self, nodes: Iterable[NodeView], jobs: Iterable[Workload] = (), policy: Policy | None = None) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.jobs = {view.id: view for view in jobs}
        self.policy = policy or Policy(cooldown_s=0.0)
        self.now = 1000.0
        self.num_started: dict[JobId, int] = {view.id: len(view.tasks) for view in self.jobs.values()}

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(nodes=tuple(self.nodes.values()), workloads=tuple(self.jobs.values()))

    def put(self, view: Workload) -> None:
        self.jobs[view.id] = view
        self.num_started.setdefault(view.id, len(view.tasks))

    def decide(self) -> Plan:
        """Make a plan, check it, carry it out, and return it."""
        snapshot = self.snapshot
        decision = plan(snapshot, self.policy, self.now)
        check_plan(snapshot, decision, self.policy, self.now)
        turned = Snapshot(nodes=snapshot.nodes[::-1], workloads=snapshot.workloads[::-1])
        assert plan(turned, self.policy, self.now) == decision, "the order of the input matters"
        self.carry_out(decision)
        return decision

    def carry_out(self, decision: Plan) -> None:
        """Start tasks and let tasks begin to leave."""
        for job_id, grant in decision.grants.items():
            view = self.jobs[job_id]
            tasks = [replace(task, leaving=task.leaving or task.id in grant.leave) for task in view.tasks]
            for placement in grant.start:
                self.num_started[job_id] += 1
                number = self.num_started[job_id]
                task_id = TaskId(f"{job_id}.{number}")
                tasks.append(TaskView(id=task_id, node_id=placement.node_id, slots=placement.slots))
            resized = self.now if grant.start or grant.leave else view.resized_at
            given_up = [(t.node_id, slot) for t in view.tasks if t.id in grant.leave for slot in t.slots]
            kept = [slot for slot in view.given_up if slot not in given_up]
            self.jobs[job_id] = replace(view, tasks=tuple(tasks), resized_at=resized, given_up=(*kept, *given_up))

    def exit_leaving(self, job_id: JobId | None = None, num: int | None = None) -> None:
        """Let leaving tasks be gone: all of them, or of one job, or the first few."""
        for view in list(self.jobs.values()):
            if job_id in (None, view.id):
                gone = [task.id for task in view.tasks if task.leaving][:num]
                self.jobs[view.id] = replace(view, tasks=tuple(t for t in view.tasks if t.id not in gone))

    def lose_node(self, node_id: NodeId) -> None:
        """Take a node away with all that runs on it."""
        del self.nodes[node_id]
        for view in list(self.jobs.values()):
            kept = tuple(task for task in view.tasks if task.node_id != node_id)
            self.jobs[view.id] = replace(view, tasks=kept)

    def settle(self, num_rounds: int) -> list[Plan]:
        """Decide, let tasks leave, and wait out cool-downs until nothing changes; check that it stays so."""
        made = []
        for _ in range(num_rounds):
            decision = self.decide()
            made.append(decision)
            idle = all(not grant.start and not grant.leave for grant in decision.grants.values())
            leaving = any(task.leaving for view in self.jobs.values() for task in view.tasks)
            self.exit_leaving()
            if decision.wake_at is not None:
                assert decision.wake_at > self.now, "asks to be woken in the past"
                self.now = decision.wake_at
            elif idle and not leaving:
                self.check_rest(decision)
                return made
            else:
                self.now += 0.1
        raise AssertionError(f"not at rest after {num_rounds} rounds")

    def check_rest(self, decision: Plan) -> None:
        """Check the laws that hold when nothing is left to do."""
        check_rest(self, decision)


def check_plan(snapshot: Snapshot, decision: Plan, policy: Policy, now: float) -> None:
    """Check the laws that hold for every single plan."""
    views = {view.id: view for view in snapshot.workloads}
    slots = {(node.id, slot) for node in snapshot.nodes for slot in node.slots}
    free = slots - {(t.node_id, slot) for view in views.values() for t in view.tasks for slot in t.slots}
    assert set(decision.grants) == set(decision.reasons) == set(views)
    promised = 0
    for job_id, grant in decision.grants.items():
        view = views[job_id]
        stays = staying(view)
        assert grant.num_tasks == 0 or view.min_tasks <= grant.num_tasks <= view.max_tasks, (grant, view)
        assert not (grant.start and grant.leave), "starts and leaves at once"
        assert set(grant.leave) <= {task.id for task in stays}, "names who leaves already, or a stranger"
        assert len(set(grant.leave)) == len(grant.leave)
        held = [t for t in stays if {(t.node_id, slot) for slot in t.slots} <= slots]
        stranded = len(stays) - len(held)
        num_over = max(0, len(held) - grant.num_tasks)
        assert len(grant.leave) >= num_over + stranded
        if policy.name is PolicyName.FAIRSHARE and len(held) >= view.min_tasks:
            assert len(grant.leave) == num_over + stranded, "moves tasks"
        assert len(held) + len(grant.start) <= max(grant.num_tasks, len(held))
        if not held and grant.start:
            assert len(grant.start) == view.min_tasks, "starts with another number than its minimum"
        if grant.start:
            assert view.held_until is None or now >= view.held_until, "starts during its back-off"
        for placement in grant.start:
            assert len(placement.slots) == view.slots_per_task
            assert placement.node_id not in view.kept_off, "starts where its tasks do not live"
            for slot in placement.slots:
                assert (placement.node_id, slot) in free, "not free, or granted twice"
                free.remove((placement.node_id, slot))
        if policy.name is PolicyName.FAIRSHARE and view.min_tasks <= len(held) and view.max_tasks:
            assert grant.num_tasks, "fairshare pauses a job that holds its minimum"
        if view.held_until is None or now >= view.held_until:
            promised += grant.num_tasks * view.slots_per_task
    assert promised <= len(slots), "promises more slots than there are"
    assert decision.wake_at is None or decision.wake_at > now
    if all(view.slots_per_task == 1 and not view.kept_off for view in views.values()):
        check_single_slots(snapshot, decision, policy, now)


def check_single_slots(snapshot: Snapshot, decision: Plan, policy: Policy, now: float) -> None:
    """Check the laws that hold for every plan where every task takes one slot, so that it fits anywhere."""
    nodes = {node.id: set(node.slots) for node in snapshot.nodes}
    num_slots = sum(len(slots) for slots in nodes.values())
    used = num_missing = num_given = 0
    somebody_can_grow = False
    for view in snapshot.workloads:
        grant = decision.grants[view.id]
        num_held = sum(set(t.slots) <= nodes.get(t.node_id, set()) for t in staying(view))
        backs_off = view.held_until is not None and now < view.held_until
        used += min(num_held, grant.num_tasks) if backs_off else grant.num_tasks
        somebody_can_grow |= 0 < grant.num_tasks < view.max_tasks and not backs_off
        if grant.num_tasks and not backs_off:
            num_missing += max(0, view.min_tasks - num_held)
        if view.resized_at is not None and now < view.resized_at + policy.cooldown_s and grant.num_tasks:
            num_given += max(0, min(num_held, view.max_tasks) - grant.num_tasks)
    assert used == num_slots or not somebody_can_grow, "slots are left over though somebody could use them"
    assert num_given <= num_missing, "a cool-down is broken for something else than a minimum"


def check_rest(world: World, decision: Plan) -> None:
    """Check the laws that hold when nothing is left to do."""
    taken = {(t.node_id, slot) for view in world.jobs.values() for t in view.tasks for slot in t.slots}
    free = {n.id: sum((n.id, slot) not in taken for slot in n.slots) for n in world.nodes.values()}
    for view in world.jobs.values():
        if not view.kept_off:
            assert len(view.tasks) == decision.grants[view.id].num_tasks, f"{view.id} is not at its target"
        places = sum(num // view.slots_per_task for node_id, num in free.items() if node_id not in view.kept_off)
        if len(view.tasks) < view.max_tasks:
            needed = 1 if view.tasks else view.min_tasks
            assert places < needed, f"slots are idle though {view.id} could use them"
    again = plan(world.snapshot, world.policy, world.now + 1000.0)
    assert again.grants == decision.grants, "does not stay at rest"
    assert again.reasons == decision.reasons, "reasons change at rest"
