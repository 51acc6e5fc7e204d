"""What became of a trace: a value that is printed and compared. All instants and times are virtual seconds."""

from dataclasses import dataclass

from pliant.core.lifecycle import JobState
from pliant.core.plan import PolicyName


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What became of one job."""

    name: str
    queue: str
    """Where it was in the end."""
    state: JobState
    submitted_at: float
    started_at: float | None
    """When it first held a slot."""
    ended_at: float | None
    held: tuple[tuple[float, int], ...]
    """From each instant on, its processes held so many slots."""
    waited_s: float
    """Between submission and end without any slot."""
    ran_s: float
    """Between submission and end with slots."""
    slot_s: float
    num_resizes: int
    """Changes of the number of tasks that train."""
    num_redone_steps: int

    def slots_at(self, at: float) -> int:
        """Return the slots held at an instant."""
        return next((num for since, num in reversed(self.held) if since <= at), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOutcome:
    """What became of a trace under one policy."""

    policy: PolicyName
    num_slots: int
    ended_at: float
    jobs: tuple[JobOutcome, ...]
    """In the order of the trace."""
    decisions: tuple[tuple[float, str], ...]
    """Every change of a target, with its reason."""

    @property
    def utilisation(self) -> float:
        """Slot-seconds held, of those that there were between the first submission and the end."""
        span_s = self.ended_at - min(job.submitted_at for job in self.jobs)
        return sum(job.slot_s for job in self.jobs) / (self.num_slots * span_s) if span_s else 0.0
