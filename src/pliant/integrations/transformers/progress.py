"""What a Trainer knows beside its model: part of the state that travels to tasks that join, and into checkpoints.

TrainerState (steps, logs, the best metric), TrainerControl, and the callbacks. Of a callback that is `ExportableState`
what it exports travels; of others, but those of transformers itself, the attributes that are plain values.
"""

import copy
from dataclasses import fields
from typing import Any, Final

import torch
from transformers.trainer_callback import ExportableState

_OWN: Final = ("is_local_process_zero", "is_world_process_zero", "stateful_callbacks")
"""Of the state: what differs between tasks, and what is made anew for every checkpoint."""
_LIBRARY: Final = "transformers."
_SUMS: Final = ("_total_loss_scalar", "_globalstep_last_logged", "current_flos")
_LEFT_OUT: Final = object()


class TrainerProgress:
    """The state of a Trainer and its callbacks."""

    def __init__(self, trainer: Any, *, began_at: float) -> None:
        self._trainer = trainer
        self.began_at = began_at
        """When the training began, seconds since the epoch."""
        self.num_begun = 0
        """Steps that callbacks know to have begun."""
        self.saved_at: int | None = None
        """Steps that were done when the Trainer's newest checkpoint was due."""

    def state_dict(self) -> dict[str, Any]:
        trainer = self._trainer
        state = {field.name: getattr(trainer.state, field.name) for field in fields(trainer.state)}
        return {
            "state": {name: _plain(value, or_else=None) for name, value in state.items() if name not in _OWN},
            "control": trainer.control.state()["args"],
            "callbacks": [[type(one).__name__, _export(one)] for one in trainer.callback_handler.callbacks],
            "sums": [_plain(getattr(trainer, name), or_else=0) for name in _SUMS],
            "loss_sum": float(trainer._tr_loss),
            "num_begun": self.num_begun,
            "saved_at": self.saved_at,
            "output_dir": trainer.args.output_dir,
            "began_at": self.began_at,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        trainer = self._trainer
        _set(trainer.state, state_dict["state"])
        _set(trainer.control, state_dict["control"])
        for name, value in zip(_SUMS, state_dict["sums"], strict=True):
            setattr(trainer, name, value)
        trainer._tr_loss.fill_(state_dict["loss_sum"])
        self.num_begun, self.began_at = state_dict["num_begun"], state_dict["began_at"]
        self.saved_at = state_dict["saved_at"]
        if state_dict["output_dir"] != trainer.args.output_dir:
            self._forget_best()
        self.load_callbacks(state_dict["callbacks"])

    def _forget_best(self) -> None:
        """Begin anew with what is best: the best checkpoint lies among the results of another job."""
        self.saved_at, state = None, self._trainer.state
        if state.best_model_checkpoint is not None:
            state.best_metric = state.best_global_step = state.best_model_checkpoint = None

    def load_callbacks(self, exported: list[list[Any]]) -> None:
        """Give every callback its attributes; one that is new here, or was left out, keeps its own or is ignored."""
        callbacks = list(self._trainer.callback_handler.callbacks)
        for name, attributes in exported:
            found = next((one for one in callbacks if type(one).__name__ == name), None)
            if found is not None:
                callbacks.remove(found)
                _set(found, attributes)


def is_of_library(callback: Any) -> bool:
    """Tell whether a callback is one of transformers' own."""
    return type(callback).__module__.startswith(_LIBRARY)


def _export(callback: Any) -> dict[str, Any]:
    if isinstance(callback, ExportableState):
        values = callback.state()["attributes"]
    else:
        values = {} if is_of_library(callback) else getattr(callback, "__dict__", {})
    plain = {str(name): _plain(value, or_else=_LEFT_OUT) for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not _LEFT_OUT}


def _plain(value: Any, *, or_else: Any) -> Any:
    """Return a value as what can travel: numbers, texts, tensors, lists and dicts of them; a copy of containers."""
    match value:
        case None | bool() | str():
            return value
        case torch.Tensor():
            return value.detach().clone()
        case int():
            return int(value)
        case float():
            return float(value)
        case list() | tuple() if type(value) in (list, tuple):
            items = [_plain(item, or_else=or_else) for item in value]
            return or_else if any(item is _LEFT_OUT for item in items) else type(value)(items)
        case dict():
            pairs = {key: _plain(item, or_else=or_else) for key, item in value.items()}
            is_plain = all(isinstance(key, str | int) and one is not _LEFT_OUT for key, one in pairs.items())
            return pairs if is_plain else or_else
        case _ if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            return _plain(value.item(), or_else=or_else)  # a scalar of numpy
        case _:
            return or_else


def _set(target: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(target, name, copy.deepcopy(value))
