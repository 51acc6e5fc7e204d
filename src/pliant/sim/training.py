"""One simulated training: what there is to do, and how far it is at which time. Values; no clock.

Invariants: whole steps are committed; n tasks take an n-th of the time that one takes; a step that was begun when a
member was lost is done again; what nobody holds any more goes on from the newest checkpoint.
"""

import math
from dataclasses import dataclass, field

from pliant.core.job import Progress, TaskId
from pliant.core.link import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class SimWork:
    """What one job has to do, and how long its tasks take for it."""

    num_steps: int = 1
    step_s: float = math.inf
    """One task alone takes this long for a step. Infinite: nothing moves by itself."""
    virtual_workers: int = 8
    warm_s: float = 0.0
    """From a process's start until its model is built."""
    connect_s: float = 0.0
    """From the announcement of a generation until its members are connected."""
    pause_s: float = 0.01
    """Training stands still this long for a switch."""
    report_s: float = 300.0
    """Between two reports; with each, a checkpoint is written."""


@dataclass(slots=True, kw_only=True)
class SimTraining:
    """Where one job's training stands."""

    work: SimWork
    step: float = 0.0
    """Steps done at `since`; a fraction is a step that has begun."""
    since: float = 0.0
    saved_step: int = 0
    """A training that lost all its tasks goes on from here."""
    active: Form | None = None
    """The generation that trains."""
    newest: Form | None = None
    informed: set[TaskId] = field(default_factory=set)
    """Who knows of the newest generation."""
    holders: set[TaskId] = field(default_factory=set)
    """Live tasks that hold the state."""
    num_redone: int = 0
    """Steps to be done again in the next generation."""

    @property
    def rate(self) -> float:
        """Steps per second."""
        return len(self.active.members) / self.work.step_s if self.active else 0.0

    def step_at(self, now: float) -> float:
        """Return the steps done by now."""
        return min(self.step + max(0.0, now - self.since) * self.rate, max(self.step, self.work.num_steps))

    def halt(self, now: float) -> None:
        """Lose the step that was begun; nobody trains until the next generation is entered."""
        done = self.step_at(now)
        self.num_redone = int(done > math.floor(done))
        self.step, self.active = math.floor(done), None

    def enter(self, form: Form, now: float) -> int:
        """Train in this generation from now on; return how many steps are done again."""
        self.step, self.since = round(self.step_at(now)), now + self.work.pause_s
        if form.members and not self.holders & set(form.members):
            self.step = min(self.step, self.saved_step)
        self.active, self.newest = (form if form.members else None), None
        self.holders = set(form.members)
        redone, self.num_redone = self.num_redone, 0
        return redone

    def progress(self) -> Progress:
        """Return what the leader reports after a checkpoint."""
        return Progress(
            epoch=0,
            num_epochs=1,
            step=self.saved_step,
            num_steps=self.work.num_steps,
            samples=self.saved_step,
            samples_per_s=self.rate,
            virtual_workers=self.work.virtual_workers,
        )
