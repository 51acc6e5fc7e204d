"""Small Keras models and their data, whose first weights are the same in every task and thread."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from pliant.integrations.keras import fit, keras
from pliant.train.context import TRAIN_CONTEXT

NUM_TRAIN, NUM_TEST, NUM_EPOCHS = 60, 20, 4
VIRTUAL_WORKERS: Final = 4


def data() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return (train, test), each (x, y); x of shape (N, 6) in double precision, y classes of shape (N,)."""
    x = np.random.default_rng(5).normal(size=(NUM_TRAIN + NUM_TEST, 6))
    y = (x.sum(1) > 0).astype("int64")
    return (x[:NUM_TRAIN], y[:NUM_TRAIN]), (x[NUM_TRAIN:], y[NUM_TRAIN:])


def network(*, drops: bool = True) -> Any:
    """Return a model with statistics, a penalty and, unless it must not draw random numbers, dropout."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(8, activation="tanh", kernel_regularizer=keras.regularizers.L2(1e-3)),
            layers.BatchNormalization(),
            layers.Dropout(0.3 if drops else 0.0),
            layers.Dense(2, activation="softmax"),
        ]
    )
    generator = np.random.default_rng(2)
    for weight in model.trainable_variables:
        weight.assign(generator.normal(size=tuple(weight.shape)) * 0.3)
    return model


def compiled(optimizer: Any = None, *, drops: bool = True, **more: Any) -> Any:
    """Return that model, compiled for the classes."""
    model = network(drops=drops)
    given = optimizer or keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.02, 5, 0.9))
    model.compile(given, "sparse_categorical_crossentropy", **{"metrics": ["accuracy"], **more})
    return model


def digest(model: Any) -> str:
    """Return the SHA-256 of the weights and of what the optimizer holds, in hex."""
    values = [variable.value.detach().numpy() for variable in (*model.weights, *model.optimizer.variables)]
    return hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()


def train(model: Any, *, epochs: int = NUM_EPOCHS, callbacks: Sequence[Any] = (), **options: Any) -> Any:
    """Train on the data by `fit`; return its history."""
    train_set, test_set = data()
    given = {"batch_size": 16, "virtual_workers": VIRTUAL_WORKERS, **options}
    return fit(model, *train_set, epochs=epochs, validation_data=test_set, callbacks=callbacks, **given)


OPTIMIZERS: Final[dict[str, Callable[[], Any]]] = {
    "sgd that clips": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, global_clipnorm=0.5),
    "rmsprop that accumulates": lambda: keras.optimizers.RMSprop(0.01, gradient_accumulation_steps=2),
}


def train_all(result_dir: str) -> dict[str, Any]:
    """Return what becomes of a training from the newest checkpoint there, and of one with every optimizer."""
    found = {"in two parts": train_until(result_dir, NUM_EPOCHS - 1)}
    TRAIN_CONTEXT.get().result_dir = None
    for name, optimizer in OPTIMIZERS.items():
        model = compiled(optimizer())
        history = train(model, epochs=2, callbacks=[keras.callbacks.ReduceLROnPlateau(patience=1, min_delta=9)])
        found[name] = {"digest": digest(model), "history": history.history}
    return found


def train_until(result_dir: str, last: int) -> dict[str, Any]:
    """Train with dropout from the newest checkpoint until an epoch is over; return digest and history."""
    context = TRAIN_CONTEXT.get()
    context.result_dir, context.checkpoint_freq = Path(result_dir), 1
    model = compiled()

    def end(epoch: int, logs: Any) -> None:
        model.stop_training = epoch == last

    history = train(model, callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=end)])
    for clean_up in reversed(context.cleanups):
        clean_up()
    context.cleanups.clear()
    return {"digest": digest(model), "epochs": history.epoch, "history": history.history}
