"""Single steps and validations."""

import math
from collections import namedtuple
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from pliant.ibm.modules.pyedt.script import Script
from pliant.ibm.modules.pyedt.steps import StepModel, accuracy, eva, on_device, own_step, own_test, pair, usual_step

Point = namedtuple("Point", "x y")


def script(**changes: Any) -> Script:
    module = torch.nn.Linear(3, 2)
    parts: dict[str, Any] = {
        "module": module,
        "datasets_function": lambda: ([], []),
        "loss_function": torch.nn.functional.cross_entropy,
        "optimizer": (optimizer := torch.optim.SGD(module.parameters(), lr=0.1)),
        "optimizers": {"0": optimizer},
        "metrics": {},
        "driver_logger": None,
        "worker_logger": None,
        "callbacks": (),
        "fn_step_train": None,
        "fn_test": None,
        "collate_fn": None,
        "enable_onnx": False,
    }
    return Script(**{**parts, **changes})


def batch(num_samples: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(num_samples, 3), torch.arange(num_samples) % 2


OUTPUTS = torch.tensor([[2.0, 1.0], [0.0, 1.0], [5.0, 1.0], [0.0, 3.0]])


def test_accuracy_is_a_fraction_and_eva_a_percentage() -> None:
    labels = torch.tensor([0, 0, 0, 1])

    assert accuracy(OUTPUTS, labels) == 0.75
    assert eva(OUTPUTS, labels) == 75.0


@pytest.mark.parametrize("labels", [torch.rand(4, 2), torch.rand(4), torch.zeros(3, dtype=torch.long)])
def test_there_is_no_accuracy_without_classes(labels: torch.Tensor) -> None:
    assert accuracy(OUTPUTS, labels) is None
    assert math.isnan(eva(OUTPUTS, labels))


def test_every_pixel_may_have_a_class() -> None:
    outputs = torch.zeros(2, 3, 4, 4)
    outputs[:, 1] = 1.0

    assert accuracy(outputs, torch.ones(2, 4, 4, dtype=torch.long)) == 1.0


def test_the_usual_step_leaves_backward_to_the_engine() -> None:
    given = script(metrics={"half": lambda outputs, labels: 0.5})

    outcome = usual_step(given, batch())

    assert outcome.loss.requires_grad
    assert given.module.weight.grad is None
    assert set(outcome.numbers()) == {"loss", "half", "accuracy"}


def test_a_script_sees_the_module_with_two_accessors() -> None:
    given = script()
    model = StepModel(given)

    assert model.get_optimizer() is given.optimizer
    assert model.get_loss_function() is given.loss_function
    assert list(model.parameters()) == list(given.module.parameters())
    assert model(torch.zeros(1, 3)).shape == (1, 2)


def test_a_scripts_own_step_reports_percent_and_becomes_a_fraction() -> None:
    def step(model: Any, data: Any, eva: Any, train_loader: Any, fn_args: Any) -> Any:
        inputs, labels = data
        model.get_optimizer().zero_grad()
        loss = model.get_loss_function()(model(inputs), labels)
        loss.backward()
        return 75.0, loss

    given = script(fn_step_train=step)
    outcome = own_step(given, batch(), train_loader=None)  # type: ignore[arg-type]

    assert outcome.metrics == {"accuracy": 0.75}
    assert given.module.weight.grad is not None


def test_a_scripts_own_step_may_not_step_the_optimizer() -> None:
    def step(model: Any, *_: Any) -> Any:
        model.get_optimizer().step()

    given = script(fn_step_train=step)

    with pytest.raises(RuntimeError, match=r"called optimizer\.step\(\); remove that line"):
        own_step(given, batch(), train_loader=None)  # type: ignore[arg-type]
    given.optimizer.step()


def test_a_scripts_own_test_gets_the_loader_in_evaluation_mode() -> None:
    def test(model: Any, test_iter: Any, fn_args: Any) -> float:
        assert not model.training
        assert not torch.is_grad_enabled()
        return float(len(list(test_iter)))

    given = script(fn_test=test)

    outcome = own_test(given, DataLoader(TensorDataset(*batch(10)), batch_size=4))

    assert outcome.numbers() == {"loss": 3.0}
    assert given.module.training


def test_the_usual_step_computes_in_the_dtype_of_autocast() -> None:
    seen = []

    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        seen.append(outputs.dtype)
        return outputs.float().mean()

    usual_step(script(autocast=torch.bfloat16, loss_function=loss), batch())

    assert seen == [torch.bfloat16]


def test_a_batch_that_is_no_pair_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is dict and not \(inputs, labels\)"):
        pair({"inputs": 1})


def test_batches_keep_their_shape_on_their_way_to_a_device() -> None:
    tensor = torch.zeros(2)

    moved = on_device(Point(x=[tensor, "text"], y={"a": (tensor, 3)}), torch.device("meta"))

    assert isinstance(moved, Point)
    assert moved.x[0].device.type == moved.y["a"][0].device.type == "meta"
    assert (moved.x[1], moved.y["a"][1]) == ("text", 3)
