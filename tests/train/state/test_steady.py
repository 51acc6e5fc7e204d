"""Whether a forward pass changes parameters is seen in the first steps, however it does it."""

from collections.abc import Callable

import pytest
import torch

from pliant.train.state.steady import SteadyParameters


def step(watch: SteadyParameters, compute: Callable[[], object]) -> None:
    watch.begin(computes=True)
    compute()
    watch.end()


def test_a_step_of_which_this_task_has_no_part_tells_nothing() -> None:
    watch = SteadyParameters([torch.nn.Parameter(torch.ones(3))])

    watch.begin(computes=False)
    watch.end()
    assert watch.num_watched == 0

    step(watch, lambda: None)
    assert watch.num_watched == 1


def test_what_an_optimizer_does_between_steps_does_not_count() -> None:
    parameter = torch.nn.Parameter(torch.ones(1000, 1000))
    watch = SteadyParameters([parameter])

    for _ in range(4):
        step(watch, lambda: torch.autograd.grad(parameter.sum(), parameter))
        with torch.no_grad():
            parameter.sub_(1.0)

    assert not watch.have_changed


@pytest.mark.parametrize("number", [0, 1])
def test_weights_that_are_clamped_in_the_forward_pass_are_no_steady_ones(number: int) -> None:
    others, parameter = torch.nn.Parameter(torch.ones(5)), torch.nn.Parameter(torch.linspace(-2, 2, 10_000))
    watch = SteadyParameters([others, parameter])

    for now in range(3):
        step(watch, (lambda: parameter.data.clamp_(-1, 1)) if now == number else lambda: None)

    assert watch.have_changed


def test_nor_are_the_rows_that_an_embedding_renorms() -> None:
    table = torch.nn.Embedding(4, 8, max_norm=0.1)
    watch = SteadyParameters(list(table.parameters()))

    step(watch, lambda: table(torch.arange(4)))

    assert watch.have_changed
