"""A simulated training commits whole steps, in a time that its number of tasks divides."""

from pliant.core.job import TaskId
from pliant.core.link import Form
from pliant.sim.training import SimTraining, SimWork

WORK = SimWork(num_steps=100, step_s=4.0, pause_s=1.0)


def form(generation: int, *members: str) -> Form:
    return Form(generation=generation, members=tuple(TaskId(m) for m in members), host="h", port=1)


def test_two_tasks_take_half_the_time_of_one() -> None:
    one, two = SimTraining(work=WORK), SimTraining(work=WORK)
    one.enter(form(1, "a"), 0.0)
    two.enter(form(1, "a", "b"), 0.0)

    assert (one.step_at(1.0), one.step_at(9.0), two.step_at(9.0)) == (0.0, 2.0, 4.0)
    assert one.step_at(1e6) == 100


def test_a_step_that_was_begun_at_a_loss_is_done_again() -> None:
    training = SimTraining(work=WORK)
    training.enter(form(1, "a", "b"), 0.0)
    training.halt(6.0)

    assert (training.step, training.rate) == (2, 0.0)
    assert training.enter(form(2, "b"), 10.0) == 1
    assert training.step_at(11.0 + 4.0) == 3.0


def test_what_nobody_holds_goes_on_from_the_checkpoint() -> None:
    training = SimTraining(work=WORK, saved_step=1)
    training.enter(form(1, "a"), 0.0)
    training.halt(9.0)
    training.holders.discard(TaskId("a"))
    training.enter(form(2, "b"), 20.0)

    assert training.step == 1
    assert training.progress().step == 1
