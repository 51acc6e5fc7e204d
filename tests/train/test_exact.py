"""Exact mode: bitwise the same result for any number of workers."""

import warnings
from typing import Any

import pytest
import torch
from tests.train.crew import run_in
from tests.train.zoo import MODELS, train
from torch.utils.data import TensorDataset

from pliant.train import Run
from pliant.train.context import TRAIN_CONTEXT
from pliant.train.sum import late_linear, products

pytestmark = pytest.mark.timeout(180)

SIZES = (1, 2, 3, 4, 8)


def train_all(**arguments: Any) -> dict[str, str]:
    return {name: train(name, num_epochs=2, **arguments) for name in MODELS}


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """What one worker makes of the three trainings."""
    found: dict[str, str] = run_in(1, train_all)[0]
    assert all(result.startswith("exact ") for result in found.values()), found
    return found


@pytest.mark.parametrize("size", SIZES[1:])
def test_parameters_buffers_optimizer_state_and_loss_are_the_same_bits(size: int, expected: dict[str, str]) -> None:
    assert run_in(size, train_all) == [expected] * size


@pytest.mark.parametrize("shares", [(5, 3), (1, 7), (1, 5, 2)])
def test_so_are_those_of_uneven_shares(shares: tuple[int, ...], expected: dict[str, str]) -> None:
    assert run_in(len(shares), train_all, shares=shares) == [expected] * len(shares)


def train_with_gradients_that_wait(**arguments: Any) -> dict[str, str]:
    late_linear.LEAST_ELEMENTS, products.BLOCK_ROWS, products.BLOCK_ELEMENTS = 64, 8, 64  # type: ignore[misc]
    return train_all(**arguments)


def test_so_are_those_of_gradients_that_wait_for_the_last_part(expected: dict[str, str]) -> None:
    [alone] = run_in(1, train_with_gradients_that_wait)

    assert all(result.startswith("exact ") for result in alone.values()), alone
    assert run_in(3, train_with_gradients_that_wait) == [alone] * 3
    assert run_in(8, train_with_gradients_that_wait) == [alone] * 8
    assert run_in(2, train_with_gradients_that_wait, shares=(1, 7)) == [alone] * 2
    for name in MODELS:
        assert float(alone[name].split()[1]) == pytest.approx(float(expected[name].split()[1]), rel=0.02)


def test_so_are_those_of_parts_in_pieces() -> None:
    [alone] = run_in(1, train_all, accumulate=2)

    assert run_in(3, train_all, accumulate=2) == [alone] * 3


def test_fast_mode_agrees_within_rounding_errors_and_says_that_it_is_not_exact() -> None:
    results = run_in(2, train_all, mode="fast")

    assert results[0] == results[1]
    assert all(result.startswith("fast ") for result in results[0].values())
    [alone] = run_in(1, train_all, mode="fast", virtual_workers=1)
    for name in ("mlp",):  # without dropout and BatchNorm the parts do not matter
        assert float(results[0][name].split()[1]) == pytest.approx(float(alone[name].split()[1]), rel=1e-4)


def test_another_number_of_virtual_workers_is_another_sum(expected: dict[str, str]) -> None:
    [other] = run_in(1, train_all, virtual_workers=4)

    assert all(other[name] != expected[name] for name in MODELS)


def train_on_different_systems() -> str:
    if TRAIN_CONTEXT.get().membership.task_id.endswith(".1"):
        torch.set_num_threads(2)
    return train("mlp", num_epochs=1)


def test_tasks_on_different_systems_train_together_and_claim_less(expected: dict[str, str]) -> None:
    first, second = run_in(2, train_on_different_systems)

    assert first == second
    assert first.split()[0] == "statistical"


def train_without_a_deterministic_kernel() -> list[str]:
    torch.set_num_threads(1)
    data = TensorDataset(torch.arange(32), torch.arange(32) % 3)
    model = torch.nn.Embedding(32, 3)
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=16, virtual_workers=2)
    for _ in run.epochs(1):
        for x, y in run:
            warnings.warn(KERNEL, stacklevel=1)
            run.step(torch.nn.functional.cross_entropy(model(x), y))
    return [run.claim, TRAIN_CONTEXT.get().membership.task_id]


KERNEL = (
    "some_kernel does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, "
    "warn_only=True)'."
)
"""As torch words it; whether a kernel of its own warns depends on the device."""


def test_an_operation_without_a_deterministic_kernel_makes_the_claim_statistical() -> None:
    assert run_in(1, train_without_a_deterministic_kernel) == [["statistical", "crew.0"]]


def pledge_in_a_crowd() -> list[float]:
    """Three tasks, two virtual workers: one of the tasks has none."""
    me = int(TRAIN_CONTEXT.get().membership.task_id.rpartition(".")[2])
    data = TensorDataset(torch.arange(8.0)[:, None], torch.zeros(8, 1))
    model = torch.nn.Linear(1, 1)
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=4, virtual_workers=2)
    sums: list[float] = []
    finish = run._engine.reducer.finish
    begin = run._engine.reducer.begin

    def begin_and_pledge(*args: Any, **named: Any) -> None:
        begin(*args, **named)
        run._engine.reducer.control[3] = 1.0 + me

    def finish_and_note(**named: Any) -> list[float]:
        sums[:] = finish(**named)
        return [0.0 if place < 4 else value for place, value in enumerate(sums)]

    run._engine.reducer.begin, run._engine.reducer.finish = begin_and_pledge, finish_and_note  # type: ignore[method-assign]
    for _ in run.epochs(1):
        for x, y in run:
            run.step(torch.nn.functional.mse_loss(model(x), y))
    return [sums[3], run.last["loss"]]


def pledge_without_a_part() -> list[float]:
    """Two tasks with 7 and 1 of 8 virtual workers: of the last batch's four parts the first one has all."""
    me = int(TRAIN_CONTEXT.get().membership.task_id.rpartition(".")[2])
    data = TensorDataset(torch.arange(12.0)[:, None], torch.zeros(12, 1))
    model = torch.nn.Linear(1, 1)
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.01), data, batch_size=8, virtual_workers=8)
    sums: list[float] = []
    finish = run._engine.reducer.finish

    def finish_and_note(**named: Any) -> list[float]:
        run._engine.reducer.control[3] = 1.0 + me
        sums[:] = finish(**named)
        return [0.0 if place < 4 else value for place, value in enumerate(sums)]

    run._engine.reducer.finish = finish_and_note  # type: ignore[method-assign]
    num_parts = 0
    for _ in run.epochs(1):
        run._engine.balance.shares = (7, 1)
        for x, y in run:
            num_parts += 1
            run.step(torch.nn.functional.mse_loss(model(x), y))
    return [num_parts, sums[3], run.last["loss"]]


def test_so_do_those_of_a_task_whose_share_of_a_small_batch_is_nothing() -> None:
    (many, first, loss), (few, second, same) = run_in(2, pledge_without_a_part)

    assert (many, few) == (7 + 4, 1)
    assert (first, loss) == (second, same)
    assert first == 2.0


def test_control_elements_of_tasks_without_a_virtual_worker_count_too() -> None:
    first, second, third = run_in(3, pledge_in_a_crowd)

    assert first == second == third
    assert first[0] == 6.0
