"""The state that tasks share: whole, taken over to the bit, and refused where it belongs to another training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.loops import Case, make, mlp, run_of, sgd, surrounded, train
from torch import nn
from torch.optim import lr_scheduler

from pliant.train import Run, TrainingError
from pliant.train.state.pytree import flatten, unflatten


@pytest.fixture(autouse=True)
def _surrounded() -> Iterator[None]:
    with surrounded():
        yield


def captured(run: Run) -> dict[str, Any]:
    """Return the state of a training as it arrives at another task."""
    tree: dict[str, Any] = unflatten(*flatten(run._engine.state.capture(step=run.num_steps_done, epoch=run.epoch)))
    return tree


def refused(saved: Case, present: Case, words: str) -> None:
    tree = captured(run_of(saved))
    with pytest.raises(TrainingError, match=words):
        run_of(present)._engine.state.load(tree)


def test_a_state_with_other_objects_is_refused() -> None:
    model = mlp()
    optimizer = sgd(model)
    with_scheduler = make(model, optimizer, schedulers=[lr_scheduler.ExponentialLR(optimizer, 0.9)])

    refused(
        with_scheduler,
        make(mlp()),
        r"the saved state has the objects in state \['scheduler 0'\], and this script has \[\]; give the same",
    )


def test_a_state_with_other_optimizers_is_refused() -> None:
    case = make(mlp())
    case.optimizers = {"adam": torch.optim.Adam(case.model.parameters())}

    refused(case, make(mlp()), r"the saved state has the optimizers \['adam'\], and this script has \['0'\]")


def test_a_state_of_another_model_is_refused() -> None:
    refused(
        make(nn.Linear(6, 3)), make(nn.Linear(6, 2)), "(?s)does not fit the model and the optimizers .*size mismatch"
    )


def test_a_state_may_be_taken_over_more_than_once_whatever_its_objects_do_to_it() -> None:
    """CyclicLR takes entries out of the dict that it loads."""

    def case() -> Case:
        model = mlp()
        optimizer = sgd(model)
        return make(model, optimizer, schedulers=[lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=3)])

    tree = captured(train(case()))
    newcomer = run_of(case())
    for _ in range(2):
        newcomer._engine.state.load(tree)

    assert newcomer.schedulers[0].last_epoch == 12


class Hidden(nn.Module):
    """Has a buffer that `state_dict` leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp()
        self.register_buffer("count", torch.zeros(()), persistent=False)
        self.count: torch.Tensor

    def forward(self, x: torch.Tensor) -> Any:
        self.count += 1
        return self.inner(x)


def test_a_buffer_that_is_not_saved_with_the_weights_is_part_of_the_state() -> None:
    tree = captured(train(make(Hidden())))
    newcomer = Hidden()
    run_of(make(newcomer))._engine.state.load(tree)

    assert newcomer.count.item() == 12


# -- first weights ----------------------------------------------------------------------------------------------------


def test_a_training_starts_from_the_weights_that_the_job_names(tmp_path: Path) -> None:
    trained = train(make(mlp()))
    torch.save(trained.model.state_dict(), tmp_path / "model.pt")
    with surrounded() as context:
        context.weights = tmp_path / "model.pt"
        model = mlp()
        compiled: Any = torch.compile(model, backend="eager")
        run_of(make(compiled, sgd(model)))

    torch.testing.assert_close(model.state_dict(), trained.model.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["another model", "no file", "no weights", "a list"])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.pt"
    match kind:
        case "another model":
            torch.save(nn.Linear(1, 1).state_dict(), path)
        case "no weights":
            path.write_bytes(b"nothing")
        case "a list":
            torch.save([1, 2], path)
    with surrounded() as context:
        context.weights = path
        with pytest.raises(TrainingError, match=r"the weights to start from could not be loaded from .*model\.pt: "):
            run_of(make(mlp()))
