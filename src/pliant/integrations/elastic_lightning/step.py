"""One optimizer step of all tasks as Lightning's hooks see it: once, with the gradient and the values of its batch.

    each part of this task   batch to device, training_step, backward and the gradients' sum by `Run.step`
    before the step          on_before_zero_grad, on_after_backward, on_before_optimizer_step, clipping; the
                             gradient is that of the global batch
    after the step           self.log's values of the global batch, schedulers, on_train_batch_end

What comes before and after happens in every task, also in one that had no part of the step.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import torch

from pliant.integrations.elastic_lightning.logged import PartResults
from pliant.integrations.elastic_lightning.package import Package
from pliant.integrations.elastic_lightning.shared import LightningState
from pliant.train import Run, TrainingError


@dataclass(slots=True, kw_only=True)
class StepHooks:
    """Calls Lightning's hooks around the steps of a `Run`."""

    package: Package
    fit: Any
    """Lightning's fit loop."""
    parts: PartResults
    state: LightningState
    run: Run = field(init=False)
    _batch: Any = None
    """Newest part that this task computed."""
    _outputs: dict[str, Any] = field(default_factory=dict)
    """What training_step returned for it, besides the loss."""

    def train_part(self, part: Any) -> None:
        """Compute the loss of a part, and give it to the run."""
        trainer, index = self.fit.trainer, self.run.step_in_epoch
        batch = trainer.precision_plugin.convert_input(part)
        batch = trainer.lightning_module._on_before_batch_transfer(batch, dataloader_idx=0)
        call = self.package.module("trainer.call")
        self._batch = call._call_strategy_hook(trainer, "batch_to_device", batch, dataloader_idx=0)
        self._begin(index)
        loss = self._compute_loss(index)
        self.package.call_hooks(trainer, "on_before_backward", loss)
        self.run.step(loss, **self.parts.take())

    def _compute_loss(self, index: int) -> torch.Tensor:
        loop, call = self.fit.epoch_loop, self.package.module("trainer.call")
        arguments = loop._build_kwargs(OrderedDict(), self._batch, index)
        results, loop._results = loop._results, self.parts
        try:
            output = call._call_strategy_hook(self.fit.trainer, "training_step", *arguments.values())
        finally:
            loop._results = results
        loss = output.get("loss") if isinstance(output, dict) else output
        if not isinstance(loss, torch.Tensor):
            raise TrainingError(
                f"training_step returned {type(output).__name__} for batch_idx {index}; return a loss (a tensor, or a "
                f"dict with one as 'loss') for every batch: each is a part of a global batch, and none can be left out"
            )
        self._outputs = {key: value for key, value in output.items() if key != "loss"} if output is not loss else {}
        return loss

    def _begin(self, index: int) -> None:
        """Call `on_train_batch_start`, once for a step, also if it is computed again after a loss."""
        if self.state.num_begun > self.run.num_steps_done:
            return
        trainer, progress = self.fit.trainer, self.fit.epoch_loop.batch_progress
        self.state.num_begun = self.run.num_steps_done + 1
        progress.current.ready = progress.current.started = index + 1
        progress.total.ready = progress.total.started = self.run.num_steps_done + 1
        progress.is_last_batch = index == self.run.steps_per_epoch - 1
        trainer._logger_connector._first_loop_iter = index == 0
        results = self.fit.epoch_loop._results
        results.batch, results.batch_size, results.dataloader_idx = self._batch, None, None
        [response] = self.package.call_hooks(trainer, "on_train_batch_start", self._batch, index)
        self.package.module("trainer.call")._call_strategy_hook(trainer, "on_train_batch_start", self._batch, index)
        if response == -1:
            raise TrainingError(
                "on_train_batch_start returned -1 to leave the epoch, which only uses part of the data set then; give "
                "Trainer(limit_train_batches=…), or set trainer.should_stop to end the training"
            )

    def before_step(self) -> None:
        """Call the hooks that see the gradient of the global batch, and clip it."""
        trainer = self.fit.trainer
        trainer.strategy.lead(self.run.rank)
        self._begin(self.run.step_in_epoch)
        self.fit.epoch_loop.automatic_optimization.optim_progress.optimizer.step.increment_ready()
        self.package.call_hooks(trainer, "on_before_zero_grad", trainer.optimizers[0])
        self.package.call_hooks(trainer, "on_after_backward")
        trainer.precision_plugin._after_closure(trainer.lightning_module, trainer.optimizers[0])

    def after_step(self) -> None:
        """Do what Lightning does after a batch; what follows the last one of an epoch is left to its end."""
        trainer, loop, index = self.fit.trainer, self.fit.epoch_loop, self.run.step_in_epoch
        loop.automatic_optimization.optim_progress.optimizer.step.increment_completed()
        batch_size = len(self.run.plan.batch(self.run.num_steps_done))
        loss = _as_tensor(self.run.last["loss"], trainer.lightning_module)
        self.parts.tell(loop._results, self.run.last, batch_size=batch_size, like=loss)
        loop.batch_progress.increment_processed()
        loop.update_lr_schedulers("step", update_plateau_schedulers=False)
        if loop._num_ready_batches_reached():
            loop.update_lr_schedulers("epoch", update_plateau_schedulers=False)
        outputs = {**self._outputs, "loss": loss}
        self.package.call_hooks(trainer, "on_train_batch_end", outputs, self._batch, index)
        trainer._logger_connector.on_batch_end()
        loop.batch_progress.increment_completed()
        trainer._logger_connector.update_train_step_metrics()
        if not self.fit.is_epoch_over:
            self.finish_batch()

    def finish_batch(self) -> None:
        """Do what Lightning does after the validation that may follow a batch."""
        loop = self.fit.epoch_loop
        loop.update_lr_schedulers("step", update_plateau_schedulers=True)
        loop._batches_that_stepped += 1
        loop._save_loggers_on_train_batch_end()


def _as_tensor(value: float, module: Any) -> torch.Tensor:
    return torch.tensor(value, device=module.device, dtype=torch.promote_types(module.dtype, torch.float32))
