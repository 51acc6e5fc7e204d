"""How the job of a trial stands, as far as its search has to know."""

from dataclasses import dataclass

from pliant.core.job import JobId, Progress
from pliant.core.lifecycle import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """A job at one instant."""

    job_id: JobId
    revision: int
    """Grows with every change of the job, so with whatever is reported of it."""
    state: JobState
    hold: str
    """Why it is held, in words; empty: it is not."""
    reason: str
    """Why it is in its state."""
    why: str
    """Why it has the slots it has."""
    num_slots: int
    """Slots that its tasks hold now, also while they leave."""
    progress: Progress | None
    """How far it is, as last told; None before its first step."""
    has_model: bool = False
    """It has ended, and its trained model is saved."""
    ended_at: float | None = None

    @property
    def epoch(self) -> int:
        """Epochs finished."""
        return 0 if self.progress is None else self.progress.epoch

    @property
    def step(self) -> int:
        """Optimizer steps committed."""
        return 0 if self.progress is None else self.progress.step

    @property
    def rests(self) -> bool:
        """It is held and has left its slots."""
        return bool(self.hold) and self.num_slots == 0
