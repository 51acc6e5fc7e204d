"""Callbacks of Keras run in every task, come to the same, and stop the training together."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.integrations.keras.models import NUM_EPOCHS, compiled, data, digest, network, train
from tests.train.world import World

from pliant.core.errors import InvalidInput
from pliant.core.job import TaskId
from pliant.integrations.keras import keras
from pliant.integrations.keras.callbacks import KerasCallbacks

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras, when it saves


def test_a_schedule_of_the_learning_rate_by_epochs_is_kept() -> None:
    model = compiled(keras.optimizers.SGD(0.1))
    rates: list[float] = []

    class Noting(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            rates.append(round(float(self.model.optimizer.learning_rate.value), 6))
            assert self.params["epochs"] == NUM_EPOCHS

    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch else rate)
    train(model, callbacks=[schedule, Noting()])

    assert rates == [0.1, 0.05, 0.025, 0.0125]


def test_logs_are_means_over_the_whole_epoch_and_the_validation() -> None:
    model = compiled(keras.optimizers.SGD(0.0))
    seen: list[dict[str, float]] = []
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(dict(logs)))
    model.layers[1].momentum = 1.0  # statistics stay, so all of an epoch is seen with the same model
    model.layers[2].rate = 0.0
    history = train(model, callbacks=[note], epochs=2, virtual_workers=1, batch_size=60)
    _, test_set = data()
    theirs = model.evaluate(*test_set, verbose=0, return_dict=True)

    assert sorted(seen[0]) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert seen[0]["val_loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    assert seen[0]["val_accuracy"] == pytest.approx(theirs["accuracy"])
    assert history.history["loss"] == [seen[0]["loss"], seen[1]["loss"]]


def test_early_stopping_ends_the_training_and_brings_the_best_weights_back() -> None:
    model = compiled(keras.optimizers.SGD(0.1))
    kept: list[Any] = []
    keep = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: kept.append(model.get_weights()))
    stop = keras.callbacks.EarlyStopping(patience=2, min_delta=100.0, restore_best_weights=True)

    history = train(model, callbacks=[keep, stop], epochs=50)

    assert history.epoch == [0, 1, 2]
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), kept[0], strict=True))


def test_the_model_is_saved_by_the_leader_alone_and_the_others_remember_the_best(tmp_path: Path) -> None:
    save = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="val_loss", save_best_only=True)
    callbacks = KerasCallbacks([save], compiled())
    callbacks.on_train_begin()
    callbacks.note_validation({"loss": 0.5})

    callbacks.on_epoch_end(0)  # of no run: it does not lead

    assert not (tmp_path / "best.keras").exists()
    assert save.best == 0.5
    train(compiled(), callbacks=[keras.callbacks.ModelCheckpoint(tmp_path / "best.keras")], epochs=1)
    loaded = keras.models.load_model(tmp_path / "best.keras")
    assert [tuple(weight.shape) for weight in loaded.weights] == [tuple(weight.shape) for weight in network().weights]


class Batches(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: keras.callbacks.TensorBoard("x"),
            "TensorBoard cannot be used: give the job a tracker.*histograms: `pliant submit --histograms-every`",
        ),
        (lambda: keras.callbacks.CSVLogger("x"), "CSVLogger cannot be used: series are kept with the job"),
        (lambda: keras.callbacks.BackupAndRestore("x"), "BackupAndRestore cannot be used: checkpoints are Pliant's"),
        (lambda: keras.callbacks.SwapEMAWeights(), "SwapEMAWeights cannot be used: it is not known to work"),
        (lambda: keras.callbacks.ModelCheckpoint("x.keras", save_freq=5), "counts batches; use save_freq='epoch'"),
        (lambda: keras.callbacks.LambdaCallback(on_train_batch_end=print), "LambdaCallback has on_train_batch_end"),
        (Batches, "Batches has on_train_batch_end, and a task sees parts of batches only"),
        (lambda: print, "is no keras.callbacks.Callback"),
    ],
)
def test_what_cannot_run_is_refused_by_its_name(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        KerasCallbacks([make()], compiled())


class Counting(keras.callbacks.Callback):
    """Has attributes of many kinds, and changes the optimizer where an epoch begins."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.names, self.best, self.by = 0, ["a"], np.zeros(2, "float32"), {"x": [1.5, None]}
        self.function = print

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.count += 1
        self.names.append(str(epoch))
        self.best = self.best + 1
        self.model.optimizer.learning_rate = self.model.optimizer.learning_rate.value / 2


def test_plain_attributes_travel_and_an_epoch_begun_twice_changes_nothing() -> None:
    theirs, mine = Counting(), Counting()
    donor = KerasCallbacks([theirs], compiled(keras.optimizers.SGD(0.1)))
    model = compiled(keras.optimizers.SGD(0.1))
    newcomer = KerasCallbacks([mine], model)
    for one in (donor, newcomer):
        one.on_train_begin()
    donor.on_epoch_begin(0)

    newcomer.load_state_dict(donor.state_dict())
    newcomer.on_epoch_begin(0)

    assert (mine.count, mine.names, mine.best.tolist(), mine.by) == (1, ["a", "0"], [1.0, 1.0], {"x": [1.5, None]})
    assert float(model.optimizer.learning_rate.value) == pytest.approx(0.05)
    newcomer.on_epoch_begin(1)
    assert mine.count == 2
    assert float(model.optimizer.learning_rate.value) == pytest.approx(0.025)
    assert theirs.names == ["a", "0"]


def test_tasks_that_come_and_go_agree_on_rates_history_and_the_end(tmp_path: Path) -> None:
    found: dict[TaskId, tuple[str, Any]] = {}
    begun, hurry = threading.Event(), threading.Event()

    def callbacks(pause: Callable[[], object]) -> list[Any]:
        return [
            keras.callbacks.ReduceLROnPlateau(patience=1, min_delta=0.02, factor=0.5),
            keras.callbacks.EarlyStopping(patience=6, min_delta=0.05, restore_best_weights=True),
            keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: pause()),
        ]

    def script(world: World, task_id: TaskId) -> None:
        def pause() -> None:
            world.maybe_crash(task_id)
            begun.set()
            hurry.wait(0.1)

        model = compiled(keras.optimizers.SGD(0.1, momentum=0.5), drops=False)
        history = train(model, callbacks=callbacks(pause), epochs=200)
        found[task_id] = (digest(model), history.history)

    world = World(script=script, result_dir=tmp_path / "job", virtual_workers=4)
    world.resize(1)
    world.wait_for_size(1)
    world.wait(begun.is_set, "an epoch is over")
    world.resize(3)
    world.wait_for_size(3)
    world.kill(world.live()[0])
    world.wait_for_size(2)
    hurry.set()
    world.wait_for_end()

    alone = compiled(keras.optimizers.SGD(0.1, momentum=0.5), drops=False)
    history = train(alone, callbacks=callbacks(lambda: None), epochs=200)
    assert 7 <= len(history.epoch) < 200
    assert list(found.values()) == [(digest(alone), history.history)] * 2
    saved = torch.load(tmp_path / "job" / "model" / "model.pt", weights_only=True)
    assert torch.equal(saved["dense/kernel"], alone.layers[0].kernel.value)
    assert (tmp_path / "job" / "model" / "model.keras").is_file()
