"""`FabricModel` with a Keras model: as scripts for IBM's product have it, alone and as several tasks."""

import io
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch
from tests.integrations.keras.models import compiled, data, digest, network
from tests.train.world import World

from pliant.core.errors import InvalidInput
from pliant.core.job import TaskId
from pliant.ibm.modules.callbacks import Callback, LoggerCallback
from pliant.ibm.modules.pyedt.model import FabricModel
from pliant.integrations.keras import keras

LIMIT_S = 110
pytestmark = [
    pytest.mark.timeout(LIMIT_S + 10),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # Keras, when it saves
]
LOSS = "sparse_categorical_crossentropy"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RESUME_WEIGHT_PATH", "TRAINING_ID", "DLI_EXECID", "LOG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RESULT_DIR", str(tmp_path))
    monkeypatch.setenv("PLIANT_VIRTUAL_WORKERS", "1")


class Noting(LoggerCallback):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def log_train_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.heard.append(("train", completed_batch))
        assert 0 <= acc <= 100

    def log_test_metrics(self, loss: float, acc: float, completed_batch: int, worker: int = 0) -> None:
        self.heard.append(("test", completed_batch))
        assert 0 <= acc <= 100


class Lowering(Callback):
    """Sets the learning rate as IBM's callbacks do: through `params`."""

    def on_epoch_begin(self, epoch: int) -> None:
        if epoch:
            self.params["optimizer"].learning_rate = self.params["optimizer"].learning_rate.value / 2


def test_names_of_keras_train_log_and_save(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger, callback, model = Noting(), Lowering(), network()

    FabricModel(model, data, LOSS, "adam", driver_logger=logger, user_callback=[callback]).train(3, 5, 4)

    told = capsys.readouterr().out
    assert "Using keras backend." in told
    assert "tag train_accuracy, simple_value " in told
    assert "tag test_accuracy, simple_value " in told
    assert logger.heard[:4] == [("train", 4), ("train", 8), ("train", 12), ("test", 12)]
    assert callback.model is model
    assert float(model.optimizer.learning_rate.value) == pytest.approx(0.001 / 4)
    saved = keras.models.load_model(tmp_path / "model" / "model.keras")
    assert all(np.array_equal(a, b) for a, b in zip(saved.get_weights(), model.get_weights(), strict=True))
    assert (tmp_path / "model" / "train" / "model_epoch_final.pth").is_file()


@pytest.mark.parametrize("file", ["model/model.keras", "model", "model/train/model_epoch_final.pth"])
def test_first_weights_come_from_files_of_keras_and_of_pliant(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = network(), network()
    FabricModel(first, data, LOSS, "adam").train(1, 15, 4)
    monkeypatch.setenv("RESUME_WEIGHT_PATH", str(tmp_path / file))
    monkeypatch.setenv("RESULT_DIR", str(tmp_path / "other"))

    FabricModel(second, data, LOSS, keras.optimizers.SGD(0.0)).train(1, 15, 4)

    pairs = zip(first.trainable_variables, second.trainable_variables, strict=True)
    assert all(torch.equal(a.value, b.value) for a, b in pairs)


def test_weights_of_another_model_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3), keras.layers.Dense(2)])
    other.save(tmp_path / "other.keras")
    monkeypatch.setenv("RESUME_WEIGHT_PATH", str(tmp_path / "other.keras"))

    with pytest.raises(InvalidInput, match=r"other\.keras does not fit the model of this script"):
        FabricModel(network(), data, LOSS, "adam").train(1, 15, 4)


def test_a_compiled_model_is_trained_as_it_was_compiled_and_a_callback_of_keras_ends_it() -> None:
    model = compiled(metrics=["sparse_categorical_accuracy"])
    logger = Noting()
    stop = keras.callbacks.EarlyStopping(patience=1, min_delta=100.0)

    fabric = FabricModel(model, data, None, None, driver_logger=logger, user_callback=[Callback(), stop])
    fabric.train(50, 15, 4)

    assert logger.heard == [("train", 4), ("test", 4), ("train", 8), ("test", 8)]


def test_a_model_without_weights_gets_them_from_the_data_set() -> None:
    model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    FabricModel(model, data, loss, "sgd", metrics=[keras.metrics.SparseCategoricalAccuracy()]).train(1, 15, 4)

    assert model.count_params() == 6 * 4 + 4 + 4 * 2 + 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"fn_step_train": print},
            "fn_step_train: it has no meaning for a Keras model: a Keras model is trained",
        ),
        ({"scaler": torch.amp.GradScaler("cpu")}, "scaler: it has no meaning for a Keras model: use keras.mixed_prec"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], 0.1)}, "model: Keras refuses .*SGD"),
        ({"optimizer": None}, "optimizer: got None, and the model is not compiled; give one of Keras, or its name"),
        ({"loss_function": "croissant"}, "model: Keras refuses loss_function='croissant'"),
        ({"metrics": ["accurate"]}, "model: Keras refuses .*metrics=.'accurate'."),
        ({"datasets_function": 3}, "datasets_function: got 3; give a function"),
        ({"fn_test": print, "enable_onnx": True}, "fn_test: .*; enable_onnx: it has no meaning for a Keras model"),
    ],
)
def test_parts_that_do_not_belong_to_keras_are_refused(given: dict[str, Any], message: str) -> None:
    parts = {"datasets_function": data, "loss_function": LOSS, "optimizer": "sgd", **given}

    with pytest.raises(InvalidInput, match=message):
        FabricModel(network(), **parts)


def test_a_model_of_keras_2_is_refused() -> None:
    model: Any = type("Sequential", (), {"__module__": "tf_keras.engine"})()

    with pytest.raises(InvalidInput, match=r"model: Sequential is no model of Keras 3; use keras\.Model"):
        FabricModel(model, data, LOSS, "sgd")


def test_what_a_notebook_sends_goes_on_with_the_optimizers_state() -> None:
    def crossentropy(labels: Any, outputs: Any) -> Any:  # Keras itself would not find it again
        return keras.losses.sparse_categorical_crossentropy(labels, outputs)

    given: dict[str, Any] = {"model": network(), "datasets_function": data, "loss_function": crossentropy}
    first = FabricModel(**given, optimizer=keras.optimizers.Adam(0.02), metrics=["accuracy"])
    first.train(1, 15, 4)
    assert first._script.converter is not None
    stream = io.BytesIO()
    torch.save(first._script.converter.to_send(given), stream, pickle_module=cloudpickle)
    stream.seek(0)

    second = FabricModel(**torch.load(stream, weights_only=False))
    for one in (first, second):
        one.train(1, 15, 4)

    assert digest(first.model) == digest(second.model)
    assert first.model is not second.model
    optimizer: Any = second.model.optimizer
    assert int(optimizer.iterations.value) == 2


def test_no_history_of_sizes_and_losses_changes_a_bit(tmp_path: Path) -> None:
    found: dict[TaskId, str] = {}
    begun, hurry = threading.Event(), threading.Event()

    def parts(pause: Callable[[], object]) -> dict[str, Any]:
        schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
        return {
            "metrics": ["accuracy"],
            "user_callback": [
                Lowering(),
                schedule,
                keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: pause()),
            ],
        }

    def script(world: World, task_id: TaskId) -> None:
        def pause() -> None:
            world.maybe_crash(task_id)
            hurry.wait(0.05)
            begun.set()

        model = network(drops=False)
        FabricModel(model, data, LOSS, keras.optimizers.SGD(0.5, momentum=0.5), **parts(pause)).train(25, 5, 4)
        found[task_id] = digest(model)

    world = World(script=script, result_dir=tmp_path / "job", virtual_workers=4)
    world.resize(1)
    world.wait_for_size(1)
    world.wait(begun.is_set, "the first epoch begins")
    world.resize(3)
    world.wait_for_size(3)
    world.kill(world.live()[0])
    world.wait_for_size(2)
    hurry.set()
    world.wait_for_end()

    alone = network(drops=False)
    FabricModel(alone, data, LOSS, keras.optimizers.SGD(0.5, momentum=0.5), **parts(lambda: None)).train(25, 5, 4)
    assert list(found.values()) == [digest(alone)] * 2


def test_another_backend_is_refused(tmp_path: Path) -> None:
    text = "import keras\nkeras.backend.backend = lambda: 'jax'\nfrom fabric_model import FabricModel\n"
    text += (
        "model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])\nFabricModel(model, dict, 'mse', 'sgd')\n"
    )
    (tmp_path / "main.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pliant.entry.alone", "main.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 1
    assert "KERAS_BACKEND: it is 'jax', and elastic trainings run on PyTorch; set KERAS_BACKEND=torch" in done.stderr
