"""`fit`: trains a compiled Keras model elastically; the call stands where `model.fit` stood."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from pliant.core.errors import InvalidInput, Problem
from pliant.integrations.keras.backend import keras
from pliant.integrations.keras.batches import Measure
from pliant.integrations.keras.callbacks import KerasCallbacks
from pliant.integrations.keras.checks import check_model, is_model
from pliant.integrations.keras.module import KerasModule
from pliant.integrations.keras.optimizer import KerasOptimizer
from pliant.integrations.keras.samples import collate, order_of, samples_of
from pliant.train import Run, Saving

MODEL_FILE: Final = "model.keras"
_REFUSED: Final[Mapping[str, str]] = {
    "class_weight": "weigh the classes in the loss",
    "sample_weight": "weights of samples are not supported",
    "steps_per_epoch": "an epoch is the whole data set",
    "initial_epoch": "a job that is resumed knows its epoch",
    "validation_split": "give validation_data",
    "validation_steps": "the whole validation set is used",
}


def fit(  # noqa: PLR0913 (the keywords of Keras)
    model: Any,
    x: Any,
    y: Any = None,
    batch_size: int = 32,
    epochs: int = 1,
    *,
    validation_data: Any = None,
    validation_freq: int = 1,
    callbacks: Sequence[Any] = (),
    shuffle: bool = True,
    **more: Any,
) -> Any:
    """Train a compiled model on as many tasks as the job has at any moment; return a `keras.callbacks.History`.

    Args:
        x: arrays with y beside it; or without it a data set of samples (x, y), a `PyDataset`, or a pair (x, y).
        batch_size: samples of one optimizer step, over all tasks together, as in a plain `fit`.
        validation_data: like `x` without `y`.
        validation_freq: epochs between validations.
        more: what Pliant's `Run` takes by keyword, such as `seed`, `virtual_workers` or `checkpoint_freq`.

    Raises:
        InvalidInput: something of the model or of the callbacks cannot be trained elastically; all of it is named.
        TrainingError: the numbers do not fit.
    """
    if not is_model(model):
        raise InvalidInput.at("model", f"got {model!r:.80}; give a keras.Model")
    refused = [Problem(field=name, message=f"fit() has none: {why}") for name, why in _REFUSED.items() if name in more]
    if refused:
        raise InvalidInput(*refused)
    check_model(model)
    train_set = samples_of(x if y is None else (x, y), what="x")
    test_set = samples_of(validation_data, what="validation_data")
    build(model, train_set)
    module = KerasModule(model)
    optimizer = KerasOptimizer(model.optimizer, module.trained)
    history = keras.callbacks.History()
    shared = KerasCallbacks([history, *callbacks], model)
    shared.params = {"epochs": epochs, "batch_size": batch_size, "verbose": 0}

    def save(saving: Saving) -> None:
        if saving.final:
            save_model(model, saving.folder / MODEL_FILE)

    order = order_of(train_set) if shuffle else None
    options = {"collate_fn": collate, "order": order, "shuffle": None if order else shuffle, "save": save, **more}
    run = Run(module, optimizer, train_set, batch_size=batch_size, state={"keras": shared}, **options)
    shared.bind(run)
    measure = Measure(module)
    validation = (test_set, validation_freq) if test_set is not None else None
    _train(run, epochs, measure=measure, shared=shared, validation=validation)
    return history


def _train(
    run: Run, num_epochs: int, *, measure: Measure, shared: KerasCallbacks, validation: tuple[Any, int] | None
) -> None:
    shared.on_train_begin()
    for epoch in run.epochs(num_epochs):
        shared.on_epoch_begin(epoch)
        for batch in run:
            loss, metrics = measure(on_device(batch, run.device))
            run.step(loss, reduction="mean", weight=None, **metrics)
            shared.count()
        if validation is not None and ((epoch + 1) % validation[1] == 0 or epoch + 1 == num_epochs):
            values = run.evaluate(validation[0], lambda part: _values(measure, part, run), collate_fn=collate)
            shared.note_validation(values)
            run.log(**{f"val_{name}": value for name, value in values.items()})
        shared.on_epoch_end(epoch)
        if run.leads:
            print(f"Epoch {epoch + 1}/{num_epochs}: {_line(shared.logs)}", flush=True)
        if shared.has_stopped or epoch + 1 == num_epochs:
            shared.on_train_end()
        if shared.has_stopped:
            break


def _values(measure: Measure, part: Any, run: Run) -> dict[str, float | torch.Tensor]:
    loss, metrics = measure(on_device(part, run.device))
    return {"loss": loss, **metrics}


def _line(logs: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in sorted(logs.items()))


def build(model: Any, samples: Any) -> None:
    """Let a model that has no variables yet make them, by a look at one sample."""
    if model.built and model.variables:
        return
    inputs = collate([samples[0]])[0]
    with torch.no_grad():
        model(on_device(inputs, torch.device(keras.src.backend.torch.core.get_device())))


def on_device(data: Any, device: torch.device) -> Any:
    """Return a batch with every tensor in it on the device."""
    if isinstance(data, dict):
        return {key: on_device(value, device) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [on_device(value, device) for value in data]
    return data.to(device, non_blocking=True) if isinstance(data, torch.Tensor) else data


def save_model(model: Any, path: Path) -> None:
    """Write a model as Keras has it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.keras")
    model.save(unfinished)
    os.replace(unfinished, path)


def load_weights(model: Any, path: Path) -> None:
    """Load the weights of a file that Keras has written (`.keras`, `.weights.h5`), and no state of an optimizer.

    Raises:
        ValueError: they are of another model.
    """
    optimizer = getattr(model, "optimizer", None)
    model.optimizer = None  # Keras would load its state, too, and refuse that of another kind
    try:
        model.load_weights(path)
    finally:
        model.optimizer = optimizer


__all__ = ["build", "fit", "load_weights", "on_device", "save_model"]
