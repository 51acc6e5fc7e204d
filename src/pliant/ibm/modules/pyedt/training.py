"""The loop behind `FabricModel.train`: runs a script on the engine.

Every task runs this. Callbacks run in every task: so all have the same learning rate, none waits for the leader, and
nothing is missing when the leader is lost. The tasks share a validation, but each computes a script's own `fn_test`
whole. Knows neither servers nor memberships.
"""

import os
import time
from collections.abc import Mapping, Sequence, Sized
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, IterableDataset, default_collate

from pliant.core.errors import InvalidInput
from pliant.ibm.modules.pyedt.epochs import CallbackProgress, callback_states, undo_changes
from pliant.ibm.modules.pyedt.loggers import call_if_defined
from pliant.ibm.modules.pyedt.progress_log import ProgressLog
from pliant.ibm.modules.pyedt.saving import export_onnx, load_weights, save_weights
from pliant.ibm.modules.pyedt.script import Schedule, Script, fit_schedule
from pliant.ibm.modules.pyedt.steps import (
    StepResult,
    TrainLoader,
    on_device,
    own_step,
    own_test,
    usual_step,
    usual_test,
)
from pliant.train import Run, Saving

_REDUCTION: Final = "mean"
"""The gradient is the mean of those of the engines, whatever the script's loss is, as IBM has it."""


def train(script: Script, schedule: Schedule, notes: Sequence[str]) -> None:
    """Train a script to its end; `notes` are printed once in the leader's log."""
    train_set, test_set = datasets(script)
    if script.converter is not None:
        script, train_set, test_set = script.converter.prepare(script, train_set, test_set)
    framework = script.framework
    schedule, more_notes = fit_schedule(schedule, len(train_set))
    notes = (*notes, *more_notes)
    if weights := os.environ.get("RESUME_WEIGHT_PATH"):
        loaded = framework is not None and framework.load(Path(weights))
        print(f"first weights from {weights if loaded else load_weights(script.module, Path(weights))}")
    script.module.to("cuda" if torch.cuda.is_available() else "cpu")
    callback_progress = CallbackProgress()

    def save(saving: Saving) -> None:
        name = "final" if saving.final else str(saving.epoch)
        save_weights(script.module, script.optimizers, saving.folder, name)
        if framework is not None and saving.final:
            framework.save(saving.folder)

    run = Run(
        script.module,
        script.optimizers,
        train_set,
        batch_size=schedule.global_batch,
        virtual_workers=schedule.virtual_workers,
        collate_fn=script.collate_fn,
        order=None if framework is None else framework.order,
        num_workers=min(schedule.num_workers, len(os.sched_getaffinity(0))),  # more would only be in each other's way
        accumulate=schedule.accumulate,
        schedulers=script.schedulers,
        scaler=script.scaler,
        clip_norm=script.clip_norm,
        clip_value=script.clip_value,
        checkpoint_freq=schedule.checkpoint_freq,
        state={**_stateful(script), "fabric": callback_progress},
        save=save,
    )
    if framework is not None:
        framework.events.bind(run)
    log = ProgressLog(script, schedule, run, num_samples=len(train_set), notes=notes, clock=time.monotonic)
    run_epochs(
        ScriptRun(script, schedule, run, callback_progress=callback_progress, data=(train_set, test_set), log=log)
    )


def datasets(script: Script) -> tuple[Any, Any]:
    """Return (train, test) from the script's function; test may be None.

    Raises:
        InvalidInput: the function gives something else.
    """
    given = script.datasets_function()
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise _bad_datasets(f"returned {type(given).__name__}; return two data sets, (train, test)")
    if given[0] is None:
        raise _bad_datasets("returned no training data; return two data sets, (train, test)")
    for one in given:
        if one is not None and (isinstance(one, IterableDataset) or not isinstance(one, Sized)):
            raise _bad_datasets(f"returned {type(one).__name__}, which has no length; return map-style data sets")
    return given[0], given[1]


class ScriptRun:
    """One task's part in a training of a script."""

    def __init__(
        self,
        script: Script,
        schedule: Schedule,
        run: Run,
        *,
        callback_progress: CallbackProgress,
        data: tuple[Any, Any],
        log: ProgressLog,
    ) -> None:
        self.run = run
        self.schedule = schedule
        self.log = log
        self._script = script
        self._events = None if script.framework is None else script.framework.events
        self._callback_progress = callback_progress
        train_set, test_set = data
        self._train_loader = TrainLoader(dataset=train_set, batch_size=schedule.local_batch)
        self._test_set = test_set

    def begin(self) -> None:
        """Give callbacks and loggers their attributes, and call `on_train_begin`."""
        script = self._script
        params = {
            "epochs": self.schedule.num_epochs,
            "optimizer": script.optimizer,
            "batch_size": self.schedule.local_batch,
        }
        for one in (*script.callbacks, script.driver_logger, script.worker_logger):
            if one is not None:
                one.params, one.model = params, script.model
        self._call_all("on_train_begin")

    def begin_epoch(self, epoch: int) -> None:
        """Enter an epoch, at its beginning or in its middle."""
        self._script.module.train()
        self.log.begin_epoch()
        self._at_border("on_epoch_begin", epoch, is_done=self._callback_progress.num_begun > epoch)
        self._callback_progress.num_begun = max(self._callback_progress.num_begun, epoch + 1)

    def batch(self, data: Any) -> None:
        """Train one micro-batch."""
        self.log.log_commit()
        outcome = self._step(on_device(data, self.run.device))
        if self._events is not None:
            self._events.count()
        self.log.log_batch(outcome.numbers)
        self.log.log_commit()

    def end_epoch(self, epoch: int) -> bool:
        """Leave an epoch: validate if it is time, and call the callbacks; return whether one ends the training."""
        self.log.log_commit()
        self.log.end_epoch()
        num_finished, num_epochs = epoch + 1, self.schedule.num_epochs
        is_last = num_finished == num_epochs
        values: dict[str, float] | None = None
        if self._test_set is not None and (is_last or num_finished % self.schedule.validation_freq == 0):
            values = self._validate()
            self.log.log_validation(values)
            if self._events is not None:
                self._events.note_validation(values)
        is_done = self._callback_progress.num_ended > epoch
        self._at_border("on_epoch_end", epoch, is_done=is_done)
        if not is_done:
            self._schedule_epoch(values)
        self._callback_progress.num_ended = max(self._callback_progress.num_ended, epoch + 1)
        has_stopped = self._events is not None and self._events.has_stopped
        if is_last or has_stopped:
            self._call_all("on_train_end")
            self.log.end_training()
            self._export()
        return has_stopped

    def _step(self, data: Any) -> StepResult:
        if self._script.fn_step_train is None:
            outcome = usual_step(self._script, data)
            self.run.step(outcome.loss, reduction=_REDUCTION, **outcome.metrics)
        else:
            outcome = own_step(self._script, data, self._train_loader)
            self.run.take(outcome.loss, reduction=_REDUCTION, **outcome.metrics)
        return outcome

    def _validate(self) -> dict[str, float]:
        """Compute a script's own test in every task, and share the usual one."""
        script = self._script
        if script.fn_test is not None:
            return own_test(script, _test_loader(script, self.schedule, self._test_set)).numbers()
        return self.run.evaluate(
            self._test_set,
            lambda batch: usual_test(script, on_device(batch, self.run.device)),
            batch_size=self.schedule.local_batch,
            collate_fn=script.collate_fn,
        )

    def _schedule_epoch(self, validated: Mapping[str, float] | None) -> None:
        """Step the schedulers of epochs; one that needs a value gets the newest loss that all tasks know."""
        for scheduler in self._script.epoch_schedulers:
            if not isinstance(scheduler, ReduceLROnPlateau):
                scheduler.step()
            elif validated is not None:
                scheduler.step(validated["loss"])
            elif self._test_set is None:
                scheduler.step(self.run.last["loss"])

    def _at_border(self, method: str, epoch: int, *, is_done: bool) -> None:
        """Call the callbacks; undo their changes if the state has these already."""
        script = self._script
        with undo_changes(script.optimizers.values(), _stateful(script)) if is_done else nullcontext():
            for one in script.callbacks:
                call_if_defined(one, method, epoch)

    def _call_all(self, method: str) -> None:
        for one in self._script.callbacks:
            call_if_defined(one, method)
        call_if_defined(self._script.worker_logger, method)

    def _export(self) -> None:
        if not (self._script.enable_onnx and self.run.leads and self.run.result_dir is not None):
            return
        dataset: Any = self._train_loader.dataset
        sample = (self._script.collate_fn or default_collate)([dataset[0]])
        folder = self.run.result_dir / "model"
        folder.mkdir(parents=True, exist_ok=True)
        inputs = on_device(sample[0], self.run.device)
        print(export_onnx(self._script.module, inputs, folder / "trained_model.onnx"))


def _stateful(script: Script) -> dict[str, Any]:
    schedulers = {f"epoch scheduler {i}": scheduler for i, scheduler in enumerate(script.epoch_schedulers)}
    return {**callback_states(script.callbacks), **schedulers}


def run_epochs(script_run: ScriptRun) -> None:
    """Run all epochs that are left. `on_train_end` is called inside the last one, before the engine reports the end."""
    script_run.begin()
    script_run.run.when_saved(script_run.log.log_saved)
    for epoch in script_run.run.epochs(script_run.schedule.num_epochs):
        script_run.begin_epoch(epoch)
        for batch in script_run.run:
            script_run.batch(batch)
        if script_run.end_epoch(epoch):
            break


def _test_loader(script: Script, schedule: Schedule, test_set: Any) -> DataLoader[Any]:
    # A generator of its own: asking the global one for a seed would change the training that follows.
    return DataLoader(
        test_set, batch_size=schedule.local_batch, collate_fn=script.collate_fn, generator=torch.Generator()
    )


def _bad_datasets(message: str) -> InvalidInput:
    return InvalidInput.at("datasets_function", message)
