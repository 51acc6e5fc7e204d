"""Drives one task's training from its first epoch to the saved model: joins, hands out batches, reports, finishes.

The parts do the work (`Engine` commits steps, `Loop` plays a step, `Results` writes files, `Reporter` tells the
server); this file says in which order. Knows nothing of how the parts were made.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pliant.core.job_params import ParamValue
from pliant.core.link import Finished, FromTask, Params, Ready, Report
from pliant.tracking.journal import TrackedPoint
from pliant.train.checks import InitialParameters
from pliant.train.context import TrainContext
from pliant.train.data.sharding import Worker
from pliant.train.engine import Engine
from pliant.train.errors import TrainingError
from pliant.train.evaluate import GROUP_OF_ONE, Evaluation
from pliant.train.group.rendezvous import RendezvousServer
from pliant.train.histograms import HistogramLog
from pliant.train.interrupt import save_on_interrupt
from pliant.train.loop import Loop
from pliant.train.report import Reporter
from pliant.train.state.results import Results

_NICENESS: Final = 5
"""Of who touches memory for the next generation: a third of what a thread gets that computes."""


@dataclass(eq=False, slots=True, kw_only=True)
class Trainer:
    """One task's way through all epochs of a training."""

    context: TrainContext
    engine: Engine
    loop: Loop
    results: Results
    initial: InitialParameters
    histograms: HistogramLog
    when_saved: list[Callable[[], None]] = field(default_factory=list)
    """Called when the model is saved, before the server hears that the training is finished."""
    after_commit: Callable[[], object] | None = None
    """Called in every task after a commit, before a checkpoint is taken of it."""
    num_epochs: int | None = None
    """None before the training has begun."""
    _iterated: int | None = None
    """The epoch whose batches the script iterates, or has iterated last."""
    _is_finished: bool = False
    _rendezvous: RendezvousServer | None = None
    _reporter: Reporter | None = None
    _unsent_params: dict[str, ParamValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine.after_reduction = self._note_means
        self.engine.after_commit = self._note_commit
        self.engine.stepper.note_gradients = self._note_gradients
        self.engine.divisor = self.loop.metric_sums.divisor
        self.engine.before_departure = self._report_rest
        self.context.cleanups.append(self._close)

    @property
    def steps_per_epoch(self) -> int:
        return self.engine.plan.steps_per_epoch

    @property
    def leads(self) -> bool:
        """This is the one task that saves and reports."""
        return self.engine.membership.group.rank == 0

    @property
    def step_in_epoch(self) -> int:
        return self.engine.committed - self.engine.epoch * self.steps_per_epoch

    def epochs(self, num_epochs: int) -> Iterator[int]:
        """Join the training and yield the index of every epoch that is left; then save the model and return."""
        if self.num_epochs is not None:
            raise TrainingError("epochs() was called before; one Run is one training")
        self.num_epochs = num_epochs
        self.context.closers.append(self.finish)
        engine = self.engine
        self._reporter = Reporter(
            send=self._send,
            now=self.context.now,
            plan=engine.plan,
            claim=engine.state.claim,
            num_epochs=num_epochs,
            shares=lambda: engine.balance.shares,
            every=self.context.metrics_every,
        )
        self.loop.feed.stop_at(num_epochs * self.steps_per_epoch)
        if self.context.standalone:
            self.context.cleanups.append(save_on_interrupt(self.results.interrupt))
        self._join()
        self._lead()
        while engine.epoch < num_epochs:
            yield engine.epoch
            if engine.committed < (engine.epoch + 1) * self.steps_per_epoch:
                raise TrainingError(
                    f"epoch {engine.epoch} was left after step {self.step_in_epoch} of {self.steps_per_epoch}; iterate "
                    f"the run to its end in every epoch (break out of the loop over epochs to stop early)"
                )
            engine.epoch += 1
        self.finish()

    def _join(self) -> None:
        engine, membership = self.engine, self.context.membership
        membership.device, membership.prepare = engine.device, self._prepare
        if not self.context.standalone:  # else no other task comes to meet this one
            self._rendezvous = RendezvousServer(membership.host, key=membership.key)
            membership.announce_ready(
                Ready(
                    host=self._rendezvous.host,
                    port=self._rendezvous.port,
                    virtual_workers=engine.plan.max_workers,
                    num_epochs=self.num_epochs or 0,
                )
            )
        engine.enter()

    def _prepare(self, size: int, rank: int) -> None:
        """Have memory ready for a generation that still connects; called by the thread that connects."""
        engine, plan = self.engine, self.engine.plan

        def touch() -> None:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)  # of this thread alone
            engine.reducer.prepare(Worker(size, rank), num_leaves=plan.num_parts(0, size), in_one=plan.whole_shares)
            if rank > 0 and not engine.holds_state:
                engine.copies.prepare()

        thread = threading.Thread(target=touch, name="pliant-memory", daemon=True)
        thread.start()
        thread.join()

    def batches(self) -> Iterator[Any]:
        """Yield this task's parts of the global batches of the present epoch, from the step that comes next."""
        if self.num_epochs is None:
            raise TrainingError("iterate the run inside `for epoch in run.epochs(num_epochs):`")
        engine = self.engine
        self.initial.check()
        engine.restart_epoch()
        self._iterated = engine.epoch
        end = (engine.epoch + 1) * self.steps_per_epoch
        while engine.committed < end:
            if self.leads and engine.committed == engine.epoch * self.steps_per_epoch:
                self.results.keep_missing_end(step=engine.committed, epoch=engine.epoch)
            yield from self.loop.parts()

    def _note_means(self, sums: Sequence[float]) -> None:
        """Keep loss and metrics of the global batch whose gradient is about to be stepped with."""
        last = self.engine.state.last
        last.update(self.loop.metric_sums.means(sums, known=last))

    def _note_gradients(self) -> None:
        self.histograms.take_gradients(self.engine.committed + 1, leads=self.leads)

    def _note_commit(self) -> None:
        engine, values = self.engine, dict(self.engine.state.last)
        for name in engine.running.find_untracked_changes():
            engine.state.claim.downgrade(f"the buffer {name} changes in a forward pass and is too large to travel")
        assert self._reporter is not None
        self._lead()
        generation = engine.membership.group.number
        self._reporter.commit(values, step=engine.committed, generation=generation, leads=self.leads)
        self.histograms.commit(engine.committed)
        if self.after_commit is not None:
            self.after_commit()
        if self.leads:
            if engine.committed % self.steps_per_epoch == 0:
                num_epochs = engine.committed // self.steps_per_epoch
                self.results.keep_end(step=engine.committed, epoch=engine.epoch, num_epochs=num_epochs)
                self.results.after_epoch(step=engine.committed, epoch=engine.epoch)
            self.results.after_commit(step=engine.committed, epoch=engine.epoch)

    def _send(self, message: FromTask) -> None:
        """Send what the leader reports to the server, and its points to the trackers as well."""
        self.context.membership.send(message)
        if self.context.tracking is not None and isinstance(message, Report):
            self.context.tracking.record(
                [TrackedPoint(name=one.name, step=one.step, at=one.at, value=one.value) for one in message.points]
            )

    def _lead(self) -> None:
        """Take note of whether this task leads; the leader tells the hyperparameters that were not told yet."""
        if self.context.tracking is not None:
            self.context.tracking.lead(self.leads)
        if self.leads and self._unsent_params:
            self.context.membership.send(Params(values=dict(self._unsent_params)))
            if self.context.tracking is not None:
                self.context.tracking.record_params(self._unsent_params)
            self._unsent_params.clear()

    def log_params(self, params: Mapping[str, ParamValue]) -> None:
        """Report hyperparameters, before or after the training has begun."""
        self._unsent_params.update(params)
        if self._reporter is not None and self.context.membership.is_training:
            self._lead()

    def note_work(self) -> None:
        """Say every few seconds that the training goes on, though it does no step."""
        if self._reporter is None:
            return
        generation = self.engine.membership.group.number
        self._reporter.note_work(step=self.engine.committed, generation=generation, leads=self.leads)

    def check_together(self) -> None:
        """Raise TrainingError unless all tasks are at the same line of the script: between steps, inside an epoch.

        When the training is finished that does not matter any more.
        """
        if not self._is_finished and (self.num_epochs is None or self.loop.is_inside):
            raise TrainingError(
                "evaluate() was called where tasks are not together; call it inside `for epoch in run.epochs(…)`, "
                "before or after the loop over the batches"
            )

    def evaluate(self, evaluation: Evaluation) -> dict[str, float]:
        """Compute an evaluation with all other tasks; each computes it for itself when the training is finished."""
        if self._is_finished:
            return evaluation.run(GROUP_OF_ONE, is_lost=lambda: False)
        evaluation.on_batch = self.note_work
        return self.engine.evaluate(evaluation, after_steps=self._iterated == self.engine.epoch)

    def log(self, values: Mapping[str, float]) -> None:
        """Report values of the whole training."""
        if self._reporter is None:
            raise TrainingError("log() before epochs(): there is no training to report on yet")
        generation = self.engine.membership.group.number
        self._reporter.log(values, step=self.engine.committed, generation=generation, leads=self.leads)

    def log_histogram(self, name: str, values: Any, step: int | None) -> None:
        """Report how some values lie."""
        if self._reporter is None:
            raise TrainingError("log_histogram() before epochs(): there is no training to report on yet")
        at_step = self.engine.committed if step is None else step
        self.histograms.log(name, values, step=at_step, leads=self.leads and not self.context.standalone)

    def finish(self, prepare: Callable[[], object] | None = None) -> None:
        """Save the model, on the leader, while the others wait: if the leader is lost, another one can still do it.

        Args:
            prepare: called in the task that saves, before it does.
        """
        if self._is_finished:
            return
        if self._reporter is None:
            raise TrainingError("finish() before epochs(): there is no training to end yet")
        engine, digest = self.engine, ""
        while True:
            if self.leads:
                if prepare is not None:
                    prepare()
                self._report_end()
                self.results.finish(step=engine.committed, epoch=engine.committed // self.steps_per_epoch)
                digest = engine.state.digest()
                self.results.write_digest(digest)
            self.results.send_copies()
            if engine.barrier():
                break
        self._is_finished = True
        self._close()
        progress = self._reporter.progress(engine.committed)
        digest = digest or self.results.read_digest()
        for act in self.when_saved:
            act()
        engine.membership.send(Finished(step=engine.committed, digest=digest, progress=progress))

    def _report_rest(self) -> None:
        """Report what was not reported yet, before this task leaves the training to others."""
        if self.leads and self._reporter is not None:
            self._reporter.flush_rest(step=self.engine.committed, generation=self.engine.membership.group.number)

    def _report_end(self) -> None:
        assert self._reporter is not None
        engine = self.engine
        self._reporter.end(engine.state.last, step=engine.committed, generation=engine.membership.group.number)

    def _close(self) -> None:
        if self._rendezvous is not None:
            self._rendezvous.close()
