"""What a training logs, and where: in the leader's log and driver logger, and in every task's worker logger.

Knows nothing of models and data. Invariant: one report for every committed step, after the engine has committed it.
"""

import os
from collections.abc import Callable, Sequence

from pliant.ibm.modules.pyedt.epochs import Means
from pliant.ibm.modules.pyedt.loggers import (
    LoggedMetrics,
    call_if_defined,
    log_test,
    log_train,
    train_lines,
    validation_lines,
)
from pliant.ibm.modules.pyedt.script import Schedule, Script
from pliant.train import Run


class ProgressLog:
    """One task's log of a training.

    Args:
        num_samples: in the training set.
        notes: printed once in the leader's log.
        clock: monotonic, seconds.
    """

    def __init__(
        self,
        script: Script,
        schedule: Schedule,
        run: Run,
        *,
        num_samples: int,
        notes: Sequence[str],
        clock: Callable[[], float],
    ) -> None:
        self._driver = script.driver_logger
        self._worker = script.worker_logger
        self._backend = "pytorch" if script.framework is None else script.framework.name
        self._schedule = schedule
        self._run = run
        self._num_samples = num_samples
        self._notes = notes
        self._clock = clock
        self._began_at = self._epoch_began_at = clock()
        self._means = Means()
        self._num_batches = 0
        self._num_logged_steps = 0
        self._led = False

    def begin_epoch(self) -> None:
        """Start the means of an epoch anew."""
        self._means = Means()
        self._epoch_began_at = self._clock()
        self._num_logged_steps = self._run.num_steps_done
        self._leads()

    def log_batch(self, values: Callable[[], dict[str, float]]) -> None:
        """Give a micro-batch to the worker's logger; `values` is only called if there is one."""
        self._num_batches += 1
        if self._worker is not None:
            log_train(self._worker, self._own(values()))

    def log_commit(self) -> None:
        """Log the newest step, if it was not logged yet."""
        step = self._run.num_steps_done
        if step == self._num_logged_steps or not self._run.last:
            return
        self._num_logged_steps = step
        self._means.add(self._run.last, self._samples_of(step))
        if not self._leads():
            return
        reading = self._all(self._means.values)
        print("\n".join(train_lines(reading, self._num_batches)))
        if self._driver is not None:
            log_train(self._driver, reading)

    def log_validation(self, values: dict[str, float]) -> None:
        """Log a validation."""
        self._run.log(**{f"test_{name}": value for name, value in values.items()})
        if self._worker is not None:
            log_test(self._worker, self._own(values))
        if not self._leads():
            return
        reading = self._all(values)
        print("\n".join(validation_lines(reading)), flush=True)
        if self._driver is not None:
            log_test(self._driver, reading)

    def end_epoch(self) -> None:
        """Log that every sample of the epoch was used."""
        if self._leads():
            took_s = self._clock() - self._epoch_began_at
            print(f"{job_id()} completed epoch {self._run.epoch} in time {took_s:.3f} s", flush=True)

    def end_training(self) -> None:
        """Call the driver's logger: all epochs are over."""
        if self._leads():
            call_if_defined(self._driver, "on_train_end")

    def log_saved(self) -> None:
        """Log that the training is over and its model saved."""
        if self._leads():
            took_s = self._clock() - self._began_at
            print(f"--------END TRAINING: completed {self._iteration} iterations in {took_s:.3f} s--------")
            print(f"Job {job_id()} finishes with state FINISHED.", flush=True)

    @property
    def _iteration(self) -> int:
        """Micro-batches of all workers, as IBM counts iterations."""
        return self._run.num_steps_done * self._run.plan.virtual_workers

    def _leads(self) -> bool:
        """Return whether this task leads; the first time it does, begin the driver's log."""
        if self._run.leads and not self._led:
            self._led = True
            for note in self._notes:
                print(note)
            print(f"Using {self._backend} backend.")
            total = self._run.steps_per_epoch * self._run.plan.virtual_workers * self._schedule.num_epochs
            print(f"Total iterations: {total}")
            print("--------START TRAINING--------", flush=True)
            call_if_defined(self._driver, "on_train_begin")
        return self._run.leads

    def _samples_of(self, step: int) -> int:
        """Return how many samples the global batch of a committed step had: the last of an epoch may be smaller."""
        index = (step - 1) % self._run.steps_per_epoch
        return min(self._schedule.global_batch, self._num_samples - index * self._schedule.global_batch)

    def _all(self, values: dict[str, float]) -> LoggedMetrics:
        run = self._run
        return LoggedMetrics(values=values, iteration=self._iteration, epoch=run.epoch, worker=0, workers=run.size)

    def _own(self, values: dict[str, float]) -> LoggedMetrics:
        run = self._run
        return LoggedMetrics(
            values=values, iteration=self._num_batches, epoch=run.epoch, worker=run.rank, workers=run.size
        )


def job_id() -> str:
    """Return the name of this training, as IBM's variables give it; that of the exec if IBM's API has started it."""
    name = os.environ.get("TRAINING_ID") or os.environ.get("DLI_EXECID") or "local"
    if "FRAME_WORK" in os.environ and name.startswith("job-"):
        return f"wmla-{name.removeprefix('job-')}"
    return name
