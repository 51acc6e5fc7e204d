"""What of Keras cannot be trained elastically; each is refused by its name, all at once."""

from collections.abc import Iterator
from typing import Any, Final

from pliant.core.errors import InvalidInput, Problem
from pliant.integrations.keras.backend import check_backend, keras
from pliant.integrations.keras.module import flatten

_MEANS: Final = ("sum_over_batch_size", "mean", "mean_with_sample_weight", "auto")
_OWN: Final = ("train_step", "test_step")


def is_model(given: object) -> bool:
    """Tell whether something is a Keras model."""
    return isinstance(given, keras.Model)


def check_model(model: Any) -> None:
    """Refuse a compiled model that cannot be trained on parts of batches.

    Raises:
        InvalidInput: what of it, and what to do.
    """
    check_backend()
    problems = [Problem(field=field, message=message) for field, message in _problems(model)]
    if problems:
        raise InvalidInput(*problems)


def _problems(model: Any) -> Iterator[tuple[str, str]]:
    yield from _of_model(model)
    yield from _of_layers(model)
    yield from _of_loss(model)
    yield from _of_optimizer(getattr(model, "optimizer", None))


def _of_model(model: Any) -> Iterator[tuple[str, str]]:
    for name in _OWN:
        if getattr(type(model), name) is not getattr(keras.Model, name):
            what = f"{type(model).__name__} has a {name} of its own"
            yield "model", f"{what}, which is not called: steps are Pliant's; put the loss into compute_loss"
    if not model.compiled:
        yield "model", "it is not compiled; call model.compile(optimizer=…, loss=…) first"
    elif model.jit_compile:
        yield "model", "it is compiled with jit_compile=True; leave that out"


def _of_layers(model: Any) -> Iterator[tuple[str, str]]:
    for layer in model._flatten_layers(include_self=False):
        if getattr(layer, "stateful", False) is True:
            yield "model", f"{layer.name} is stateful: the parts of a batch have no order; use stateful=False"


def _of_loss(model: Any) -> Iterator[tuple[str, str]]:
    for loss in flatten(getattr(model, "loss", None)):
        reduction = getattr(loss, "reduction", "mean") if isinstance(loss, keras.losses.Loss) else "mean"
        if reduction not in _MEANS:
            yield "loss", f"{loss.name} has the reduction {reduction!r}; use 'sum_over_batch_size', which is a mean"


def _of_optimizer(optimizer: Any) -> Iterator[tuple[str, str]]:
    if optimizer is None:
        return
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        yield "optimizer", "LossScaleOptimizer (mixed_float16) is not supported; use the policy mixed_bfloat16"
    elif getattr(optimizer, "use_ema", False):
        yield "optimizer", "use_ema=True keeps averages beside the weights that are not saved; use use_ema=False"
    elif getattr(optimizer, "loss_scale_factor", None):
        yield "optimizer", "loss_scale_factor is not supported; leave it out"
