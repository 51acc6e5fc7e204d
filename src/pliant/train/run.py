"""The user's side of a training: `Run`, at most five changed lines against a plain loop.

    run = Run(model, optimizer, train_set, batch_size=64)
    for epoch in run.epochs(10):
        for x, y in run:
            run.step(loss_function(model(x), y))

`batch_size` is the global batch, as in the plain loop; it does not change with the number of tasks. Every iteration
gets one part of it; when this task's parts are through, `step` reduces, steps and commits.

`Run` holds the arguments and passes calls on; `assemble` makes the parts of the training from the arguments.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pliant.core.job import MAX_VIRTUAL_WORKERS, Mode
from pliant.core.job_params import as_param, bounded
from pliant.core.link import Note
from pliant.train.balance import SpeedBalance
from pliant.train.carried import CarriedState
from pliant.train.checks import InitialParameters, check_trainable, trained_parameters, unwrap
from pliant.train.context import TrainContext, find_context
from pliant.train.data.audit import SampleAudit
from pliant.train.data.feed import open_feed
from pliant.train.data.fetcher import Collate
from pliant.train.data.loading import LoadSettings
from pliant.train.data.order import OrderFunction
from pliant.train.data.sharding import ShardingPlan
from pliant.train.determinism import NondeterminismListener, fingerprint, use_deterministic_kernels
from pliant.train.engine import NUM_PLEDGE_ELEMENTS, Engine
from pliant.train.errors import TrainingError
from pliant.train.evaluate import Measure, evaluation_mode, make_evaluation
from pliant.train.handover import hand_over
from pliant.train.histograms import HistogramLog
from pliant.train.loop import Loop
from pliant.train.optimize import Optimizers, Stepper, name_optimizers
from pliant.train.reduction import Reduction
from pliant.train.seeds import mix
from pliant.train.state.claim import TrainingClaim
from pliant.train.state.copies import MachineCopies
from pliant.train.state.results import Results, Saving
from pliant.train.state.shared import SharedState, Stateful, load_weights
from pliant.train.state_copies import StateCopies
from pliant.train.sum.metrics import NUM_ELEMENTS
from pliant.train.sum.reducer import Reducer
from pliant.train.sum.running import RunningBuffers
from pliant.train.trainer import Trainer


@dataclass(eq=False)
class Run:
    """A training whose number of workers may change between any two steps. What is left out is filled in by the job.

    Raises:
        TrainingError: these arguments cannot be trained; the message says what to change.
    """

    model: torch.nn.Module
    """Its parameters that require a gradient are trained; the same in every task after the first step."""
    optimizers: Optimizers
    """One, a list or a dict; all step once per global batch, on the gradient of its mean loss (or its sum: `step`)."""
    data: Any
    """Map-style data set, `IterableDataset`, or a `DataLoader`, whose settings are taken over. Every sample is used
    exactly once an epoch."""
    _: KW_ONLY
    batch_size: int | None = None
    """Samples per optimizer step, over all workers together. Default: the DataLoader's."""
    mode: Mode | None = None
    """"exact": bitwise the same result for any number of tasks; "fast": every task computes its share in one piece.
    Default: the job's, and "exact"."""
    virtual_workers: int | None = None
    """V, parts that a global batch is cut into; at most V tasks can work. Default: the job's, or `batch_size` if that
    is smaller. A job that asks for no number has as many as its maximum and `batch_size` make cheap; without a server
    the maximum is one task. One part gives what a plain loop gives."""
    accumulate: int = 1
    """Pieces that every part is computed in, one after the other, to save memory."""
    seed: int = 0
    """Of the order of samples and of the random numbers inside a step."""
    shuffle: bool | None = None
    """A new order every epoch (from `seed`); False keeps the data set's. Default: what a DataLoader says, or True."""
    order: OrderFunction | None = None
    """Called with an epoch, returns the sample indices in their order, instead of `shuffle`."""
    collate_fn: Collate | None = None
    """This and the next four are as for torch's DataLoader."""
    num_workers: int = 0
    prefetch_factor: int | None = None
    pin_memory: bool = False
    worker_init_fn: Callable[[int], None] | None = None
    num_samples: int | None = None
    """Samples of an epoch, for an `IterableDataset` without a length."""
    schedulers: Sequence[Any] = ()
    """Learning-rate schedulers that step once per optimizer step. (Those that step once an epoch go into `state`, and
    step in the script.)"""
    scaler: torch.amp.GradScaler | None = None
    """For float16 autocast: `step` scales the loss, unscales the summed gradient, and updates the scale."""
    clip_norm: float | None = None
    """Clip the gradient of the global batch to this norm."""
    clip_value: float | None = None
    """Clip the elements of the gradient of the global batch."""
    before_step: Callable[[], object] | None = None
    """Called with the gradient of the global batch in the parameters, clipped, before the optimizers step."""
    after_step: Callable[[], object] | None = None
    """Called after every optimizer step in every task, to update averages of the weights and the like."""
    after_commit: Callable[[], object] | None = None
    """Called after that in every task: `last` and `num_steps_done` are of this step, the gradients are gone. What it
    does to objects in `state` is a part of this step's checkpoint, and of what a task gets that joins after it."""
    checkpoint_freq: int | None = None
    """Epochs between checkpoints; 0 saves only by time and when all tasks leave. Default: the job's."""
    histograms_every: int | None = None
    """Log histograms of all weights and gradients every so many steps. Default: the job's, and none."""
    state: Mapping[str, Stateful] | None = None
    """More objects with `state_dict` and `load_state_dict` that must be the same in every task."""
    save: Callable[[Saving], None] | None = None
    """Called on the leader after every checkpoint by epochs and at the end, to save more than `model.pt`."""

    def __post_init__(self) -> None:
        hand_over(self.model, self.data)
        self._context = find_context()
        self._trainer = assemble(self, self._context)
        self._engine = self._trainer.engine
        self.plan = self._engine.plan
        """Who computes what at which step."""
        self.batch_size = self.plan.batch_size
        self.virtual_workers = self.plan.virtual_workers

    # -- the loop -------------------------------------------------------------------------------------------------

    def epochs(self, num_epochs: int) -> Iterator[int]:
        """Yield the index of every epoch that is left, from the one that the job is in.

        Returns when the last is over and the model is saved.
        """
        return self._trainer.epochs(num_epochs)

    def __iter__(self) -> Iterator[Any]:
        """Yield this task's parts of the global batches of the present epoch, from the step that comes next."""
        return self._trainer.batches()

    def enumerate(self) -> Iterator[tuple[int, Any]]:
        """Yield the same parts, each with the index of its optimizer step in the epoch, below `steps_per_epoch`.

        `enumerate(run)` would count the parts of this task instead, of which a step has one or several.
        """
        for part in self._trainer.batches():
            yield self._trainer.step_in_epoch, part

    def step(
        self,
        loss: torch.Tensor,
        *,
        reduction: Reduction | None = None,
        weight: float | None = None,
        **metrics: float | torch.Tensor,
    ) -> bool:
        """Compute the gradients of a batch's loss; with the last batch of this task's share, step the optimizers.

        Args:
            loss: mean over the samples of the batch, shape (); or their sum, if `reduction` says so.
            reduction: "mean": the gradient is that of the mean over the global batch; "sum": of the sum over it, which
                is then the loss in `last`. If nothing is said it is taken for a mean, and a warning tells if it looks
                like a sum.
            weight: how much the mean of this batch counts, if not by its samples: of a mean over tokens, their number.
                The gradient and the loss in `last` are then those of the mean over all tokens of the global batch.
                Give one for every batch; 0 leaves a batch out.
            metrics: means over the samples of the batch; they become means over the global batch in `last`.

        Returns:
            Whether the optimizers have stepped; then `last` is of this step. True once a step in every task that has a
            part of it.

        Raises:
            TrainingError: the reduction is another word, the weight no amount, or the call is out of place.
        """
        return self._trainer.loop.step(loss, metrics, reduction, weight)

    def take(
        self,
        loss: float | torch.Tensor,
        *,
        reduction: Reduction | None = None,
        weight: float | None = None,
        **metrics: float | torch.Tensor,
    ) -> bool:
        """Like `step`, for a loss whose `backward` was called already: its gradients are in the parameters.

        With a scaler, backward is called on `run.scale(loss)`.
        """
        return self._trainer.loop.take(loss, metrics, reduction, weight)

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss to call backward on before `take`; it differs from `loss` only with a scaler."""
        return self._engine.stepper.scale(loss)

    # -- beside the steps -----------------------------------------------------------------------------------------

    def evaluate(
        self, dataset: Any, measure: Measure, *, batch_size: int | None = None, collate_fn: Collate | None = None
    ) -> dict[str, float]:
        """Return means over a data set, computed by all tasks together, the same bits for any number of them.

        Call it in every task, in the loop over epochs, before or after the loop over batches. When the training is over
        every task computes it for itself.

        Args:
            dataset: map-style, or a DataLoader of one.
            measure: takes a batch, returns means over its samples by name; called in evaluation mode, no gradients.
            batch_size: samples per call. Default: the DataLoader's, or those of one virtual worker's part.

        Raises:
            TrainingError: it was called elsewhere, or the measure gives no numbers.
        """
        self._trainer.check_together()
        evaluation = make_evaluation(
            dataset,
            measure,
            batch_size=batch_size,
            collate=collate_fn,
            default_batch_size=max(1, self.plan.batch_size // self.plan.virtual_workers),
            seed=mix(self.seed, self._engine.committed),
        )
        with evaluation_mode(self._engine.state.model):
            return self._trainer.evaluate(evaluation)

    def log(self, **values: float) -> None:
        """Report values of the whole training, such as a test accuracy; the leader's are kept as series of the job."""
        self._trainer.log({name: float(value) for name, value in values.items()})

    def log_histogram(self, name: str, values: Any, step: int | None = None) -> None:
        """Report how values lie, such as activations: a histogram of 64 bins; the leader's are kept with the job.

        Args:
            name: such as `activations/fc1`.
            values: a tensor of any shape, an array or a list of numbers; NaN and infinite ones are counted apart.
            step: that it is shown at. Default: the optimizer steps that are done.

        Raises:
            TrainingError: a name or values that cannot be, or the training has not begun.
        """
        self._trainer.log_histogram(name, values, step)

    def log_params(self, params: Mapping[str, object] | Namespace) -> None:
        """Keep hyperparameters with the job, such as `vars(args)`; later ones take the place of those of their names.

        Call it in every task, before or after the training has begun; the leader's are kept. What is no number, text,
        truth value or None is kept as text.
        """
        given = vars(params) if isinstance(params, Namespace) else params
        self._trainer.log_params(bounded({str(name): as_param(value) for name, value in given.items()}))

    def note_work(self) -> None:
        """Tell that the script works on something else than a step, so that the training does not count as stalled."""
        self._trainer.note_work()

    def finish(self, prepare: Callable[[], object] | None = None) -> None:
        """End the training where it is, and save the model. Call it in every task, after the same step.

        Leaving the loop over epochs does the same when the script has ended; this does it now.

        Args:
            prepare: called in the task that saves the model, before it does.
        """
        self._trainer.finish(prepare)

    def when_saved(self, act: Callable[[], None]) -> None:
        """Call `act` on every task when the model is saved, before the server is told that the training is finished."""
        self._trainer.when_saved.append(act)

    def digest(self) -> str:
        """Return the SHA-256 of parameters, buffers and optimizer state: exact mode keeps it equal for any history."""
        return self._engine.state.digest()

    # -- what a script may want to know ---------------------------------------------------------------------------

    @property
    def steps_per_epoch(self) -> int:
        return self.plan.steps_per_epoch

    @property
    def claim(self) -> str:
        """What the results are worth: "exact", "statistical" or "fast"."""
        return self._engine.state.claim.level

    @property
    def last(self) -> Mapping[str, float]:
        """Loss and metrics, means over the newest committed global batch; empty before the first."""
        return self._engine.state.last

    @property
    def leads(self) -> bool:
        """This is the one task that saves and reports."""
        return self._trainer.leads

    @property
    def rank(self) -> int:
        return self._engine.membership.group.rank

    @property
    def size(self) -> int:
        """Tasks that train now."""
        return self._engine.membership.group.size

    @property
    def epoch(self) -> int:
        return self._engine.epoch

    @property
    def num_steps_done(self) -> int:
        """Optimizer steps committed since the start of the job."""
        return self._engine.committed

    @property
    def step_in_epoch(self) -> int:
        return self._trainer.step_in_epoch

    @property
    def device(self) -> torch.device:
        """Where the trained parameters are."""
        return self._engine.device

    @property
    def result_dir(self) -> Path | None:
        return self._context.result_dir

    @property
    def log_dir(self) -> Path | None:
        return self._context.log_dir


def assemble(run: Run, context: TrainContext) -> Trainer:
    """Check the arguments of a run and build everything that its training is made of.

    Raises:
        TrainingError: these arguments cannot be trained; the message says what to change.
    """
    model, optimizers = unwrap(run.model), name_optimizers(run.optimizers)
    feed = open_feed(_load_settings(run), run.seed)
    context.cleanups.append(feed.close)
    plan = _plan(run, context, num_samples=feed.num_samples, loader_batch_size=feed.batch_size)
    check_trainable(model, optimizers, plan)
    initial = InitialParameters(model)
    feed.bind(plan)
    stepper = _stepper(run, model, optimizers)
    state = SharedState(
        model=model,
        optimizers=optimizers,
        extras={**stepper.extras(), **(run.state or {})},
        identity={"seed": run.seed, "num_samples": plan.num_samples, "batch_size": plan.batch_size},
        claim=_claim(plan, context, stepper.parameters[0].device),
    )
    if context.weights is not None:
        load_weights(model, context.weights)
    results = _results(run, context, state)
    running = RunningBuffers(model)
    balance = _balance(context, plan)
    num_control = NUM_PLEDGE_ELEMENTS + NUM_ELEMENTS + balance.num_elements
    engine = Engine(
        membership=context.membership,
        state=state,
        plan=plan,
        stepper=stepper,
        reducer=Reducer(stepper.parameters, num_control=num_control, running=running, are_late=plan.has_whole_parts),
        running=running,
        audit=_audit(context),
        copies=StateCopies(state, stepper.parameters, context.clock),
        clock=context.clock,
        find_checkpoint=results.newest,
        save=results.checkpoint_now,
        balance=balance,
    )
    context.cleanups += [results.close, engine.audit.close, engine.reducer.close]
    carried = CarriedState(model, is_enabled=plan.is_cut)
    loop = Loop(engine=engine, feed=feed, seed=run.seed, warn=partial(_warn, context), carried=carried)
    return Trainer(
        context=context,
        engine=engine,
        loop=loop,
        results=results,
        initial=initial,
        after_commit=run.after_commit,
        histograms=_histograms(run, context, model, plan),
    )


def _histograms(run: Run, context: TrainContext, model: torch.nn.Module, plan: ShardingPlan) -> HistogramLog:
    every = context.histograms_every if run.histograms_every is None else run.histograms_every
    if every is not None and every < 1:
        raise TrainingError(f"histograms_every is {every}; give a number of steps, at least 1, or None")
    return HistogramLog(
        send=context.membership.send,
        now=context.now,
        model=model,
        steps_per_epoch=plan.steps_per_epoch,
        every=None if context.standalone else every,
    )


def _warn(context: TrainContext, text: str) -> None:
    """Tell the person: in the terminal or the task's log, and as an event of the job."""
    print(f"pliant: {text}", file=sys.stderr, flush=True)
    context.membership.send(Note(message=text))


def _load_settings(run: Run) -> LoadSettings:
    return LoadSettings(
        data=run.data,
        batch_size=run.batch_size,
        shuffle=run.shuffle,
        order=run.order,
        num_samples=run.num_samples,
        collate_fn=run.collate_fn,
        num_workers=run.num_workers,
        prefetch_factor=run.prefetch_factor,
        pin_memory=run.pin_memory,
        worker_init_fn=run.worker_init_fn,
    )


def _plan(run: Run, context: TrainContext, *, num_samples: int, loader_batch_size: int | None) -> ShardingPlan:
    batch_size = loader_batch_size if run.batch_size is None else run.batch_size
    if batch_size is None:
        raise TrainingError("give batch_size: the samples per optimizer step, over all workers together")
    whole_shares = (run.mode or context.mode) == "fast"
    is_asked = (run.virtual_workers or context.virtual_workers) is not None
    return ShardingPlan(
        num_samples=num_samples,
        batch_size=batch_size,
        virtual_workers=run.virtual_workers or context.parts_of(batch_size),
        whole_shares=whole_shares,
        accumulate=run.accumulate,
        # shares that depend on the size cost nothing where they are many: any size can have them
        max_shares=max(1, min(batch_size, MAX_VIRTUAL_WORKERS)) if whole_shares and not is_asked else None,
    )


def _balance(context: TrainContext, plan: ShardingPlan) -> SpeedBalance:
    is_enabled = context.balance == "speed" and not plan.whole_shares
    if context.balance == "speed" and plan.whole_shares:
        _warn(context, "the script trains in fast mode, which has no virtual workers: its tasks share a batch evenly")
    return SpeedBalance(clock=context.clock, virtual_workers=plan.virtual_workers, is_enabled=is_enabled)


def _stepper(run: Run, model: torch.nn.Module, optimizers: Mapping[str, torch.optim.Optimizer]) -> Stepper:
    return Stepper(
        parameters=trained_parameters(model),
        optimizers=optimizers,
        schedulers=run.schedulers,
        scaler=run.scaler,
        clip_norm=run.clip_norm,
        clip_value=run.clip_value,
        before_step=run.before_step,
        after_step=run.after_step,
    )


def _claim(plan: ShardingPlan, context: TrainContext, device: torch.device) -> TrainingClaim:
    if plan.whole_shares:
        return TrainingClaim("fast", fingerprint(device))
    use_deterministic_kernels()
    claim = TrainingClaim("exact", f"{fingerprint(device)}; {plan.virtual_workers} virtual workers")
    context.cleanups.append(NondeterminismListener(claim).close)
    return claim


def _results(run: Run, context: TrainContext, state: SharedState) -> Results:
    return Results(
        folder=context.result_dir,
        state=state,
        send=context.membership.send,
        clock=context.clock,
        freq=context.checkpoint_freq if run.checkpoint_freq is None else run.checkpoint_freq,
        save=run.save,
        every_s=context.checkpoint_every_s,
        memory_folder=context.memory_dir if context.checkpoint_every_s else None,
        resume_from=context.resume_from,
        own_numbers=context.own_numbers,
        keep_every=context.keep_every,
        copies=_copies(context),
        kept_after_end=not context.standalone,
    )


def _copies(context: TrainContext) -> MachineCopies | None:
    if context.result_dir is None or not context.has_copies:
        return None
    return MachineCopies(folder=context.result_dir / "checkpoint")


def _audit(context: TrainContext) -> SampleAudit:
    path = None
    if context.audit and context.result_dir is not None:
        path = context.result_dir / "audit" / f"{context.membership.task_id}.jsonl"
    return SampleAudit(path, note=lambda text: context.membership.send(Note(message=text)))
