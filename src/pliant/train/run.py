"""The user's side of a training: `Run`, at most five changed lines against a plain loop.

    run = Run(model, optimizer, train_set, batch_size=64)
    for epoch in run.epochs(10):
        for x, y in run:
            run.step(loss_function(model(x), y))

`batch_size` is the global batch, as in the plain loop; it does not change with the number of tasks. Every iteration
gets one part of it (the samples of one virtual worker); when this task's parts are through, `step` reduces, steps and
commits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pliant.core.link import EpochFinished, Finished, Ready
from pliant.train import ambient
from pliant.train.audit import Audit
from pliant.train.checks import check, trained
from pliant.train.collectives import Rendezvous
from pliant.train.data import Collate, Samples
from pliant.train.engine import NUM_PLEDGE_SLOTS, Engine, Shared, Stateful
from pliant.train.errors import TrainingError
from pliant.train.process import reseed
from pliant.train.reducer import Reducer
from pliant.train.report import Reporter
from pliant.train.results import Results, Saving
from pliant.train.seeds import mix
from pliant.train.sharding import batch, chunks, num_steps
from pliant.train.tally import NUM_ELEMENTS, Tally


@dataclass(slots=True)
class _Chunk:
    """The part of the global batch that the user's loop is working on."""

    weight: float
    num_samples: int
    last: bool
    trained: bool = False


class Run:
    """A training whose number of workers may change between any two steps.

    Args:
        model: its parameters that require a gradient are trained; the same in every task after the first step.
        optimizer: steps once per global batch, on the mean gradient over it.
        dataset: map-style; every sample is used exactly once an epoch.
        batch_size: samples per optimizer step, over all workers together.
        virtual_workers: V, parts that a global batch is cut into; at most V tasks can work. Default: the job's.
        seed: of the order of samples and of the random numbers inside a step.
        shuffle: a new order every epoch (from `seed`); False keeps the data set's.
        collate_fn: as for torch's DataLoader.
        num_threads: threads that fetch samples side by side.
        checkpoint_freq: epochs between checkpoints; 0 saves only when all tasks leave. Default: the job's.
        state: more objects with `state_dict` and `load_state_dict` that must be the same in every task.
        save: called on the leader after every checkpoint by epochs and at the end, to save more than `model.pt`.

    Raises:
        TrainingError: these arguments cannot be trained; the message says what to change.
    """

    def __init__(  # noqa: PLR0913 (keywords of a public call, each with its own default)
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        dataset: Any,
        *,
        batch_size: int,
        virtual_workers: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        collate_fn: Collate | None = None,
        num_threads: int = 0,
        checkpoint_freq: int | None = None,
        state: Mapping[str, Stateful] | None = None,
        save: Callable[[Saving], None] | None = None,
    ) -> None:
        around = ambient.find()
        self._around = around
        self._samples = Samples(dataset, seed=seed, shuffle=shuffle, collate_fn=collate_fn, num_threads=num_threads)
        self._seed = seed
        self.batch_size = batch_size
        self.virtual_workers = virtual_workers or around.virtual_workers or 1
        check(
            model,
            optimizer,
            num_samples=len(self._samples),
            batch_size=batch_size,
            virtual_workers=self.virtual_workers,
        )
        self.steps_per_epoch = num_steps(len(self._samples), batch_size)
        self._tally = Tally()
        self._chunk: _Chunk | None = None
        self._num_epochs: int | None = None
        self._finished = False
        self._rendezvous: Rendezvous | None = None  # listens as long as this lives
        identity = {"seed": seed, "num_samples": len(self._samples), "batch_size": batch_size}
        shared = Shared(model=model, optimizer=optimizer, extras=dict(state or {}), last={}, identity=identity)
        self._results = Results(
            folder=around.result_dir,
            shared=shared,
            send=around.session.send,
            clock=around.clock,
            freq=around.checkpoint_freq if checkpoint_freq is None else checkpoint_freq,
            save=save,
        )
        audit_path = around.result_dir / "audit" / f"{around.session.task_id}.jsonl" if around.result_dir else None
        self._engine = Engine(
            session=around.session,
            shared=shared,
            reducer=Reducer(trained(model), num_control=NUM_PLEDGE_SLOTS + NUM_ELEMENTS),
            audit=Audit(audit_path if around.audit else None),
            clock=around.clock,
            checkpoint_folder=self._results.checkpoints,
            after_commit=self._committed,
            before_leaving=self._save_before_leaving,
        )
        self._reporter: Reporter | None = None
        around.cleanups.append(self._close)

    # -- the loop -------------------------------------------------------------------------------------------------

    def epochs(self, num_epochs: int) -> Iterator[int]:
        """Yield the index of every epoch that is left, from the one that the job is in.

        Returns when the last is over and the model is saved.
        """
        if self._num_epochs is not None:
            raise TrainingError("epochs() was called before; one Run is one training")
        self._num_epochs = num_epochs
        self._around.closers.append(self._finish)
        engine = self._engine
        self._reporter = Reporter(
            send=self._around.session.send,
            now=self._around.now,
            num_epochs=num_epochs,
            num_steps=num_epochs * self.steps_per_epoch,
            samples_of=self._samples_of,
        )
        self._join()
        while engine.epoch < num_epochs:
            yield engine.epoch
            if engine.committed < (engine.epoch + 1) * self.steps_per_epoch:
                raise TrainingError(
                    f"epoch {engine.epoch} was left after step {self.step_in_epoch} of {self.steps_per_epoch}; iterate "
                    f"the run to its end in every epoch (break out of the loop over epochs to stop early)"
                )
            engine.epoch += 1
        self._finish()

    def _join(self) -> None:
        session = self._around.session
        self._rendezvous = rendezvous = Rendezvous(session.host)
        session.ready(
            Ready(
                host=rendezvous.host,
                port=rendezvous.port,
                virtual_workers=self.virtual_workers,
                num_epochs=self._num_epochs or 0,
            )
        )
        self._engine.enter()

    def __iter__(self) -> Iterator[Any]:
        """Yield this task's batches of the present epoch, from the step that comes next."""
        if self._num_epochs is None:
            raise TrainingError("iterate the run inside `for epoch in run.epochs(num_epochs):`")
        engine = self._engine
        engine.settle()
        end = (engine.epoch + 1) * self.steps_per_epoch
        while engine.committed < end:
            step, group = engine.committed, engine.session.group
            whole = batch(len(self._samples), self.batch_size, step % self.steps_per_epoch)
            todo = chunks(whole, virtual_workers=self.virtual_workers, size=group.size, rank=group.rank)
            engine.begin()
            if not todo:
                engine.commit()
            for place, (virtual_worker, positions) in enumerate(todo):
                indices = self._samples.indices(engine.epoch, positions)
                engine.samples.extend(indices)
                loaded = self._samples.load(indices)
                self._chunk = _Chunk(len(indices) / len(whole), len(indices), place == len(todo) - 1)
                engine.reducer.release()
                reseed(mix(self._seed, step, virtual_worker))
                yield loaded
                if not self._chunk.trained:
                    raise TrainingError("a batch was not trained on: call run.step(loss) once for every batch")

    def step(self, loss: torch.Tensor, **metrics: float | torch.Tensor) -> None:
        """Compute the gradients of a batch's mean loss; with the last batch of this task's share, step the optimizer.

        Args:
            loss: mean over the samples of the batch, shape ().
            metrics: means over the samples of the batch; they become means over the global batch in `last`.
        """
        chunk = self._chunk_to_train()
        self._engine.reducer.attach()
        (loss if chunk.weight == 1.0 else loss * chunk.weight).backward()  # type: ignore[no-untyped-call]
        self._engine.reducer.release()
        self._account(chunk, loss, metrics)

    def take(self, loss: float | torch.Tensor, **metrics: float | torch.Tensor) -> None:
        """Like `step`, for a loss whose `backward` was called already: its gradients are in the parameters."""
        chunk = self._chunk_to_train()
        self._engine.reducer.take(chunk.weight)
        self._account(chunk, loss, metrics)

    def _chunk_to_train(self) -> _Chunk:
        chunk = self._chunk
        if chunk is None or chunk.trained:
            raise TrainingError("step was called twice for one batch, or outside of the loop over the run's batches")
        chunk.trained = True
        return chunk

    def _account(self, chunk: _Chunk, loss: float | torch.Tensor, metrics: Mapping[str, float | torch.Tensor]) -> None:
        self._tally.add(self._engine.control, loss, metrics, chunk.num_samples)
        if chunk.last:
            self._engine.commit()

    def _committed(self, sums: Sequence[float]) -> None:
        engine = self._engine
        values = self._tally.means(sums)
        engine.shared.last.update(values)
        assert self._reporter is not None
        epoch_ended = engine.committed % self.steps_per_epoch == 0
        epochs_done = engine.epoch + 1 if epoch_ended else engine.epoch
        self._reporter.commit(
            values,
            step=engine.committed,
            epoch=epochs_done,
            generation=engine.session.group.number,
            leads=self.leads,
        )
        if epoch_ended and self.leads:
            self._end_epoch()

    def _end_epoch(self) -> None:
        engine = self._engine
        assert self._reporter is not None
        self._reporter.flush(step=engine.committed, epoch=engine.epoch + 1, generation=engine.session.group.number)
        engine.session.send(
            EpochFinished(
                epoch=engine.epoch,
                step=engine.committed,
                samples=len(self._samples),
                metrics=dict(self._reporter.latest),
            )
        )
        self._results.epoch_ended(step=engine.committed, epoch=engine.epoch)

    def log(self, **values: float) -> None:
        """Report values of the whole training, such as a test accuracy; the leader's are kept as series of the job."""
        if self._reporter is None:
            raise TrainingError("log() before epochs(): there is no training to report on yet")
        engine = self._engine
        self._reporter.log(
            {name: float(value) for name, value in values.items()},
            step=engine.committed,
            epoch=engine.committed // self.steps_per_epoch,
            generation=engine.session.group.number,
            leads=self.leads,
        )

    def _finish(self) -> None:
        """Save the model, on the leader, while the others wait, so that another one can do it if the leader is lost."""
        if self._finished:
            return
        engine = self._engine
        while True:
            if self.leads:
                self._results.finish(step=engine.committed, epoch=engine.committed // self.steps_per_epoch)
            if engine.meet():
                break
        self._finished = True
        engine.session.send(Finished(step=engine.committed))

    def _close(self) -> None:
        self._results.close()
        self._engine.audit.close()
        self._samples.close()
        self._rendezvous = None

    def _save_before_leaving(self) -> bool:
        return self._results.checkpoint_now(step=self._engine.committed, epoch=self._engine.epoch)

    def _samples_of(self, steps: int) -> int:
        epochs, rest = divmod(steps, self.steps_per_epoch)
        return epochs * len(self._samples) + min(rest * self.batch_size, len(self._samples))

    # -- what a script may want to know ---------------------------------------------------------------------------

    @property
    def last(self) -> Mapping[str, float]:
        """Loss and metrics, means over the newest committed global batch; empty before the first."""
        return self._engine.shared.last

    @property
    def leads(self) -> bool:
        """I am the one task that saves and reports."""
        return self._engine.session.group.rank == 0

    @property
    def rank(self) -> int:
        return self._engine.session.group.rank

    @property
    def size(self) -> int:
        """Tasks that train now."""
        return self._engine.session.group.size

    @property
    def epoch(self) -> int:
        return self._engine.epoch

    @property
    def num_steps_done(self) -> int:
        """Optimizer steps committed since the start of the job."""
        return self._engine.committed

    @property
    def step_in_epoch(self) -> int:
        return self._engine.committed - self._engine.epoch * self.steps_per_epoch

    @property
    def device(self) -> torch.device:
        """Where the trained parameters are."""
        return trained(self._engine.shared.model)[0].device

    @property
    def result_dir(self) -> Path | None:
        return self._around.result_dir

    @property
    def log_dir(self) -> Path | None:
        return self._around.log_dir
