"""What real training scripts do: the same as a plain loop of PyTorch, and the same bits for any number of tasks."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.train.cases import CASES
from tests.train.crew import run_in
from tests.train.loops import STEPS_PER_EPOCH, train, train_plain, training_context
from tests.train.real import VIRTUAL_WORKERS, resume, train_cases, train_compiled

pytestmark = pytest.mark.timeout(240)

OF_A_BATCH = {"batch norm": "statistics are those of a part", "float16 autocast": "smaller parts overflow later"}
"""Cases whose numbers depend on how a global batch is cut, and why."""


@pytest.fixture(autouse=True)
def _training_context() -> Iterator[None]:
    with training_context():
        yield


@pytest.mark.parametrize("name", CASES)
def test_one_virtual_worker_gives_the_bits_of_a_plain_loop(name: str) -> None:
    case = CASES[name]()
    run = train(case)

    expected = train_plain(CASES[name]())
    torch.testing.assert_close(case.model.state_dict(), expected.model.state_dict(), rtol=0, atol=0, equal_nan=True)
    states = [optimizer.state_dict() for optimizer in case.optimizers.values()]
    assert same(states, [optimizer.state_dict() for optimizer in expected.optimizers.values()])
    kept = [one.state_dict() for one in case.state.values()]
    assert same(kept, [one.state_dict() for one in expected.state.values()])
    assert run.claim == "exact"


def same(tree: Any, other: Any) -> bool:
    """Tell whether two states are equal to the bit."""
    if isinstance(tree, dict):
        return tree.keys() == other.keys() and all(same(tree[key], other[key]) for key in tree)
    if isinstance(tree, list | tuple):
        return len(tree) == len(other) and all(map(same, tree, other))
    return torch.equal(tree, other) if isinstance(tree, torch.Tensor) else bool(tree == other)


@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_A_BATCH])
def test_virtual_workers_change_nothing_but_the_rounding(name: str) -> None:
    case = CASES[name]()
    train(case, virtual_workers=VIRTUAL_WORKERS)

    rough = any(p.dtype == torch.bfloat16 for p in case.model.parameters()) or name == "bfloat16 autocast"
    expected = train_plain(CASES[name]()).model.state_dict()
    torch.testing.assert_close(
        case.model.state_dict(), expected, rtol=0.05 if rough else 1e-4, atol=0.01 if rough else 1e-5
    )


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    """What one task makes of every case."""
    [found] = run_in(1, train_cases)
    assert all(result.startswith("exact ") for result in found.values()), found
    return dict(found)


@pytest.mark.parametrize("size", [2, 3])
def test_any_number_of_tasks_ends_with_the_same_bits(size: int, alone: dict[str, str]) -> None:
    assert run_in(size, train_cases) == [alone] * size


def test_fast_mode_trains_them_too() -> None:
    first, second = run_in(2, train_cases, mode="fast")

    assert first == second
    assert all(result.startswith("fast ") for result in first.values())


def test_a_compiled_model_is_trained_and_saved_under_its_own_names() -> None:
    [plain] = run_in(1, train_compiled, backend=None)

    assert run_in(2, train_compiled, backend="eager") == [plain] * 2


def test_a_checkpoint_is_resumed_by_another_number_of_tasks(tmp_path: Any) -> None:
    whole = run_in(1, resume, result_dir=str(tmp_path / "whole"), stops=(3,))
    parts = run_in(1, resume, result_dir=str(tmp_path / "parts"), stops=(1,))
    assert parts[0][0] == STEPS_PER_EPOCH

    resumed = run_in(3, resume, result_dir=str(tmp_path / "parts"), stops=(3,))

    assert resumed == whole * 3
    assert whole[0][0] == 3 * STEPS_PER_EPOCH
