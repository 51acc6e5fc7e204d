"""What may happen to jobs and nodes whatever the queues are: the rules that state machines of plans share."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.policy.schedule.world import World


class Turmoil(RuleBasedStateMachine):
    """Jobs whose tasks have `sizes` slots; `begin` of a machine puts its own world in the place of the empty one."""

    sizes: tuple[int, ...] = (1, 1, 2, 3, 4)
    least_nodes = 0
    max_rounds = 20
    """A world that nobody disturbs rests after so many decisions."""
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.num_jobs = 0

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data())
    def finish(self, data: Any) -> None:
        del self.world.jobs[self.draw_job(data)]

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data(), least=st.integers(1, 4), more=st.integers(0, 6))
    def change_bounds(self, data: Any, least: int, more: int) -> None:
        job_id = self.draw_job(data)
        self.world.put(replace(self.world.jobs[job_id], min_tasks=least, max_tasks=least + more))

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data(), back_off_s=st.sampled_from([None, 1.0, 5.0]))
    def lose_task(self, data: Any, back_off_s: float | None) -> None:
        view = self.world.jobs[self.draw_job(data)]
        held_until = None if back_off_s is None else self.world.now + back_off_s
        self.world.put(replace(view, tasks=view.tasks[1:], held_until=held_until))

    @precondition(lambda self: len(self.world.nodes) > self.least_nodes)
    @rule(data=st.data())
    def lose_node(self, data: Any) -> None:
        self.world.lose_node(data.draw(st.sampled_from(sorted(self.world.nodes))))

    @rule(passed_s=st.sampled_from([0.0, 0.5, 3.0]))
    def decide(self, passed_s: float) -> None:
        self.world.now += passed_s
        self.world.decide()

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data(), num=st.integers(1, 3))
    def some_leave(self, data: Any, num: int) -> None:
        self.world.exit_leaving(self.draw_job(data), num)

    @rule()
    def settle(self) -> None:
        self.world.settle(self.max_rounds)

    def teardown(self) -> None:
        self.world.settle(self.max_rounds)

    def draw_job(self, data: Any) -> Any:
        return data.draw(st.sampled_from(sorted(self.world.jobs)))
