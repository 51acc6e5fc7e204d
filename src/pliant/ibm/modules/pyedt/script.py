"""What a script hands to `FabricModel` and to `train`: checked, with every problem in one error.

Knows nothing of the engine. Invariant: a `Schedule` fixes the global batch and the number of virtual workers before
anything is granted, so the number of tasks cannot change either. What depends on the data set (`fit_schedule`) depends
on its size alone, which all tasks find the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import torch
from torch import nn

from pliant.core.errors import InvalidInput, Problem
from pliant.ibm.modules.pyedt.framework import Framework
from pliant.train import TrainingError
from pliant.train.optimize import name_optimizers

Metric = Callable[[Any, Any], Any]
StepFunction = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]
"""(model, data, eva, train_loader, fn_args) -> (accuracy in percent, loss), gradients left in place."""
TestFunction = Callable[[Any, Any, Any], Any]
"""(model, test_iter, fn_args) -> mean loss."""

GLOBAL: Final = ("engines_number", "effective_batch_size")
"""The two ways to fix the global batch."""
LEAST_ENGINES: Final = 8
"""So many engines, or the job's maximum if that is larger, where neither script nor job says how many.

Pliant chooses parts by the batch (`pliant.core.virtual_workers`); here the batch follows from the engines.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The parts of a training, as its script gave them."""

    module: nn.Module
    datasets_function: Callable[[], Any]
    loss_function: Callable[[Any, Any], torch.Tensor]
    optimizer: Any
    """As it was given: one, or a list or dict of several; what `model.get_optimizer()` returns."""
    optimizers: Mapping[str, torch.optim.Optimizer]
    """All of them, by name."""
    metrics: Mapping[str, Metric]
    """By the name that they are reported under."""
    driver_logger: Any
    worker_logger: Any
    callbacks: tuple[Any, ...]
    fn_step_train: StepFunction | None
    fn_test: TestFunction | None
    collate_fn: Callable[[list[Any]], Any] | None
    enable_onnx: bool
    schedulers: tuple[Any, ...] = ()
    """Stepped after every optimizer step."""
    epoch_schedulers: tuple[Any, ...] = ()
    """Stepped after every epoch; those that need a value get the validation's loss, or else the training's."""
    scaler: torch.amp.GradScaler | None = None
    autocast: torch.dtype | None = None
    """Forward passes are computed in it."""
    clip_norm: float | None = None
    clip_value: float | None = None
    converter: "Converter | None" = None
    """Makes a torch module of the model once the data is there, if it is none of torch's."""
    framework: Framework | None = None
    """What stands in for the usual step of torch's."""

    @property
    def model(self) -> Any:
        """The model, as the script has it."""
        return self.module if self.framework is None else self.framework.model


class Converter(Protocol):
    """Makes a script of torch's from one of another library."""

    def prepare(self, script: Script, train_set: Any, test_set: Any) -> tuple[Script, Any, Any]:
        """Return the script as one of a torch module, and its data sets by samples."""
        ...

    def to_send(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of `FabricModel` as they can be pickled."""
        ...

    def bind(self, script: Script) -> Script:
        """Return the script with torch's view of model and optimizer, which share their tensors."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long, and in which portions."""

    num_epochs: int
    global_batch: int
    local_batch: int
    """Samples that a virtual worker computes at once, at most."""
    virtual_workers: int
    num_workers: int
    """Processes of every task that load data."""
    accumulate: int
    """Pieces that `local_batch` samples are computed in."""
    validation_freq: int
    checkpoint_freq: int


def parse_script(given: Mapping[str, Any]) -> Script:
    """Return the script's parts from the keywords of `FabricModel`.

    Raises:
        InvalidInput: something is not what it has to be.
    """
    problems = [
        *unless(
            isinstance(given["model"], nn.Module), "model", given["model"], "give a torch.nn.Module or a Keras model"
        ),
        *_of_optimizer(given["optimizer"]),
        *unless(
            given["autocast"] is None or isinstance(given["autocast"], torch.dtype),
            "autocast",
            given["autocast"],
            "give torch.bfloat16 or torch.float16",
        ),
    ]
    for name in ("datasets_function", "loss_function"):
        problems += unless(callable(given[name]), name, given[name], "give a function (names are for Keras models)")
    for name in ("fn_step_train", "fn_test", "collate_fn", "scale_up_function"):
        problems += unless(given[name] is None or callable(given[name]), name, given[name], "give a function")
    metrics = {_name_of(metric): metric for metric in given["metrics"] or ()}
    for name, metric in metrics.items():
        problems += unless(callable(metric), "metrics", metric, "give functions of (outputs, labels)")
        problems += unless(name != "loss", "metrics", name, "`loss` is reported anyway; rename the function")
    if problems:
        raise InvalidInput(*problems)
    return Script(
        module=given["model"],
        datasets_function=given["datasets_function"],
        loss_function=given["loss_function"],
        optimizer=given["optimizer"],
        optimizers=name_optimizers(given["optimizer"]),
        metrics=metrics,
        driver_logger=given["driver_logger"],
        worker_logger=given["worker_logger"],
        callbacks=as_tuple(given["user_callback"]),
        fn_step_train=given["fn_step_train"],
        fn_test=given["fn_test"],
        collate_fn=given["collate_fn"],
        enable_onnx=bool(given["enable_onnx"]),
        schedulers=as_tuple(given["schedulers"]),
        epoch_schedulers=as_tuple(given["epoch_schedulers"]),
        scaler=given["scaler"],
        autocast=given["autocast"],
        clip_norm=given["clip_norm"],
        clip_value=given["clip_value"],
    )


def parse_schedule(given: Mapping[str, Any], job_workers: int) -> Schedule:
    """Return the schedule from the keywords of `train`; `job_workers` is the job's own number of virtual workers.

    The global batch is `batch_size * engines_number`, or `effective_batch_size`; never more is computed at once than
    `batch_size` samples.

    Raises:
        InvalidInput: a number is out of its bounds, or both ways to say the global batch are used.
    """
    problems = [
        *_at_least(1, given, "epoch_number", "batch_size", "validation_freq", "accumulate"),
        *_at_least(0, given, "num_dataloader_threads", "checkpoint_freq"),
        *_at_least(1, {name: 1 if given[name] is None else given[name] for name in GLOBAL}, *GLOBAL),
    ]
    engines, effective = (given[name] for name in GLOBAL)
    if engines is not None and effective is not None:
        message = f"given as {effective}, together with engines_number={engines!r}; give one of them"
        problems.append(Problem(field="effective_batch_size", message=f"{message}: each fixes the global batch"))
    if problems:
        raise InvalidInput(*problems)
    local = given["batch_size"]
    if effective is None:
        workers = engines or job_workers
        global_batch = local * workers
    else:
        global_batch = effective
        workers = min(effective, max(job_workers, -(-effective // local)))
    return Schedule(
        num_epochs=given["epoch_number"],
        global_batch=global_batch,
        local_batch=local,
        virtual_workers=workers,
        num_workers=given["num_dataloader_threads"],
        accumulate=given["accumulate"],
        validation_freq=given["validation_freq"],
        checkpoint_freq=given["checkpoint_freq"],
    )


def fit_schedule(schedule: Schedule, num_samples: int) -> tuple[Schedule, tuple[str, ...]]:
    """Return the schedule for a data set, and what to say of it: one that is too small for a global batch has fewer
    virtual workers, each with a whole local batch if there is one.
    """
    if not 0 < num_samples < schedule.global_batch:
        return schedule, ()
    workers = min(schedule.virtual_workers, max(1, num_samples // schedule.local_batch))
    global_batch = min(num_samples, workers * schedule.local_batch)
    note = (
        f"the data set has {num_samples} samples, fewer than a global batch of {schedule.global_batch}: trains with "
        f"{workers} engine{'s' * (workers > 1)} instead of {schedule.virtual_workers}, a global batch of {global_batch}"
    )
    return replace(schedule, virtual_workers=workers, global_batch=global_batch), (note,)


def refuse_unknown(what: str, unknown: Iterable[str], known: Sequence[str]) -> None:
    """Raise `TypeError` naming the keywords that exist, if there are unknown ones."""
    names = sorted(unknown)
    if names:
        raise TypeError(f"{what} got unknown keyword(s) {', '.join(names)}; it takes {', '.join(known)}")


def unless(fine: bool, name: str, value: object, advice: str) -> list[Problem]:
    """Return the problem of a value that is not fine."""
    return [] if fine else [Problem(field=name, message=f"got {value!r:.80}; {advice}")]


def _of_optimizer(optimizer: Any) -> list[Problem]:
    try:
        name_optimizers(
            optimizer if isinstance(optimizer, torch.optim.Optimizer | list | tuple | dict) else [optimizer]
        )
    except TrainingError as error:
        advice = "give an instance of torch.optim.Optimizer, or a list or dict of several"
        return [Problem(field="optimizer", message=f"{error}; {advice}")]
    return []


def _at_least(lowest: int, given: Mapping[str, Any], *names: str) -> list[Problem]:
    return [
        Problem(field=name, message=f"got {given[name]!r}; give a whole number of at least {lowest}")
        for name in names
        if not isinstance(given[name], int) or isinstance(given[name], bool) or given[name] < lowest
    ]


def _name_of(metric: object) -> str:
    return getattr(metric, "__name__", type(metric).__name__)


def as_tuple(given: object) -> tuple[Any, ...]:
    """Return what may be None, one or several as a tuple."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, Iterable) else (given,)
