"""Lightning's fit loop, with the epochs and steps of a `Run` in the place of its own.

    on_train_start, on_train_epoch_start   in every task, also one that joins inside an epoch; what they did to the
                                           shared state is then undone by the state that it was given
    the parts of the epoch                 `step`
    validation, on_train_epoch_end         in every task alike: each computes the whole validation for itself

A task whose epoch was ended by others meanwhile (it was lost to them, and took over their state) does not end it again.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from pliant.integrations.elastic_lightning.batches import TrainBatches, take_batches
from pliant.integrations.elastic_lightning.logged import PartResults
from pliant.integrations.elastic_lightning.package import Package
from pliant.integrations.elastic_lightning.shared import LightningState
from pliant.integrations.elastic_lightning.step import StepHooks
from pliant.train import Run, TrainingError
from pliant.train.context import find_context
from pliant.train.seeds import mix, seed_forward, seed_loading


class FitByRun:
    """What an elastic fit loop does otherwise than Lightning's `_FitLoop`, which it is mixed into."""

    package: Package
    trainer: Any
    epoch_loop: Any
    epoch_progress: Any
    batches: TrainBatches
    steps: StepHooks
    accumulate = 1
    max_batches: float
    max_steps: int
    max_epochs: int
    _combined_loader: Any
    _data_source: Any
    _can_stop_early: bool
    skip: bool
    done: bool
    on_run_start: Callable[[], None]
    on_advance_start: Callable[[], None]
    on_advance_end: Callable[[], None]
    on_run_end: Callable[[], None]

    def setup_data(self) -> None:
        """Take the train dataloader and count the steps of an epoch."""
        trainer = self.trainer
        if self._combined_loader is not None or trainer.limit_train_batches == 0:
            return
        connector = self.package.module("trainer.connectors.data_connector")
        loader = connector._request_dataloader(self._data_source)
        combined = self.package.module("utilities.combined_loader").CombinedLoader
        if trainer.overfit_batches > 0:
            whole = combined(loader, "max_size_cycle")
            stage = self.package.module("trainer.states").RunningStage.TRAINING
            connector._resolve_overfit_batches(whole, mode=stage)
            loader = whole.iterables
        strategy = trainer.strategy
        self.batches = take_batches(
            self.package, trainer, loader, accumulate=self.accumulate, order=strategy.order, seed=strategy.seed
        )
        self._combined_loader = combined(loader, "max_size_cycle")
        self.max_batches = self.batches.num_steps
        trainer.val_check_batch = self.max_batches

    def run(self) -> None:
        """Train in all tasks together, from where the job is to its end."""
        if self.epoch_progress.total.ready:
            raise TrainingError(
                "fit() was called a second time with one Trainer; make a new Trainer, with ElasticStrategy again, for "
                "another training"
            )
        self.setup_data()
        if self.skip:
            return
        self.trainer._signal_connector.teardown()  # Pliant's own handlers end a task between two steps
        torch.set_grad_enabled(True)
        run = self._make_run()
        has_begun = False
        for epoch in run.epochs(self._num_epochs()):
            self.trainer.strategy.lead(run.rank)
            if not has_begun:
                has_begun = True
                self.on_run_start()
            self._run_epoch(run, epoch)
            if self.done:
                break
        run.finish()
        self.trainer.strategy.lead(run.rank)
        if has_begun:
            self.on_run_end()

    def _make_run(self) -> Run:
        trainer, strategy = self.trainer, self.trainer.strategy
        parts = PartResults()
        state = LightningState(self.package, trainer, parts)
        self.steps = StepHooks(package=self.package, fit=self, parts=parts, state=state)
        if not trainer.optimizers or type(trainer.optimizers[0]).__name__ == "_MockOptimizer":
            raise TrainingError("configure_optimizers returned no optimizer; there is nothing to train with")
        context = find_context()
        virtual_workers = strategy.virtual_workers or context.parts_of(self.batches.batch_size)
        is_whole = (strategy.mode or context.mode) == "fast"
        self.steps.run = run = Run(
            trainer.lightning_module,
            trainer.optimizers,
            self.batches.loader,
            order=self.batches.order,
            num_samples=self.batches.num_streamed,
            virtual_workers=strategy.virtual_workers,
            mode=strategy.mode,
            accumulate=self.batches.accumulate(1 if is_whole else virtual_workers),
            seed=strategy.seed,
            scaler=getattr(trainer.precision_plugin, "scaler", None),
            before_step=self.steps.before_step,
            after_step=self.steps.after_step,
            state={"lightning": state},
        )
        for source in (trainer.datamodule, trainer.lightning_module):
            if source is not None and source._log_hyperparams and source.hparams_initial:
                run.log_params(dict(source.hparams_initial))
        return run

    def _num_epochs(self) -> int:
        found = [self.max_epochs] if self.max_epochs != -1 else []
        if self.max_steps != -1:
            found.append(math.ceil(self.max_steps / self.max_batches))
        return int(min(found))

    @property
    def is_epoch_over(self) -> bool:
        """The step that was done is the last one of this epoch: of its data, or since the training is to end."""
        return self.epoch_loop.batch_progress.is_last_batch or self._is_to_end

    @property
    def _is_to_end(self) -> bool:
        reached = self.max_steps != -1 and self.epoch_loop.global_step >= self.max_steps
        return reached or self._is_to_stop

    @property
    def _is_to_stop(self) -> bool:
        return bool(self.trainer.should_stop and self._can_stop_early)

    def _run_epoch(self, run: Run, epoch: int) -> None:
        self.on_advance_start()
        loop = self.epoch_loop
        for counters in (loop.batch_progress, loop.scheduler_progress, loop.automatic_optimization.optim_progress):
            counters.reset_on_run()
        loop.val_loop.batch_progress.total.reset()
        for part in run:
            if not self._is_to_end:
                self.steps.train_part(part)
            if self._is_to_end:
                break
        if self.epoch_progress.current.processed <= epoch:
            self._end_epoch(run)

    def _end_epoch(self, run: Run) -> None:
        is_whole = self.epoch_loop.batch_progress.is_last_batch
        if (is_whole or self._is_to_stop) and self.epoch_loop._should_check_val_epoch():
            self._validate(run)
        self.steps.finish_batch()
        self.on_advance_end()

    def _validate(self, run: Run) -> None:
        trainer, loop = self.trainer, self.epoch_loop
        trainer.validating = True
        is_first = trainer._logger_connector._first_loop_iter
        self.package.module("trainer.call")._call_lightning_module_hook(trainer, "on_validation_model_zero_grad")
        seed = mix(trainer.strategy.seed, run.num_steps_done)
        seed_loading(seed)
        seed_forward(seed)
        outputs = loop.val_loop.run()
        trainer.training = True
        trainer._logger_connector._first_loop_iter = is_first
        run.log(**{name: value for output in outputs for name, value in output.items()})


def make_fit_loop(package: Package, trainer: Any) -> Any:
    """Return a fit loop that takes the place of a Trainer's own."""
    old = trainer.fit_loop
    kind = type("ElasticFitLoop", (FitByRun, package.module("loops.fit_loop")._FitLoop), {"package": package})
    new: Any = kind(trainer, min_epochs=old.min_epochs, max_epochs=old.max_epochs)
    new.epoch_loop, new._data_source = old.epoch_loop, old._data_source
    new.accumulate, trainer.accumulate_grad_batches = trainer.accumulate_grad_batches, 1
    return new
