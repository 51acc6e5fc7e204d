"""The user's side of a training: `Run`, at most five changed lines against a plain loop.

    run = Run(model, optimizer, train_set, batch_size=64)
    for epoch in run.epochs(10):
        for x, y in run:
            run.step(loss_function(model(x), y))

`batch_size` is the global batch, as in the plain loop; it does not change with the number of tasks. Every iteration
gets one part of it; when this task's parts are through, `step` reduces, steps and commits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pliant.core.link import Finished, Ready
from pliant.train import context
from pliant.train.assemble import assemble
from pliant.train.data.feed import Collate
from pliant.train.errors import TrainingError
from pliant.train.evaluate import ALONE, Measure, evaluating, evaluation_of
from pliant.train.group.collectives import Rendezvous
from pliant.train.interrupt import save_first
from pliant.train.options import Options
from pliant.train.report import Reporter
from pliant.train.seeds import mix


@dataclass(eq=False)
class Run(Options):
    """A training whose number of workers may change between any two steps.

    Its arguments are the fields of `Options`.

    Raises:
        TrainingError: these arguments cannot be trained; the message says what to change.
    """

    def __post_init__(self) -> None:
        self._around = context.find()
        assembly = assemble(self, self._around, self._committed)
        self._loop, self._results, self._unchanged = assembly.loop, assembly.results, assembly.unchanged
        self._engine = self._loop.engine
        self.plan = self._engine.plan
        """Who computes what at which step."""
        self.batch_size = self.plan.batch_size
        self.virtual_workers = self.plan.virtual_workers
        self._iterated: int | None = None
        self._num_epochs: int | None = None
        self._finished = False
        self._when_saved: list[Callable[[], None]] = []
        self._rendezvous: Rendezvous | None = None
        self._reporter: Reporter | None = None
        self._around.cleanups.append(self._close)

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
            plan=self.plan,
            standing=engine.shared.standing,
            num_epochs=num_epochs,
        )
        self._loop.feed.stop_at(num_epochs * self.steps_per_epoch)
        if self._around.alone:
            self._around.cleanups.append(save_first(self._results.interrupt))
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
        session.device = self.device
        if not self._around.alone:  # else nobody comes
            self._rendezvous = rendezvous = Rendezvous(session.host)
            session.ready(
                Ready(
                    host=rendezvous.host,
                    port=rendezvous.port,
                    virtual_workers=self.plan.virtual_workers,
                    num_epochs=self._num_epochs or 0,
                )
            )
        self._engine.enter()

    def __iter__(self) -> Iterator[Any]:
        """Yield this task's parts of the global batches of the present epoch, from the step that comes next."""
        if self._num_epochs is None:
            raise TrainingError("iterate the run inside `for epoch in run.epochs(num_epochs):`")
        engine = self._engine
        self._unchanged.check()
        engine.settle()
        self._iterated = engine.epoch
        end = (engine.epoch + 1) * self.steps_per_epoch
        while engine.committed < end:
            yield from self._loop.parts()

    def step(self, loss: torch.Tensor, **metrics: float | torch.Tensor) -> None:
        """Compute the gradients of a batch's mean loss; with the last batch of this task's share, step the optimizers.

        Args:
            loss: mean over the samples of the batch, shape ().
            metrics: means over the samples of the batch; they become means over the global batch in `last`.
        """
        self._loop.step(loss, metrics)

    def take(self, loss: float | torch.Tensor, **metrics: float | torch.Tensor) -> None:
        """Like `step`, for a loss whose `backward` was called already: its gradients are in the parameters.

        With a scaler, backward is called on `run.scale(loss)`.
        """
        self._loop.take(loss, metrics)

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss to call backward on before `take`; it differs from `loss` only with a scaler."""
        return self._engine.stepper.scale(loss)

    def _committed(self, sums: Sequence[float]) -> None:
        engine = self._engine
        values = self._loop.tally.means(sums)
        engine.shared.last.update(values)
        for name in engine.running.strays():
            engine.shared.standing.downgrade(f"the buffer {name} changes in a forward pass and is too large to travel")
        assert self._reporter is not None
        self._reporter.commit(values, step=engine.committed, generation=engine.session.group.number, leads=self.leads)
        if self.leads:
            if engine.committed % self.steps_per_epoch == 0:
                self._results.epoch_ended(step=engine.committed, epoch=engine.epoch)
            self._results.step_committed(step=engine.committed, epoch=engine.epoch)

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
        engine = self._engine
        if self._num_epochs is None or self._loop.inside:
            raise TrainingError(
                "evaluate() was called where tasks are not together; call it inside `for epoch in run.epochs(…)`, "
                "before or after the loop over the batches"
            )
        evaluation = evaluation_of(
            dataset,
            measure,
            batch_size=batch_size,
            collate=collate_fn,
            usual=max(1, self.plan.batch_size // self.plan.virtual_workers),
            seed=mix(self.seed, engine.committed),
        )
        with evaluating(engine.shared.model):
            if self._finished:
                return evaluation.run(ALONE, lost=lambda: False)
            return engine.evaluate(evaluation, after_steps=self._iterated == engine.epoch)

    def log(self, **values: float) -> None:
        """Report values of the whole training, such as a test accuracy; the leader's are kept as series of the job."""
        if self._reporter is None:
            raise TrainingError("log() before epochs(): there is no training to report on yet")
        engine = self._engine
        self._reporter.log(
            {name: float(value) for name, value in values.items()},
            step=engine.committed,
            generation=engine.session.group.number,
            leads=self.leads,
        )

    def when_saved(self, act: Callable[[], None]) -> None:
        """Call `act` on every task when the model is saved, before the server is told that the training is finished."""
        self._when_saved.append(act)

    def digest(self) -> str:
        """Return the SHA-256 of parameters, buffers and optimizer state: exact mode keeps it equal for any history."""
        return self._engine.shared.digest()

    def _finish(self) -> None:
        """Save the model, on the leader, while the others wait, so that another one can do it if the leader is lost."""
        if self._finished:
            return
        engine, digest = self._engine, ""
        while True:
            if self.leads:
                self._report_end()
                self._results.finish(step=engine.committed, epoch=engine.committed // self.steps_per_epoch)
                digest = self.digest()
                self._results.keep_digest(digest)
            if engine.meet():
                break
        self._finished = True
        self._close()
        assert self._reporter is not None
        progress = self._reporter.progress(engine.committed)
        digest = digest or self._results.kept_digest()
        for act in self._when_saved:
            act()
        engine.session.send(Finished(step=engine.committed, digest=digest, progress=progress))

    def _report_end(self) -> None:
        engine = self._engine
        assert self._reporter is not None
        self._reporter.end(engine.shared.last, step=engine.committed, generation=engine.session.group.number)

    def _close(self) -> None:
        if self._rendezvous is not None:
            self._rendezvous.close()

    # -- what a script may want to know ---------------------------------------------------------------------------

    @property
    def steps_per_epoch(self) -> int:
        return self.plan.steps_per_epoch

    @property
    def claim(self) -> str:
        """What the results are worth: "exact", "statistical" or "fast"."""
        return self._engine.shared.standing.claim

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
        return self._engine.reducer.parameters[0].device

    @property
    def result_dir(self) -> Path | None:
        return self._around.result_dir

    @property
    def log_dir(self) -> Path | None:
        return self._around.log_dir
