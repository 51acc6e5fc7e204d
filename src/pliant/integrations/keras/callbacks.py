"""Keras callbacks in a training whose tasks come and go: they run in every task, and their state is shared.

A callback sees epochs: what it gets as `logs` are the means over the whole epoch, the same numbers in every task, so
all come to the same learning rate and stop after the same epoch. Plain attributes of a callback (numbers, texts,
arrays, lists of them) are carried to tasks that join and into checkpoints. A task that joins in the middle of an epoch
calls `on_epoch_begin`, too; what that changes is undone, because the state has it already.

Batches are no business of callbacks: a task sees parts of them. `ModelCheckpoint` saves on the leader alone.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch

from pliant.core.errors import InvalidInput, Problem
from pliant.integrations.keras.backend import keras
from pliant.train import Run

EVERYWHERE: Final = ("EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ReduceLROnPlateau")
"""Keras' own callbacks that run in every task."""
ON_LEADER: Final = "ModelCheckpoint"
_OTHERS: Final[Mapping[str, str]] = {
    "BackupAndRestore": "checkpoints are Pliant's (checkpoint_freq)",
    "CSVLogger": "series are kept with the job (`pliant metrics`)",
    "OrbaxCheckpoint": "checkpoints are Pliant's (checkpoint_freq)",
    "ProgbarLogger": "the leader prints how far it is",
    "RemoteMonitor": "the server has the series (REST)",
    "TensorBoard": "give the job a tracker, or see `pliant metrics`; histograms: `pliant submit --histograms-every`",
    "TerminateOnNaN": "it looks at every batch; let a callback look at logs['loss'] in on_epoch_end",
}
_BATCH_HOOKS: Final = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")
_LOCAL: Final = frozenset({"_model", "_params", "params", "monitor_op", "min_delta"})
"""Attributes of callbacks that every task has its own of; Keras changes the sign of `min_delta` when it first looks."""


class _Unknown:
    """Says that a value is not plain."""


class KerasCallbacks:
    """The callbacks of one training, and what they decide by; a part of the shared state.

    Called as one callback: `on_train_begin`, `on_epoch_begin(epoch)`, `on_epoch_end(epoch)`, `on_train_end`. `count`
    is called whenever steps may have been committed, `note_validation` with the values of one.

    Raises:
        InvalidInput: callbacks that cannot run here; each is named.
    """

    params: Mapping[str, Any] = {}
    """What callbacks get as `params`."""

    def __init__(self, callbacks: Sequence[Any], model: Any) -> None:
        problems = [problem for callback in callbacks for problem in _problems(callback)]
        if problems:
            raise InvalidInput(*problems)
        self._callbacks, self._keras_model = tuple(callbacks), model
        self._run: Run | None = None
        self._num_counted = 0
        self._sums: dict[str, float] = {}
        self._num_samples = 0
        self._validated: dict[str, float] = {}
        self._num_begun = self._num_ended = 0
        self._first_rate = _learning_rate(model.optimizer)
        model.stop_training = False

    def bind(self, run: Run) -> None:
        """Take the run whose steps are counted."""
        self._run = run

    @property
    def has_stopped(self) -> bool:
        """A callback has asked to end the training with this epoch (`model.stop_training`)."""
        return bool(self._keras_model.stop_training)

    @property
    def logs(self) -> dict[str, float]:
        """Means over the present epoch's samples so far, and the newest validation in it, as `val_…`."""
        means = {name: total / self._num_samples for name, total in self._sums.items()}
        return {**means, **{f"val_{name}": value for name, value in self._validated.items()}}

    def count(self) -> None:
        """Take in the newest committed step, unless that was done."""
        run = self._run
        if run is None or not run.last or run.num_steps_done == self._num_counted:
            return
        self._num_counted = run.num_steps_done
        place = (self._num_counted - 1) % run.steps_per_epoch
        if place == 0:
            self._sums, self._num_samples, self._validated = {}, 0, {}
        num = min(run.plan.batch_size, run.plan.num_samples - place * run.plan.batch_size)
        self._num_samples += num
        for name, value in run.last.items():
            self._sums[name] = self._sums.get(name, 0.0) + value * num

    def note_validation(self, values: Mapping[str, float]) -> None:
        """Take in the means over the validation set."""
        self._validated = dict(values)

    # -- as a callback ----------------------------------------------------------------------------------------------

    def on_train_begin(self) -> None:
        for callback in self._callbacks:
            callback.set_params(dict(self.params))
            callback.set_model(self._keras_model)
            callback.on_train_begin({})

    def on_epoch_begin(self, epoch: int) -> None:
        self.count()
        self._play("on_epoch_begin", epoch, {}, is_done=self._num_begun > epoch)
        self._num_begun = max(self._num_begun, epoch + 1)

    def on_epoch_end(self, epoch: int) -> None:
        self.count()
        self._play("on_epoch_end", epoch, self.logs, is_done=self._num_ended > epoch)
        self._num_ended = max(self._num_ended, epoch + 1)

    def on_train_end(self) -> None:
        for callback in self._callbacks:
            callback.on_train_end(self.logs)

    def _play(self, method: str, epoch: int, logs: dict[str, float], *, is_done: bool) -> None:
        before = copy.deepcopy(self.state_dict()) if is_done else None
        for callback in self._callbacks:
            saves = type(callback).__name__ == ON_LEADER
            if saves and not (self._run is not None and self._run.leads and not is_done):
                callback.set_model(_NotSaved(self._keras_model))
            getattr(callback, method)(epoch, logs)
            if saves:
                callback.set_model(self._keras_model)
        if before is not None:
            self.load_state_dict(before)

    # -- as a part of the state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all that decides, with the steps that are committed."""
        self.count()
        return {
            "counted": self._num_counted,
            "sums": dict(self._sums),
            "samples": self._num_samples,
            "validated": dict(self._validated),
            "borders": [self._num_begun, self._num_ended],
            "stopped": self.has_stopped,
            "rates": self._rates(),
            "callbacks": [_plain_attributes(callback) for callback in self._callbacks],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._num_counted, self._num_samples = state_dict["counted"], state_dict["samples"]
        self._sums, self._validated = dict(state_dict["sums"]), dict(state_dict["validated"])
        self._num_begun, self._num_ended = state_dict["borders"]
        self._keras_model.stop_training = state_dict["stopped"]
        if state_dict["rates"] and self._first_rate is not None:
            (self._keras_model.optimizer.learning_rate,) = state_dict["rates"]["_last_lr"]
        for callback, attributes in zip(self._callbacks, state_dict["callbacks"], strict=True):
            vars(callback).update({name: _from_plain(value) for name, value in attributes.items()})

    def _rates(self) -> dict[str, list[float]]:
        """Return the learning rate, and the one that the script gave, as torch's schedulers name them.

        So who begins from another training's state goes on in the scale of its own; none if a schedule computes it.
        """
        rate = _learning_rate(self._keras_model.optimizer)
        return {} if rate is None or self._first_rate is None else {"base_lrs": [self._first_rate], "_last_lr": [rate]}


class _NotSaved:
    """A model in every respect, but that it is not saved: another task does that."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def save(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def save_weights(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


def is_callback(given: object) -> bool:
    """Tell whether something is a Keras callback."""
    return isinstance(given, keras.callbacks.Callback)


def _problems(callback: Any) -> Iterator[Problem]:
    kind = type(callback)
    if not is_callback(callback):
        yield Problem(field="callbacks", message=f"{callback!r:.80} is no keras.callbacks.Callback")
        return
    is_own = kind.__module__.partition(".")[0] != "keras"
    if not is_own and kind.__name__ not in (*EVERYWHERE, ON_LEADER):
        why = _OTHERS.get(kind.__name__, "it is not known to work where tasks come and go")
        yield Problem(field="callbacks", message=f"keras.callbacks.{kind.__name__} cannot be used: {why}")
    elif kind.__name__ == ON_LEADER and not is_own:
        if callback.save_freq != "epoch":
            message = f"ModelCheckpoint(save_freq={callback.save_freq!r}) counts batches; use save_freq='epoch'"
            yield Problem(field="callbacks", message=message)
    else:
        base = keras.callbacks.Callback
        found = [n for n in _BATCH_HOOKS if n in vars(callback) or getattr(kind, n) is not getattr(base, n)]
        if found:
            message = f"{kind.__name__} has {found[0]}, and a task sees parts of batches only; use on_epoch_end"
            yield Problem(field="callbacks", message=message)


def _learning_rate(optimizer: Any) -> float | None:
    """Return the learning rate; None where a schedule computes it from the step."""
    if isinstance(getattr(optimizer, "_learning_rate", None), keras.optimizers.schedules.LearningRateSchedule):
        return None
    return float(optimizer.learning_rate.value)


def _plain_attributes(callback: Any) -> dict[str, Any]:
    found = {name: _plain(value) for name, value in vars(callback).items() if name not in _LOCAL}
    return {name: value for name, value in found.items() if value is not _Unknown}


def _plain(value: Any) -> Any:
    """Return what can travel for a value; `_Unknown` if it is not plain."""
    match value:
        case None | bool() | int() | float() | str() | torch.Tensor():
            return value
        case np.ndarray() if value.dtype.kind in "biuf":
            return {"array": torch.from_numpy(value.copy())}
        case np.generic():
            return value.item()
        case list():
            items = [_plain(one) for one in value]
            return _Unknown if _Unknown in items else {"list": items}
        case dict() if all(isinstance(key, str | int) for key in value):
            entries = {key: _plain(one) for key, one in value.items()}
            return _Unknown if _Unknown in entries.values() else {"dict": entries}
        case _:
            return _Unknown


def _from_plain(value: Any) -> Any:
    match value:
        case {"array": torch.Tensor() as tensor}:
            return tensor.cpu().numpy().copy()
        case {"list": items}:
            return [_from_plain(one) for one in items]
        case {"dict": items}:
            return {key: _from_plain(one) for key, one in items.items()}
        case _:
            return value
