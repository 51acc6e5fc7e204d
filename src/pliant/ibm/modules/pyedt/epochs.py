"""What belongs to an epoch: the means so far, and which changes of the callbacks the state has already.

A task that joins a training gets model and optimizer from another task. If a callback there has already divided the
learning rate at the beginning of this epoch, the callback of the new task is called, too, but its change is undone.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler


class Means:
    """Means over the samples of an epoch, as far as this task has seen it."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._num_samples: dict[str, int] = {}

    def add(self, values: Mapping[str, float], num_samples: int) -> None:
        """Count the means over one global batch."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value) * num_samples
            self._num_samples[name] = self._num_samples.get(name, 0) + num_samples

    @property
    def values(self) -> dict[str, float]:
        """The means, the loss first."""
        names = sorted(self._sums, key=lambda name: name != "loss")
        return {name: self._sums[name] / self._num_samples[name] for name in names}


class CallbackProgress:
    """Part of the shared state: at how many beginnings and ends of epochs the callbacks have changed it."""

    def __init__(self) -> None:
        self.num_begun = 0
        self.num_ended = 0

    def state_dict(self) -> dict[str, Any]:
        return {"num_begun": self.num_begun, "num_ended": self.num_ended}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.num_begun, self.num_ended = state_dict["num_begun"], state_dict["num_ended"]


class CallbackState:
    """The state of a callback: its own if it has one, else that of the schedulers among its attributes."""

    def __init__(self, callback: Any) -> None:
        self._callback = callback

    def state_dict(self) -> dict[str, Any]:
        if _has_state(self._callback):
            own: dict[str, Any] = self._callback.state_dict()
            return own
        return {name: scheduler.state_dict() for name, scheduler in _schedulers_of(self._callback).items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if _has_state(self._callback):
            self._callback.load_state_dict(state_dict)
            return
        for name, scheduler in _schedulers_of(self._callback).items():
            if name in state_dict:
                scheduler.load_state_dict(state_dict[name])


def _has_state(callback: Any) -> bool:
    return hasattr(callback, "state_dict") and hasattr(callback, "load_state_dict")


def _schedulers_of(callback: Any) -> dict[str, Any]:
    return {name: one for name, one in getattr(callback, "__dict__", {}).items() if isinstance(one, LRScheduler)}


def callback_states(callbacks: Sequence[Any]) -> dict[str, Any]:
    """Return the states of the callbacks, by names that are the same in every task."""
    return {f"callback-{index}": CallbackState(one) for index, one in enumerate(callbacks)}


@contextmanager
def undo_changes(optimizers: Iterable[torch.optim.Optimizer], others: Mapping[str, Any]) -> Iterator[None]:
    """Undo, after the `with` block, its changes to options of the optimizers (learning rates) and to other states."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    options = [copy.deepcopy({name: value for name, value in group.items() if name != "params"}) for group in groups]
    states = {name: copy.deepcopy(one.state_dict()) for name, one in others.items()}
    yield
    for group, before in zip(groups, options, strict=True):
        group.update(before)
    for name, one in others.items():
        one.load_state_dict(states[name])
