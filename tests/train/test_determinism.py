"""Operations that are not deterministic are noticed, and the claim of the training gets weaker."""

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import torch
from tests.train.loops import Case, make, mlp, surrounded, train
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def _surrounded() -> Iterator[None]:
    with surrounded():
        yield


def unsteady() -> Case:
    """A case with an operation that has no deterministic kernel."""
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
        return F.cross_entropy(model(batch[1]), batch[2])

    return make(model, loss=loss)


@pytest.mark.parametrize("action", ["default", "ignore", "error"])
def test_an_operation_that_is_not_deterministic_is_noticed_however_warnings_are_shown(
    action: Literal["default", "ignore", "error"],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        run = train(unsteady(), virtual_workers=2)

    assert run.claim == "statistical"
    assert "put_ does not have a deterministic implementation" in (run._engine.state.claim.reason)


def test_a_second_training_of_the_process_notices_it_too() -> None:
    assert [train(unsteady()).claim for _ in range(2)] == ["statistical", "statistical"]


def test_warnings_of_the_script_are_shown_as_before() -> None:
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        warnings.warn("the script's own", UserWarning, stacklevel=1)
        return F.cross_entropy(model(batch[1]), batch[2])

    with pytest.warns(UserWarning, match="the script's own"):
        run = train(make(model, loss=loss), num_epochs=1)

    assert run.claim == "exact"
