"""Calls a script's loggers in whichever of IBM's two forms they are written, and prints the lines that readers parse.

Knows nothing of the engine. Accuracy is a fraction here, and in percent for loggers of the older form.
"""

import inspect
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pliant.ibm.modules.pyedt.steps import ACCURACY


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMetrics:
    """Metrics at one moment of the training."""

    values: Mapping[str, float]
    """The loss first."""
    iteration: int
    """Micro-batches done: of all workers for the driver, its own for a worker."""
    epoch: int
    worker: int
    """Rank of the worker; 0 for the driver."""
    workers: int
    """Tasks that train now."""


def log_train(logger: Any, reading: LoggedMetrics) -> None:
    """Call `log_train_metrics`, in the form that the logger has."""
    call = logger.log_train_metrics
    if takes_metrics(call):
        call(dict(reading.values), reading.iteration, reading.epoch, reading.workers)
    else:
        call(reading.values["loss"], _percent(reading), reading.iteration, *_worker(call, reading))


def log_test(logger: Any, reading: LoggedMetrics) -> None:
    """Call `log_test_metrics`, in the form that the logger has; the newer form gets 0 for the iteration."""
    call = logger.log_test_metrics
    if takes_metrics(call):
        call(dict(reading.values), 0, reading.epoch)
    else:
        call(reading.values["loss"], _percent(reading), reading.iteration, *_worker(call, reading))


def takes_metrics(call: Callable[..., object]) -> bool:
    """Return whether a logger's method has the newer form, `(metrics, iteration, epoch, …)`; the names tell."""
    names = list(inspect.signature(call).parameters)
    return "epoch" in names or names[:1] == ["metrics"]


def call_if_defined(call_on: Any, method: str, *args: Any) -> None:
    """Call a method of a callback, if it has it."""
    found = getattr(call_on, method, None)
    if found is not None:
        found(*args)


def train_lines(reading: LoggedMetrics, batches: int) -> list[str]:
    """Return the lines about a training step that log readers look for."""
    return [
        f"Timestamp {_now_ms()}, Iteration {reading.iteration}",
        f"batches :{batches} {reading.values['loss']}",
        *_tag("train", reading),
    ]


def validation_lines(reading: LoggedMetrics) -> list[str]:
    """Return the lines about a validation that log readers look for."""
    return _tag("test", reading)


def _tag(group: str, reading: LoggedMetrics) -> list[str]:
    return [
        f"Iteration {reading.iteration}: tag {group}_{name}, simple_value {value}"
        for name, value in reading.values.items()
    ]


def _percent(reading: LoggedMetrics) -> float:
    return reading.values.get(ACCURACY, math.nan) * 100


def _worker(call: Callable[..., object], reading: LoggedMetrics) -> tuple[int, ...]:
    parameters = list(inspect.signature(call).parameters.values())
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    open_ended = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return (reading.worker,) if open_ended or len(positional) > 3 else ()


def _now_ms() -> int:
    return round(time.time() * 1000)
