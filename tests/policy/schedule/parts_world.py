"""A cluster in virtual time whose workloads hold whole slots and parts of slots. Every plan is checked."""

from collections import defaultdict
from dataclasses import replace

from tests.policy.schedule.world import World, job, staying

from pliant.core.plan import Plan, Policy, PolicyName, Snapshot
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import Workload
from pliant.policy.schedule.plan import plan


def part(
    name: str,
    number: int,
    share: int,
    bounds: tuple[int, int] = (1, 4),
    *,
    on: tuple[tuple[int, int], ...] = (),
    leaving: int = 0,
    priority: int = 5000,
    queue: str = "default",
) -> Workload:
    """Return `job-NUMBER` whose tasks hold `share` thousandths of a slot each; else as `job`."""
    whole = job(name, number, bounds=bounds, on=on, leaving=leaving, priority=priority)
    return replace(whole, slot_share=share, kind="endpoint", queue=queue)


class PartsWorld(World):
    """As `World`; the laws are those of slots that are shared."""

    def decide(self) -> Plan:
        snapshot = self.snapshot
        decision = plan(snapshot, self.policy, self.now)
        check_parts(snapshot, decision, self.policy, self.now)
        turned = Snapshot(nodes=snapshot.nodes[::-1], workloads=snapshot.workloads[::-1])
        assert plan(turned, self.policy, self.now) == decision, "the order of the input matters"
        self.carry_out(decision)
        return decision

    def check_rest(self, decision: Plan) -> None:
        rooms = rooms_of(self)
        for view in self.jobs.values():
            grant = decision.grants[view.id]
            if not view.kept_off:
                assert len(view.tasks) == grant.num_tasks, f"{view.id} is not at its target"
            assert view.max_tasks or not view.tasks, f"{view.id} wants nothing, and holds slots"
            free = [room for place, room in rooms.items() if place[0] not in view.kept_off]
            if view.slot_share == WHOLE_SLOT or len(view.tasks) >= view.max_tasks:
                continue
            needed = 1 if view.tasks else view.min_tasks
            assert free.count(WHOLE_SLOT) < needed, f"slots are idle though {view.id} could use them"
        again = plan(self.snapshot, self.policy, self.now + 1000.0)
        assert again.grants == decision.grants, "does not stay at rest"
        assert again.reasons == decision.reasons, "reasons change at rest"


def rooms_of(world: World) -> dict[tuple[str, int], int]:
    """Return what is left of every slot, in thousandths."""
    rooms: dict[tuple[str, int], int] = {
        (node.id, slot): WHOLE_SLOT for node in world.nodes.values() for slot in node.slots
    }
    for view in world.jobs.values():
        for task in view.tasks:
            for slot in task.slots:
                if (task.node_id, slot) in rooms:
                    rooms[task.node_id, slot] -= view.slot_share
    return rooms


def check_parts(snapshot: Snapshot, decision: Plan, policy: Policy, now: float) -> None:
    """Check the laws that hold for every single plan."""
    views = {view.id: view for view in snapshot.workloads}
    slots = {(node.id, slot) for node in snapshot.nodes for slot in node.slots}
    held: dict[tuple[str, int], list[Workload]] = defaultdict(list)
    for view in views.values():
        for task in view.tasks:
            for slot in task.slots:
                held[task.node_id, slot].append(view)
    assert set(decision.grants) == set(decision.reasons) == set(views)
    for job_id, grant in decision.grants.items():
        view = views[job_id]
        assert grant.num_tasks == 0 or view.min_tasks <= grant.num_tasks <= view.max_tasks, (grant, view)
        assert set(grant.leave) <= {task.id for task in staying(view)}
        assert len(set(grant.leave)) == len(grant.leave)
        if grant.start:
            assert view.held_until is None or now >= view.held_until, "starts during its back-off"
        stay = [task for task in staying(view) if task.id not in grant.leave]
        assert len(stay) + len(grant.start) <= max(grant.num_tasks, len(stay))
        assert all((task.node_id, slot) in slots for task in stay for slot in task.slots), "stays where no slot is"
        for placement in grant.start:
            assert len(placement.slots) == view.slots_per_task
            assert placement.node_id not in view.kept_off, "starts where its tasks do not live"
            for slot in placement.slots:
                place = placement.node_id, slot
                assert place in slots
                held[place].append(view)
                assert sum(other.slot_share for other in held[place]) <= WHOLE_SLOT, "more than a slot is given away"
                assert {other.queue for other in held[place]} == {view.queue}, "queues share a slot"
        if policy.name is PolicyName.FAIRSHARE and view.slot_share == WHOLE_SLOT and view.min_tasks <= len(stay) > 0:
            assert grant.num_tasks, "fairshare pauses a job that holds its minimum"
    assert decision.wake_at is None or decision.wake_at > now
