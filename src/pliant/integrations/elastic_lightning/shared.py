"""What Lightning keeps besides model and optimizers, as a part of the state that all tasks share.

Callbacks, schedulers, counters of the loops, logged values: a task that joins takes them over, a checkpoint holds them.
Captured after a committed step it has `on_train_batch_end` of that step behind it, and nothing of the next one.
"""

from typing import Any

import torch

from pliant.integrations.elastic_lightning.logged import PartResults
from pliant.integrations.elastic_lightning.package import Package

_META = ("fx", "name", "prog_bar", "logger", "on_step", "on_epoch", "enable_graph", "add_dataloader_idx")
_SHOWN = ("_callback_metrics", "_logged_metrics", "_progress_bar_metrics")


class LightningState:
    """Captures and loads Lightning's side of a training, as `Run(state=…)` wants it."""

    def __init__(self, package: Package, trainer: Any, parts: PartResults) -> None:
        self._package = package
        self._trainer = trainer
        self._parts = parts
        self.num_begun = 0
        """Steps that `on_train_batch_start` was called for."""

    def state_dict(self) -> dict[str, Any]:
        fit = self._trainer.fit_loop
        connector = self._trainer._logger_connector
        return {
            "checkpoint": self._capture_hooks(),
            "schedulers": [config.scheduler.state_dict() for config in self._trainer.strategy.lr_scheduler_configs],
            "progress": [tracker.state_dict() for tracker in self._trackers()],
            "steps_logged": fit.epoch_loop._batches_that_stepped,
            "begun": self.num_begun,
            "should_stop": self._trainer.should_stop,
            "shown": [dict(getattr(connector, name)) for name in _SHOWN],
            "results": [_capture(one) for one in fit.epoch_loop._results.values() if one.is_tensor],
            "known": {key: dict(options) for key, options in self._parts.known.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replace Lightning's side of this training with another task's."""
        trainer, fit = self._trainer, self._trainer.fit_loop
        device = trainer.strategy.root_device
        self._load_hooks(state["checkpoint"])
        for config, saved in zip(trainer.strategy.lr_scheduler_configs, state["schedulers"], strict=True):
            config.scheduler.load_state_dict(saved)
        for tracker, saved in zip(self._trackers(), state["progress"], strict=True):
            tracker.load_state_dict(saved)
        fit.epoch_loop._batches_that_stepped = state["steps_logged"]
        self.num_begun, trainer.should_stop = state["begun"], state["should_stop"]
        for name, values in zip(_SHOWN, state["shown"], strict=True):
            setattr(trainer._logger_connector, name, {key: _to(value, device) for key, value in values.items()})
        fit.epoch_loop._results.clear()
        for one in state["results"]:
            _restore(fit.epoch_loop._results, one, device)
        self._parts.known = {key: dict(options) for key, options in state["known"].items()}

    def _trackers(self) -> list[Any]:
        loop = self._trainer.fit_loop.epoch_loop
        return [
            self._trainer.fit_loop.epoch_progress,
            loop.batch_progress,
            loop.scheduler_progress,
            loop.automatic_optimization.optim_progress,
            loop.val_loop.batch_progress,
        ]

    def _capture_hooks(self) -> dict[str, Any]:
        """Return what callbacks, module and data module put into a checkpoint of Lightning's."""
        trainer, call = self._trainer, self._package.module("trainer.call")
        checkpoint = self._header()
        checkpoint["callbacks"] = call._call_callbacks_state_dict(trainer)
        call._call_callbacks_on_save_checkpoint(trainer, checkpoint)
        if trainer.datamodule is not None:
            checkpoint["datamodule"] = call._call_lightning_datamodule_hook(trainer, "state_dict")
        call._call_lightning_module_hook(trainer, "on_save_checkpoint", checkpoint)
        return {name: value for name, value in checkpoint.items() if name not in self._header()}

    def _load_hooks(self, saved: dict[str, Any]) -> None:
        trainer, call = self._trainer, self._package.module("trainer.call")
        checkpoint = {**self._header(), **saved}
        if trainer.datamodule is not None:
            call._call_lightning_datamodule_hook(trainer, "load_state_dict", checkpoint["datamodule"])
        call._call_lightning_module_hook(trainer, "on_load_checkpoint", checkpoint)
        call._call_callbacks_on_load_checkpoint(trainer, checkpoint)
        call._call_callbacks_load_state_dict(trainer, checkpoint)

    def _header(self) -> dict[str, Any]:
        """Return what hooks expect in a checkpoint, and what travels by itself."""
        trainer = self._trainer
        return {
            "epoch": trainer.current_epoch,
            "global_step": trainer.global_step,
            "pytorch-lightning_version": self._package.version,
            "state_dict": trainer.lightning_module.state_dict(),
        }


def _capture(result: Any) -> dict[str, Any]:
    return {
        "meta": {name: getattr(result.meta, name) for name in (*_META, "metric_attribute")},
        "reduce_fx": result.meta.reduce_fx.__name__,
        "value": result.value,
        "count": getattr(result, "cumulated_batch_size", None),
        "newest": result._forward_cache,
        "has_reset": result.has_reset,
    }


def _restore(results: Any, saved: dict[str, Any], device: torch.device) -> None:
    meta = saved["meta"]
    zero = torch.zeros((), device=device)
    results.log(**meta, value=zero, reduce_fx=saved["reduce_fx"], batch_size=1)
    result = results[f"{meta['fx']}.{meta['name']}"]
    result.value = _to(saved["value"], device)
    if saved["count"] is not None:
        result.cumulated_batch_size = _to(saved["count"], device)
    result._forward_cache = _to(saved["newest"], device)
    result.has_reset = saved["has_reset"]
    result._computed = None


def _to(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value
