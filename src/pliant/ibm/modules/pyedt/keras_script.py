"""What a script hands to `FabricModel` if its model is one of Keras: compiled, checked, and made a script of torch's.

`pliant.integrations.keras` does the work. This is imported only when a script has such a model: nothing else needs
Keras.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pliant.core.errors import InvalidInput, Problem
from pliant.ibm.modules.pyedt.framework import Framework
from pliant.ibm.modules.pyedt.script import Script, as_tuple, unless
from pliant.integrations.keras.backend import check_backend, keras
from pliant.integrations.keras.batches import Measure
from pliant.integrations.keras.callbacks import KerasCallbacks, is_callback
from pliant.integrations.keras.checks import check_model, is_model
from pliant.integrations.keras.fit import MODEL_FILE, build, load_weights, save_model
from pliant.integrations.keras.module import KerasModule, flatten
from pliant.integrations.keras.optimizer import KerasOptimizer, own_optimizer
from pliant.integrations.keras.pickled import SentModel, SentOptimizer
from pliant.integrations.keras.samples import collate, order_of, samples_of

_OF_TORCH: Final[Mapping[str, str]] = {
    "fn_step_train": "a Keras model is trained by its loss; override compute_loss for one of your own",
    "fn_test": "a Keras model is tested by its loss and metrics; override compute_metrics for others",
    "collate_fn": "batches are made of the samples of the data set",
    "schedulers": "give the optimizer a keras.optimizers.schedules schedule",
    "epoch_schedulers": "give user_callback a keras.callbacks.LearningRateScheduler or ReduceLROnPlateau",
    "scaler": "use keras.mixed_precision with mixed_bfloat16",
    "autocast": "use keras.mixed_precision with mixed_bfloat16",
    "enable_onnx": "export the trained model.keras with model.export(…, format='onnx')",
}
"""Keywords that have no meaning for Keras, and what there is instead."""
_SUFFIXES: Final = (".keras", ".h5")
_CHOSEN_BY_SHAPE: Final = ("accuracy", "acc", "crossentropy", "ce")
"""Names of metrics that mean one or another by the shape of the labels."""


def parse_keras(given: Mapping[str, Any]) -> Script:
    """Return the script's parts from the keywords of `FabricModel`; the model is compiled with them.

    Raises:
        InvalidInput: something cannot be trained here.
    """
    check_backend()
    model = given["model"]
    if not is_model(model):
        message = f"{type(model).__name__} is no model of Keras 3; use keras.Model, from keras or tensorflow.keras"
        raise InvalidInput.at("model", message)
    problems = list(_problems(given))
    if problems:
        raise InvalidInput(*problems)
    _compile(model, given)
    check_model(model)
    callbacks = as_tuple(given["user_callback"])
    return Script(
        module=model,
        datasets_function=given["datasets_function"],
        loss_function=model.compute_loss,
        optimizer=model.optimizer,
        optimizers={},
        metrics={},
        driver_logger=given["driver_logger"],
        worker_logger=given["worker_logger"],
        callbacks=tuple(one for one in callbacks if not is_callback(one)),
        fn_step_train=None,
        fn_test=None,
        collate_fn=None,
        enable_onnx=False,
        clip_norm=given["clip_norm"],
        clip_value=given["clip_value"],
        converter=KerasConverter(tuple(one for one in callbacks if is_callback(one))),
    )


class KerasConverter:
    """Makes a script of torch's from one of Keras; `callbacks` are those of Keras."""

    def __init__(self, callbacks: tuple[Any, ...]) -> None:
        self._callbacks = callbacks

    def to_send(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of `FabricModel` as they can be pickled, with the state of the optimizer."""
        model = given["model"]
        said = model._compile_config.config
        parts = {"loss_function": said["loss"], "metrics": said["metrics"], "optimizer": SentOptimizer(model.optimizer)}
        return {**given, **parts, "model": SentModel(model)}

    def bind(self, script: Script) -> Script:
        """Return the script with torch's view of model and optimizer, which share their tensors.

        Raises:
            InvalidInput: the model has no weights yet.
        """
        module, optimizer = _bind(script.module)
        return replace(script, module=module, optimizers={"0": optimizer})

    def prepare(self, script: Script, train_set: Any, test_set: Any) -> tuple[Script, Any, Any]:
        """Return the script as one of a torch module, and its data sets by samples, once the data is there."""
        model: Any = script.module
        train_set = samples_of(train_set, what="datasets_function: its training data")
        test_set = samples_of(test_set, what="datasets_function: its test data")
        build(model, train_set)
        module, optimizer = _bind(model)
        events = KerasCallbacks(self._callbacks, model)
        framework = Framework(
            name="keras",
            model=model,
            measure=Measure(module),
            order=order_of(train_set),
            events=events,
            save=lambda folder: save_model(model, folder / MODEL_FILE),
            load=lambda path: _load(model, path),
        )
        done = replace(
            script,
            module=module,
            optimizers={"0": optimizer},
            collate_fn=collate,
            callbacks=(*script.callbacks, events),
            framework=framework,
        )
        return done, train_set, test_set


def _bind(model: Any) -> tuple[KerasModule, KerasOptimizer]:
    if not model.built:
        raise InvalidInput.at("model", "it has no weights yet; call model.build(…), or begin it with keras.Input")
    module = KerasModule(model)
    return module, KerasOptimizer(model.optimizer, module.trained)


def _load(model: Any, path: Path) -> bool:
    """Load weights from a file of Keras; return whether it is one.

    Raises:
        InvalidInput: they are of another model.
    """
    if path.suffix not in _SUFFIXES or not path.is_file():
        return False
    try:
        load_weights(model, path)
    except (ValueError, KeyError, OSError) as error:
        message = f"{path} does not fit the model of this script: {error!s:.300}"
        raise InvalidInput.at("RESUME_WEIGHT_PATH", message) from error
    return True


def _problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    function = given["datasets_function"]
    yield from unless(callable(function), "datasets_function", function, "give a function")
    for name, advice in _OF_TORCH.items():
        if given[name]:
            yield Problem(field=name, message=f"it has no meaning for a Keras model: {advice}")


def _compile(model: Any, given: Mapping[str, Any]) -> None:
    """Compile the model with what was given; what is left out is what it was compiled with before."""
    loss, optimizer, metrics = given["loss_function"], given["optimizer"], given["metrics"]
    if model.compiled:
        if loss is None and optimizer is None and metrics is None:
            return
        loss = model.loss if loss is None else loss
        optimizer = model.optimizer if optimizer is None else optimizer
    for name, value in (("loss_function", loss), ("optimizer", optimizer)):
        if value is None:
            raise InvalidInput.at(name, "got None, and the model is not compiled; give one of Keras, or its name")
    if metrics is None and any("crossentropy" in _name_of(one) for one in flatten(loss)):
        metrics = ["accuracy"]
    try:
        _look_up(loss, metrics)
        model.compile(optimizer=own_optimizer(optimizer, model), loss=loss, metrics=metrics)
    except (ValueError, TypeError) as error:
        parts = f"loss_function={loss!r:.80}, optimizer={optimizer!r:.80}, metrics={metrics!r:.80}"
        message = f"Keras refuses {parts}: {error!s:.300}"
        raise InvalidInput.at("model", message) from error


def _look_up(loss: Any, metrics: Any) -> None:
    """Raise ValueError for a name that Keras does not know, which it would say with the first batch only."""
    for name in flatten(loss):
        keras.losses.get(name)
    for name in flatten(metrics):
        if name not in _CHOSEN_BY_SHAPE:
            keras.metrics.get(name)


def _name_of(loss: Any) -> str:
    return str(getattr(loss, "name", None) or getattr(loss, "__name__", loss)).replace("_", "").lower()
