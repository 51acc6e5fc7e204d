"""The loop behind `trainer.train()` of an elastic Trainer: a Run's epochs and parts, and the Trainer's own functions.

Theory of operation
-------------------
Every task runs this. What computes gradients is done for every part (`training_step` of the Trainer, whose call of
`accelerator.backward` becomes `run.step`). All else is done where a step is committed, in every task alike: clipping
before the optimizer steps, callbacks, logs, evaluations and saving after it. So it either belongs to a committed step
with all its consequences, or has not happened: a task that joins gets TrainerState and callbacks as they are after a
step, and has nothing to make up for. An epoch's end belongs to its last step, its beginning to its first.

The loss of a part is the mean over its items (tokens with a label), where transformers counts them, and weighs as many
as it has. The sum over the parts is then the mean over all items of the global batch, as in the plain Trainer:

    parts with 100 and 300 tokens, mean losses 2.0 and 4.0: (100 * 2.0 + 300 * 4.0) / 400 = 3.5

Callbacks and evaluations draw random numbers of their own, seeded by the step: they do not move those of dropout.
"""

import math
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Literal

import numpy
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from transformers.optimization import GreedyLR
from transformers.trainer_callback import TrainerCallback
from transformers.trainer_utils import TrainOutput

from pliant.integrations.transformers.data import TrainData, read_train_data
from pliant.integrations.transformers.progress import TrainerProgress, is_of_library
from pliant.integrations.transformers.saving import checkpoint_folder, remove_drafts
from pliant.train import Run, Saving, TrainingError
from pliant.train.seeds import mix, seed_loading

_BESIDE: Final = 0x62657369
"""Tag of the seeds of what happens beside the forward passes."""
_PARAMS: Final = (
    *("learning_rate", "per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "max_steps"),
    *("warmup_steps", "weight_decay", "max_grad_norm", "label_smoothing_factor", "seed"),
)
"""Arguments that are kept with the job."""
_TOKENS: Final = "input_tokens"


class ElasticLoop:
    """One training of one Trainer."""

    def __init__(
        self, trainer: Any, *, ignore_keys: list[str] | None, resume_asked: str | bool | None, is_managed: bool
    ) -> None:
        self._trainer = trainer
        self._ignore_keys = ignore_keys
        self._resume_asked = resume_asked
        self._data = read_train_data(trainer)
        self._max_steps = max_steps(trainer.args, self._data.steps_per_epoch)
        self._num_epochs = math.ceil(self._max_steps / self._data.steps_per_epoch)
        self._is_joined = self._is_over = False
        self._led = not is_managed
        self._grad_norm: torch.Tensor | None = None
        self._learning_rate = 0.0
        self._weight: float | None = None
        self._metrics: dict[str, float] = {}
        self._is_taken = False
        self._output: TrainOutput | None = None
        _begin_state(trainer, self._max_steps, self._num_epochs, self._data)
        self._model = _prepare_model(trainer, self._max_steps)
        self._progress = TrainerProgress(trainer, began_at=time.time())
        self._run = self._make_run()

    @property
    def leads(self) -> bool:
        """This is the one task that writes and reports."""
        return self._run.leads if self._is_joined else self._led

    def report(self, values: dict[str, float]) -> None:
        """Add values to the job's series, as long as the training goes on."""
        if values and self._is_joined and not self._is_over:
            self._run.log(**values)

    def train(self) -> TrainOutput:
        """Train to the end, and save the model.

        Raises:
            TrainingError: a checkpoint to resume from was named, and there is none of Pliant's own.
        """
        trainer, run = self._trainer, self._run
        pulse = _Pulse(run)
        trainer.add_callback(pulse)
        trainer.accelerator.backward = self._backward
        try:
            run.log_params({name: getattr(trainer.args, name) for name in _PARAMS})
            trainer.control = trainer.callback_handler.on_train_begin(trainer.args, trainer.state, trainer.control)
            self._train_epochs()
            run.finish(self._finalize)
            self._finalize()
        finally:
            self._is_over = True
            del trainer.accelerator.backward
            trainer.remove_callback(pulse)
        assert self._output is not None
        return self._output

    def _train_epochs(self) -> None:
        for _ in self._run.epochs(self._num_epochs):
            if not self._is_joined:
                self._enter()
            if self._is_done():
                break
            for part in self._run:
                self._begin_step()
                self._train_part(part)
                if self._is_done():
                    break
            if self._is_done():
                break

    def _is_done(self) -> bool:
        return self._trainer.control.should_training_stop or self._run.num_steps_done >= self._max_steps

    def _enter(self) -> None:
        self._is_joined = True
        if self._resume_asked and self._run.num_steps_done == 0:
            raise TrainingError(
                f"resume_from_checkpoint={self._resume_asked!r}: a job goes on from Pliant's own checkpoints, and "
                f"there is none yet. Leave it out: the same job goes on by itself, `pliant submit --resume-from JOB` "
                f"from another one; to start from the weights of a folder, load the model from it (from_pretrained)"
            )
        self._note_lead()

    def _make_run(self) -> Run:
        trainer, data = self._trainer, self._data
        scheduler = trainer.lr_scheduler
        waits = isinstance(scheduler, ReduceLROnPlateau | GreedyLR)  # for an evaluation: the Trainer steps it then
        return Run(
            self._model,
            trainer.optimizer,
            data.loader,
            order=data.order,
            num_samples=data.num_samples if data.order is None else None,
            seed=trainer.args.seed,
            schedulers=() if waits else (scheduler,),
            scaler=trainer.accelerator.scaler,
            before_step=self._before_step,
            after_step=self._after_step,
            after_commit=self._after_commit,
            state={"trainer": self._progress, **({"lr_scheduler": scheduler} if waits else {})},
            save=self._save,
        )

    # -- the parts of a step --------------------------------------------------------------------------------------

    def _begin_step(self) -> None:
        """Call what belongs to the beginning of a step: once for every step in every task."""
        trainer, step = self._trainer, self._run.num_steps_done
        self._note_lead()
        if self._progress.num_begun > step:
            return
        self._progress.num_begun = step + 1
        with _own_random(mix(trainer.args.seed, _BESIDE, step, 0)):
            if step == 0 and trainer.args.eval_on_start:
                trainer._evaluate(None, self._ignore_keys, skip_scheduler=True)
            if step % self._data.steps_per_epoch == 0:
                self._call("on_epoch_begin")
            self._call("on_step_begin")

    def _train_part(self, part: Any) -> None:
        trainer = self._trainer
        _, items = trainer.get_batch_samples(iter([part]), 1, torch.device("cpu"))
        self._weight = None if items is None else float(items)
        if items is not None:  # a part without items has the loss 0 / 1
            items = torch.as_tensor(max(float(items), 1.0), device=trainer.args.device)
        self._metrics = self._count_tokens(part)
        self._is_taken = False
        random.seed(torch.initial_seed())  # that of this part; models that mask their input draw from numpy
        numpy.random.seed(torch.initial_seed() & 0xFFFFFFFF)
        loss = trainer.training_step(self._model, part, items)
        if not self._is_taken:  # a training_step of its own, which called backward by itself
            self._run.take(loss, reduction=self._reduction, weight=self._weight, **self._metrics)

    def _backward(self, loss: torch.Tensor, **_kwargs: Any) -> None:
        """Instead of `accelerator.backward`: gradients are exchanged while the backward pass still runs."""
        self._is_taken = True
        self._run.step(loss, reduction=self._reduction, weight=self._weight, **self._metrics)

    @property
    def _reduction(self) -> Literal["mean"] | None:
        return "mean" if self._weight is None else None

    def _count_tokens(self, part: Any) -> dict[str, float]:
        """Return the input tokens of a part, as a mean over its samples: so they become those of the batch."""
        trainer = self._trainer
        name = getattr(trainer.model, "main_input_name", "input_ids")
        if trainer.args.include_num_input_tokens_seen == "no" or name not in part:
            return {}
        before = trainer.state.num_input_tokens_seen
        trainer._track_num_input_tokens(part)
        num_tokens = trainer.state.num_input_tokens_seen - before
        trainer.state.num_input_tokens_seen = before
        return {_TOKENS: num_tokens / len(part[name])}

    # -- around the optimizer step, in every task -----------------------------------------------------------------

    def _before_step(self) -> None:
        trainer = self._trainer
        self._begin_step()  # a task may have had no part of this step
        limit = trainer.args.max_grad_norm if trainer.args.max_grad_norm > 0 else math.inf
        self._grad_norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), limit)
        self._learning_rate = trainer._get_learning_rate()
        with _own_random(mix(trainer.args.seed, _BESIDE, self._run.num_steps_done, 1)):
            self._call("on_pre_optimizer_step")

    def _after_step(self) -> None:
        with _own_random(mix(self._trainer.args.seed, _BESIDE, self._run.num_steps_done, 2)):
            self._call("on_optimizer_step")

    def _after_commit(self) -> None:
        trainer, step, per_epoch = self._trainer, self._run.num_steps_done, self._data.steps_per_epoch
        self._note_lead()
        self._add_up()
        trainer.state.global_step, trainer.state.epoch = step, step / per_epoch
        with _own_random(mix(trainer.args.seed, _BESIDE, step, 3)):
            self._call("on_step_end")
            self._log_save_evaluate()
            if step % per_epoch == 0 or trainer.control.should_training_stop:
                self._call("on_epoch_end")
                self._log_save_evaluate()
            elif trainer.control.should_epoch_stop:
                raise TrainingError(
                    f"a callback set control.should_epoch_stop at step {step}; every sample is used once an epoch, so "
                    f"an epoch is not left early: set control.should_training_stop to end the training"
                )

    def _add_up(self) -> None:
        trainer, last = self._trainer, self._run.last
        if trainer.args.logging_nan_inf_filter and not math.isfinite(last["loss"]):
            num_since = 1 + trainer.state.global_step - trainer._globalstep_last_logged
            trainer._tr_loss += trainer._tr_loss / num_since
        else:
            trainer._tr_loss += last["loss"]
        if _TOKENS in last:
            num_samples = len(self._run.plan.batch(self._run.num_steps_done - 1))
            trainer.state.num_input_tokens_seen += round(last[_TOKENS] * num_samples)

    def _log_save_evaluate(self) -> None:
        trainer = self._trainer
        trainer._maybe_log_save_evaluate(
            trainer._tr_loss,
            self._grad_norm,
            self._model,
            None,
            trainer.state.epoch,
            self._ignore_keys,
            self._progress.began_at,
            learning_rate=self._learning_rate,
        )

    def _call(self, event: str) -> None:
        trainer = self._trainer
        trainer.control = getattr(trainer.callback_handler, event)(trainer.args, trainer.state, trainer.control)

    def _note_lead(self) -> None:
        """Take note of whether this task leads; transformers' own callbacks open bars and writers where it does."""
        trainer, leads = self._trainer, self.leads
        trainer.state.is_world_process_zero = trainer.state.is_local_process_zero = leads
        if leads and not self._led:
            handler = trainer.callback_handler
            everyone = handler.callbacks
            handler.callbacks = [one for one in everyone if is_of_library(one)]
            try:
                handler.call_event("on_train_begin", trainer.args, trainer.state, replace(trainer.control))
            finally:
                handler.callbacks = everyone
            remove_drafts(trainer.args.output_dir)
            self._save_again()
        self._led = leads

    def note_saving(self) -> None:
        """Take note that a checkpoint of the Trainer is due after the present step, in the task that leads."""
        self._progress.saved_at = self._run.num_steps_done

    def _save_again(self) -> None:
        """Write the checkpoint of the present step if the one that led before was lost while it did."""
        trainer, step = self._trainer, self._run.num_steps_done
        if self._progress.saved_at == step and not os.path.isdir(checkpoint_folder(trainer.args.output_dir, step)):
            trainer._save_checkpoint(self._model, None)

    # -- the end --------------------------------------------------------------------------------------------------

    def _finalize(self) -> None:
        """Log, load the best model if that is asked for, and call `on_train_end`; in the leader before it saves."""
        if self._output is None:
            trainer = self._trainer
            self._note_lead()
            num_samples = self._run.plan.num_used(self._max_steps)
            self._output = trainer._finalize_training(None, num_samples, self._progress.began_at)
            if self.leads:
                remove_drafts(trainer.args.output_dir)

    def _save(self, saving: Saving) -> None:
        """Save the trained model as transformers does, beside Pliant's own."""
        if saving.final:
            self._trainer.save_model(str(saving.folder), _internal_call=True)


class _Pulse(TrainerCallback):  # type: ignore[misc]  # transformers is not read by mypy
    """Says that an evaluation goes on."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def on_prediction_step(self, *_args: Any, **_kwargs: Any) -> None:
        self._run.note_work()


def max_steps(args: Any, steps_per_epoch: int) -> int:
    """Return the optimizer steps of a whole training: `max_steps`, or those of `num_train_epochs`, which may be 0.5."""
    return int(args.max_steps) if args.max_steps > 0 else math.ceil(args.num_train_epochs * steps_per_epoch)


def _begin_state(trainer: Any, max_steps: int, num_epochs: int, data: TrainData) -> None:
    """Set what the Trainer's own loop sets before it begins."""
    trainer.accelerator.free_memory()
    trainer._init_training_state(max_steps, data.steps_per_epoch, num_epochs, None, None)
    trainer._tr_loss = torch.tensor(0.0, device=trainer.args.device)
    trainer._total_loss_scalar = 0.0
    trainer._globalstep_last_logged = trainer._initial_global_step = trainer._initial_num_input_tokens_seen = 0
    trainer.current_gradient_accumulation_steps = 1
    """The parts of a global batch are weighed, not divided."""


def _prepare_model(trainer: Any, max_steps: int) -> torch.nn.Module:
    """Make optimizer and scheduler, and return the model with its autocast and compilation."""
    if trainer._created_lr_scheduler:
        trainer.lr_scheduler, trainer._created_lr_scheduler = None, False
    trainer.create_optimizer_and_scheduler(num_training_steps=max_steps)
    model: torch.nn.Module = trainer.accelerator.prepare(trainer.model)
    trainer.model_wrapped = model
    for name in ("model", "optimizer", "lr_scheduler"):
        setattr(trainer.callback_handler, name, getattr(trainer, name))
    return model


@contextmanager
def _own_random(seed: int) -> Iterator[None]:
    """Draw other random numbers inside the `with` block, the same ones in every task; a forward pass goes on as if
    none had been drawn."""
    cpu, cuda = torch.get_rng_state(), None
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        cuda = torch.cuda.get_rng_state()
        torch.cuda.manual_seed(seed)
    seed_loading(seed)
    try:
        yield
    finally:
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda)
