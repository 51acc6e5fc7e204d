"""What a soak has seen: one line per move as it happens, a table at the end, and everything that was wrong."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.e2e.trial import Trial

from pliant.core.job import Job


@dataclass(slots=True)
class Record:
    """Counts of one soak."""

    say: Callable[[str], None]
    began_at: float = field(default_factory=time.monotonic)
    num_moves: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    pauses_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By kind of move, how long training stood still."""
    away: list[tuple[float, float]] = field(default_factory=list)
    """When no server answered."""
    wrong: list[str] = field(default_factory=list)
    num_jobs: int = 0
    num_steps: int = 0
    num_generations: int = 0
    num_losses: int = 0
    num_redone_steps: int = 0

    def tell(self, text: str) -> None:
        self.say(f"[{time.monotonic() - self.began_at:7.1f} s] {text}")

    def complain(self, text: str) -> None:
        """Note something that must not be."""
        self.wrong.append(text)
        self.tell(f"WRONG: {text}")

    def ended(self, trial: Trial, job: Job) -> None:
        """Count what a job that has ended went through, and measure the pauses after the losses that it planned."""
        self.num_jobs += 1
        self.num_steps += job.progress.step if job.progress is not None else 0
        self.num_redone_steps += job.num_redone_steps
        self.num_generations += len(trial.events("generation.switched"))
        self.num_losses += len(trial.events("task.lost"))
        for claim in trial.claims():
            self.measure("in the script", trial, claim.at)

    def measure(self, kind: str, trial: Trial, at: float) -> None:
        """Note how long a job stood still, unless that was for want of a server."""
        pause_s = trial.pause_if_over(at)
        if pause_s is None or any(since - 2 < at < until + 2 for since, until in self.away):
            return
        self.pauses_s[kind].append(pause_s)

    def table(self) -> str:
        """Return the summary."""
        rows = [f"{'move':14} {'times':>6} {'it stood still for, median':>28} {'longest':>9}"]
        for kind in sorted({*self.num_moves, *self.pauses_s}):
            pauses = self.pauses_s.get(kind, [])
            told = f"{statistics.median(pauses):26.2f} s {max(pauses):7.2f} s" if pauses else ""
            rows.append(f"{kind:14} {self.num_moves.get(kind, len(pauses)):6} {told}")
        rows.append(
            f"{self.num_jobs} jobs, {self.num_steps} steps, {self.num_generations} generations, {self.num_losses} "
            f"workers lost, {self.num_redone_steps} steps computed again"
        )
        return "\n".join(rows)
