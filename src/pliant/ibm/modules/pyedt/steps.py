"""One training step and one validation, by the script's own functions or by the usual ones.

Knows nothing of the engine and of loggers. Accuracy is in percent for a script's own functions, a fraction elsewhere.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import DataLoader

from pliant.ibm.modules.pyedt.script import Script

ACCURACY = "accuracy"
NO_ARGUMENTS: Mapping[str, Any] = {}
"""What a script's functions get as `fn_args`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """Loss and metrics, means over the samples that they were computed from."""

    loss: Any
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def numbers(self) -> dict[str, float]:
        """Return all of it as numbers, the loss first."""
        return {name: _number(value) for name, value in {"loss": self.loss, **self.metrics}.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainLoader:
    """What a script's step function gets as `train_loader`: facts about the data, for `len` and `batch_size`."""

    dataset: Sized
    batch_size: int

    def __len__(self) -> int:
        return math.ceil(len(self.dataset) / self.batch_size)


class StepModel:
    """What a script's own functions get as `model`: the module in every respect, and IBM's two accessors.

    `get_scaler` is Pliant's own.
    """

    def __init__(self, script: Script) -> None:
        self._script = script

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._script.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._script.module, name)

    def get_optimizer(self) -> Any:
        return self._script.optimizer

    def get_scaler(self) -> torch.amp.GradScaler | None:
        return self._script.scaler

    def get_loss_function(self) -> Callable[[Any, Any], torch.Tensor]:
        return self._script.loss_function


def eva(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the share of right answers in percent; not a number where the labels are not classes."""
    found = accuracy(outputs, labels)
    return torch.tensor(math.nan) if found is None else found * 100


def accuracy(outputs: Any, labels: Any) -> torch.Tensor | None:
    """Return the share of right answers; None unless outputs are (N, classes, …) and labels whole numbers (N, …)."""
    if not isinstance(outputs, torch.Tensor) or not isinstance(labels, torch.Tensor) or outputs.dim() < 2:
        return None
    if labels.is_floating_point() or labels.shape != outputs.shape[:1] + outputs.shape[2:]:
        return None
    return (outputs.detach().argmax(1) == labels).float().mean()


def usual_step(script: Script, data: Any) -> StepResult:
    """Compute the loss of a batch of (inputs, labels), and its metrics; backward is left to the engine."""
    if script.framework is not None:
        loss, metrics = script.framework.measure(data)
        return StepResult(loss=loss, metrics=metrics)
    inputs, labels = pair(data)
    with _autocast(script):
        outputs = script.module(inputs)
        loss = script.loss_function(outputs, labels)
    return StepResult(loss=loss, metrics=_measure(script, outputs, labels))


def own_step(script: Script, data: Any, train_loader: TrainLoader) -> StepResult:
    """Let the script's `fn_step_train` compute a batch and its gradients."""
    assert script.fn_step_train is not None
    with no_optimizer_step(script.optimizers.values()):
        acc, loss = script.fn_step_train(StepModel(script), data, eva, train_loader, NO_ARGUMENTS)
    return StepResult(loss=loss, metrics={} if acc is None or math.isnan(_number(acc)) else {ACCURACY: acc / 100})


def usual_test(script: Script, data: Any) -> dict[str, float]:
    """Return loss and metrics of one batch of the test set."""
    return usual_step(script, data).numbers()


def own_test(script: Script, loader: DataLoader[Any]) -> StepResult:
    """Let the script's `fn_test` compute the mean loss over a data set; the module is in evaluation mode meanwhile."""
    assert script.fn_test is not None
    script.module.eval()
    try:
        with torch.no_grad():
            return StepResult(loss=script.fn_test(StepModel(script), loader, NO_ARGUMENTS))
    finally:
        script.module.train()


def _number(value: Any) -> float:
    return float(value.detach() if isinstance(value, torch.Tensor) else value)


def _measure(script: Script, outputs: Any, labels: Any) -> dict[str, Any]:
    with torch.no_grad():
        found = {name: metric(outputs, labels) for name, metric in script.metrics.items()}
        if ACCURACY not in found and (share := accuracy(outputs, labels)) is not None:
            found[ACCURACY] = share
    return found


def pair(data: Any) -> tuple[Any, Any]:
    """Return (inputs, labels) of a batch.

    Raises:
        ValueError: the batch has another shape.
    """
    if isinstance(data, list | tuple) and len(data) == 2:
        return data[0], data[1]
    raise ValueError(
        f"a batch of the data set is {type(data).__name__} and not (inputs, labels); "
        f"let the data set give pairs, or handle it in fn_step_train and fn_test"
    )


def on_device(data: Any, device: torch.device) -> Any:
    """Return the batch with every tensor in it on the device."""
    match data:
        case torch.Tensor():
            return data.to(device, non_blocking=True)
        case dict():
            return {key: on_device(value, device) for key, value in data.items()}
        case list() | tuple() if not hasattr(data, "_fields"):
            return type(data)(on_device(value, device) for value in data)
        case tuple():
            return type(data)(*(on_device(value, device) for value in data))
        case _:
            return data


def _autocast(script: Script) -> AbstractContextManager[Any]:
    if script.autocast is None:
        return nullcontext()
    device = next(script.module.parameters()).device
    return torch.autocast(device.type, dtype=script.autocast)


@contextmanager
def no_optimizer_step(optimizers: Iterable[torch.optim.Optimizer]) -> Iterator[None]:
    """Refuse `optimizer.step()` meanwhile: the engine steps, once per global batch."""

    def refuse(*_: Any) -> None:
        raise RuntimeError(
            "fn_step_train called optimizer.step(); remove that line: the step is made once per global batch, "
            "after the gradients of all workers were averaged (a GradScaler goes into FabricModel(scaler=…); "
            "fn_step_train calls scaler.scale(loss).backward(), and neither scaler.step nor scaler.update)"
        )

    hooks = [optimizer.register_step_pre_hook(refuse) for optimizer in optimizers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
