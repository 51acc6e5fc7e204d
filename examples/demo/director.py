"""Carries a scenario out: its stages, and the waits for what must happen, each with a deadline.

How long a stage is held depends on a training's progress, not on seconds, so that all stages fit whatever the speed of
the machine.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from examples.demo.recording import DemoFailed, Recording, Seen, Stage
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState

POLL_S = 0.1
MIN_HOLD_S = 2.0


class Director:
    """Carries out stages: waits for what must happen, and says what it waits for."""

    def __init__(self, recording: Recording, tick: Callable[[], None]) -> None:
        self._recording = recording
        self._tick = tick

    @contextmanager
    def stage(self, number: int, title: str) -> Iterator[None]:
        """Show a stage while the block runs."""
        self._stage = Stage(number=number, title=title, began_at=time.time())
        self._recording.set_stage(self._stage)
        yield
        self._stage = replace(self._stage, ended_at=time.time(), now_text="")
        self._recording.set_stage(self._stage)

    def wait(self, what: str, condition: Callable[[Seen], bool], *, within_s: float) -> Seen:
        """Wait until the condition is true of what is seen.

        Raises:
            DemoFailed: the deadline passed, or a job failed.
        """
        self._recording.set_stage(replace(self._stage, now_text=f"until {what}"))
        deadline = time.monotonic() + within_s
        while True:
            seen = self._recording.at(time.time())
            self._tick()
            _refuse_failed_jobs(seen)
            if condition(seen):
                return seen
            if time.monotonic() > deadline:
                raise DemoFailed(f"stage {self._stage.number}: waited {within_s:.0f} s until {what}; {_standing(seen)}")
            time.sleep(POLL_S)

    def hold(
        self, what: str, condition: Callable[[Seen], bool], *, until: Callable[[Seen], bool], within_s: float
    ) -> None:
        """Go on for a visible while, in which the condition must stay true.

        Raises:
            DemoFailed: the condition became false, the deadline passed, or a job failed.
        """
        not_before = time.monotonic() + MIN_HOLD_S

        def held(seen: Seen) -> bool:
            if not condition(seen):
                raise DemoFailed(f"stage {self._stage.number}: {what} did not last; {_standing(seen)}")
            return until(seen) and time.monotonic() >= not_before

        self.wait(f"they have trained on {what} for a while", held, within_s=within_s)


def share_done(seen: Seen, job_id: JobId) -> float:
    """Return which part of its steps a job has done."""
    progress = seen.details[job_id].job.progress
    return progress.step / progress.num_steps if progress and progress.num_steps else 0.0


def has_ended(seen: Seen, job_id: JobId) -> bool:
    """Tell whether a job is over."""
    return seen.details[job_id].job.ended


def _refuse_failed_jobs(seen: Seen) -> None:
    for job_id, detail in seen.details.items():
        if seen.is_trial(job_id) and detail.job.state is JobState.STOPPED:
            continue  # its search has pruned it
        if detail.job.state in (JobState.FAILED, JobState.STOPPED):
            label = seen.labels.get(job_id, job_id)
            raise DemoFailed(f"training {label} ({job_id}) is {detail.job.state}: {detail.job.reason}")


def _standing(seen: Seen) -> str:
    """Say where the jobs stand, for a message."""
    said = [
        f"{label} is {detail.job.state}, trains on {seen.size(job_id)}, holds {detail.job.num_slots} slots"
        for job_id, label in seen.labels.items()
        if (detail := seen.details.get(job_id))
    ]
    return "; ".join(said) or "no job is known"
