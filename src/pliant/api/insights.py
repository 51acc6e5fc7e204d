"""What the course of a training says, as REST shows it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.core.insight import EpochMeans, Hint, Role
from pliant.core.job import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInsights:
    """How a training goes, and what could be done about it."""

    model: str
    name: str
    job_id: str
    state: str
    progress: Progress | None
    learning_rate: float
    """At the beginning."""
    series: Mapping[Role, str]
    """Which series of the job are losses and accuracies, by what they are called; `…/chart` of the job has them."""
    epochs: tuple[EpochMeans, ...]
    """The last 1,000."""
    hints: tuple[Hint, ...]
    """The most urgent first."""
    patience: int
    """Epochs after the best one before anything is said."""
