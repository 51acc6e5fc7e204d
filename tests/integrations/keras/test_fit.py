"""`fit` trains what `model.fit` would, and says by name what it cannot."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.integrations.keras.models import compiled, data, network, train

from pliant.core.errors import InvalidInput
from pliant.integrations.keras import fit, keras
from pliant.integrations.keras.module import KerasModule
from pliant.integrations.keras.optimizer import KerasOptimizer, own_optimizer

layers = keras.layers
KINDS = ("kernel", "bias")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras, when it saves


def test_it_learns_and_saves_the_model_as_keras_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RESULT_DIR", str(tmp_path))
    model = compiled(keras.optimizers.Adam(0.02))

    history = train(model, epochs=25)

    assert history.history["val_accuracy"][-1] >= 0.8
    assert capsys.readouterr().out.splitlines()[0].startswith("Epoch 1/25: accuracy 0.")
    saved = keras.models.load_model(tmp_path / "model" / "model.keras")
    assert all(np.array_equal(a, b) for a, b in zip(saved.get_weights(), model.get_weights(), strict=True))
    weights = torch.load(tmp_path / "model" / "model.pt", weights_only=True)
    assert list(weights) == [
        *("dense/kernel", "dense/bias", "batch_normalization/gamma", "batch_normalization/beta"),
        *("dense_1/kernel", "dense_1/bias"),
        *("batch_normalization/moving_mean", "batch_normalization/moving_variance"),
    ]


def test_a_model_of_ones_own_with_several_inputs_and_outputs_is_trained() -> None:
    class Both(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.drop = layers.Dense(3), layers.Dense(1), layers.Dropout(0.1)

        def call(self, inputs: Any, training: bool = False) -> Any:
            joined = self.drop(layers.concatenate([inputs["a"], inputs["b"]]), training=training)
            return {"kind": self.one(joined), "size": self.two(joined)}

    (x, y), _ = data()
    model = Both()
    losses = {"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"}
    model.compile("adam", losses, metrics={"kind": ["accuracy"]}, loss_weights={"kind": 1.0, "size": 0.1})

    history = fit(model, {"a": x[:, :4], "b": x[:, 4:]}, {"kind": y, "size": x[:, :1]}, 20, 3, virtual_workers=2)

    assert history.history["loss"][-1] < history.history["loss"][0]
    assert "kind_accuracy" in history.history
    assert "accuracy" in history.history


def test_the_names_of_weights_are_those_of_any_copy_of_the_model(tmp_path: Path) -> None:
    inner = keras.Sequential([keras.Input((3,)), layers.Dense(2), layers.Dense(2)])
    model = keras.Sequential([keras.Input((3,)), layers.Dense(3), inner, layers.Dense(2, name="last")])
    model.save(tmp_path / "model.keras")
    copies = [keras.models.load_model(tmp_path / "model.keras"), keras.models.clone_model(model)]

    names = list(KerasModule(model).state_dict())

    assert set(names) == {f"{one}/{kind}" for one in ("dense", "dense_1", "dense_2", "last") for kind in KINDS}
    assert [list(KerasModule(copy).state_dict()) for copy in copies] == [names] * 2


def test_a_frozen_layer_stays_and_what_is_trained_is_a_parameter() -> None:
    model = network()
    model.layers[0].trainable = False
    model.compile("sgd", "sparse_categorical_crossentropy")
    before = model.layers[0].get_weights()
    module = KerasModule(model)

    train(model, epochs=1)

    assert all(np.array_equal(a, b) for a, b in zip(before, model.layers[0].get_weights(), strict=True))
    assert len(list(module.parameters())) == 4
    assert len(list(module.buffers())) == 4
    assert len(module.state_dict()) == len(model.weights)


def test_an_optimizers_state_goes_to_another_copy_of_the_model() -> None:
    first, second = compiled(keras.optimizers.Adam(0.02)), network()
    train(first, epochs=1)

    own = own_optimizer(first.optimizer, second)
    second.set_weights(first.get_weights())
    second.compile(own, "sparse_categorical_crossentropy", metrics=["accuracy"])
    train(first, epochs=1)
    train(second, epochs=1)

    assert own is not first.optimizer
    assert all(np.array_equal(a, b) for a, b in zip(first.get_weights(), second.get_weights(), strict=True))


def test_the_state_of_another_optimizer_is_refused() -> None:
    adam, sgd = (compiled(keras.optimizers.get(name)) for name in ("adam", "sgd"))
    states = [KerasOptimizer(model.optimizer, model.trainable_variables) for model in (adam, sgd)]

    with pytest.raises(ValueError, match="SGD has 2 variables here, and the saved optimizer others, 14"):
        states[1].load_state_dict(states[0].state_dict())


def _compiled(*parts: Any, **options: Any) -> Any:
    model = keras.Sequential([keras.Input((6,)), *parts, layers.Dense(2, activation="softmax")])
    model.compile(**{"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", **options})
    return model


class OwnStep(keras.Model):
    def train_step(self, data: Any) -> Any: ...


def _refused() -> dict[str, Any]:
    (x, y), _ = data()
    mean = {"loss": keras.losses.SparseCategoricalCrossentropy(reduction="sum")}
    own = OwnStep()
    own.compile("sgd", "mse")
    return {
        "model: OwnStep has a train_step of its own, which is not called": lambda: fit(own, x, y),
        "model: it is not compiled; call model.compile": lambda: fit(network(), x, y),
        "model: it is compiled with jit_compile=True": lambda: fit(_compiled(jit_compile=True), x, y),
        "model: lstm.* is stateful: the parts of a batch have no order": lambda: fit(_stateful(), x, y),
        "has the reduction 'sum'; use 'sum_over_batch_size'": lambda: fit(_compiled(**mean), x, y),
        "optimizer: use_ema=True keeps averages": lambda: fit(
            _compiled(optimizer=keras.optimizers.SGD(use_ema=True)), x, y
        ),
        "optimizer: LossScaleOptimizer .mixed_float16. is not supported": lambda: fit(
            _compiled(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())), x, y
        ),
        "metrics: auc.* .AUC. is no mean over samples": lambda: fit(
            _compiled(loss="mse", metrics=[keras.metrics.AUC()]), x, np.eye(2)[y], 20
        ),
        "class_weight: fit.. has none: weigh the classes in the loss": lambda: fit(
            _compiled(), x, y, class_weight={0: 1.0}
        ),
        "model: got .*; give a keras.Model": lambda: fit(torch.nn.Linear(1, 1), x, y),
        "x: its arrays have .59, 60. samples": lambda: fit(_compiled(), x, y[1:]),
        "x: it has 3 parts, not .x, y.; weights of samples": lambda: fit(_compiled(), (x, y, y)),
        "x: it is a generator, which has no samples by number": lambda: fit(_compiled(), (one for one in x)),
    }


def _stateful() -> Any:
    model = keras.Sequential([keras.Input((6,), batch_size=4), layers.Reshape((6, 1)), layers.LSTM(2, stateful=True)])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("message", list(_refused()))
def test_what_cannot_be_trained_is_refused_by_its_name(message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        _refused()[message]()


def test_all_that_is_wrong_is_said_at_once() -> None:
    model = _compiled(jit_compile=True, optimizer=keras.optimizers.SGD(use_ema=True))

    with pytest.raises(InvalidInput, match=r"jit_compile=True.*; optimizer: use_ema"):
        fit(model, *data()[0])
