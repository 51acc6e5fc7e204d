"""What an elastic training cannot do as Lightning does; each message names the argument and says what to do instead."""

from collections.abc import Iterator
from typing import Any, Final

from pliant.integrations.elastic_lightning.package import Package
from pliant.train import TrainingError

_PRECISIONS: Final = ("Precision", "MixedPrecision", "DoublePrecision", "HalfPrecision")
_CALLBACKS: Final = {
    "Timer": "(or max_time=…) stops by the clock, which differs between tasks: submit with --time-limit",
    "GradientAccumulationScheduler": "the global batch does not change: give Trainer(accumulate_grad_batches=…)",
    "BatchSizeFinder": "the global batch does not change: give it to the DataLoader",
    "LearningRateFinder": "it trains and goes back: find the learning rate without ElasticStrategy",
    "StochasticWeightAveraging": "it exchanges the model's parameters: average them in on_train_batch_end",
}
_METHODS: Final = {
    "backward": "Pliant calls backward for every part of a global batch: change the loss in training_step",
    "optimizer_step": "all tasks step together: put what it does into a scheduler or on_before_optimizer_step",
    "optimizer_zero_grad": "Pliant keeps the gradients: leave the method out",
}


def refuse_what_cannot_be(package: Package, trainer: Any, model: Any) -> None:
    """Look at a Trainer and a LightningModule before a training.

    Raises:
        TrainingError: something in them does not fit an elastic training; all that does not is named.
    """
    found = [*_arguments(trainer), *_callbacks(trainer), *_methods(package, model)]
    if found:
        raise TrainingError("ElasticStrategy cannot train this: " + "; ".join(found))


def _arguments(trainer: Any) -> Iterator[str]:
    connector, devices = trainer._accelerator_connector, trainer._accelerator_connector._devices_flag
    num_devices = devices if isinstance(devices, int) else len(devices)
    if num_devices > 1 and num_devices != trainer.accelerator.auto_device_count():
        yield f"Trainer(devices={devices!r}): a task has one device, and Pliant adds tasks: say devices=1 or nothing"
    if connector._num_nodes_flag != 1:
        yield f"Trainer(num_nodes={connector._num_nodes_flag}): Pliant chooses the nodes: leave it out"
    if connector._layer_sync is not None:
        yield "Trainer(sync_batchnorm=True): it needs the batch of all tasks at the same moment: leave it out"
    if trainer.strategy.root_device.type not in ("cpu", "cuda"):
        yield f"Trainer(accelerator=…): {trainer.strategy.root_device.type} is neither cpu nor gpu"
    if type(trainer.precision_plugin).__name__ not in _PRECISIONS:
        yield f"the precision plugin {type(trainer.precision_plugin).__name__}: say precision=32, 64, 16 or bf16"
    if trainer.reload_dataloaders_every_n_epochs:
        yield (
            f"Trainer(reload_dataloaders_every_n_epochs={trainer.reload_dataloaders_every_n_epochs}): the data set is "
            f"the same in every epoch: let the data set itself change with the epoch"
        )
    if trainer.val_check_interval != 1.0 or trainer.check_val_every_n_epoch is None:
        yield (
            f"Trainer(val_check_interval={trainer.val_check_interval!r}, check_val_every_n_epoch="
            f"{trainer.check_val_every_n_epoch!r}): validation runs at the end of an epoch: say check_val_every_n_epoch"
        )
    if trainer.max_epochs == -1 and trainer.max_steps == -1:
        yield "Trainer(max_epochs=-1): a job has an end: give max_epochs or max_steps"


def _callbacks(trainer: Any) -> Iterator[str]:
    for callback in trainer.callbacks:
        for kind in type(callback).__mro__:
            if kind.__name__ in _CALLBACKS and kind.__module__.partition(".")[0] in ("lightning", "pytorch_lightning"):
                yield f"the callback {kind.__name__}: {_CALLBACKS[kind.__name__]}"
        if getattr(callback, "_train_time_interval", None) is not None:
            yield (
                f"{type(callback).__name__}(train_time_interval=…): it saves by the clock, which differs between tasks:"
                f" give every_n_train_steps or every_n_epochs"
            )


def _methods(package: Package, model: Any) -> Iterator[str]:
    if not model.automatic_optimization:
        yield (
            "automatic_optimization=False: the parts of a global batch are computed one after the other, and the step "
            "is one of all tasks: use automatic optimization, or a loop of your own with pliant.train.Run"
        )
    for method, advice in _METHODS.items():
        if package.overrides(method, model):
            yield f"{type(model).__name__}.{method} is overridden: {advice}"
    signature = package.module("utilities.signature_utils").is_param_in_hook_signature
    if signature(model.training_step, "dataloader_iter", explicit=True):
        yield "training_step(dataloader_iter): it takes batches itself: take (batch, batch_idx)"
