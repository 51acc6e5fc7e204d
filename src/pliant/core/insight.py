"""What is known of the course of a training by epoch, and what could be done about it."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["train_loss", "test_loss", "train_accuracy", "test_accuracy"]
"""What a series of a job is."""
HintKind = Literal["early_stop", "overfits", "not_a_number", "loss_rises", "plateau"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMeans:
    """What an epoch came to; None where nothing is known of it, or it is not a number."""

    epoch: int
    train_loss: float | None = None
    test_loss: float | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    not_numbers: tuple[Role, ...] = ()
    """Those that are NaN or infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Something that its owner may want to do, and why."""

    kind: HintKind
    series: str
    """The one that says so."""
    sentence: str
    parameter: Literal["epochs", "learning_rate"] | None = None
    """The hyperparameter that another value is proposed of."""
    value: float | None = None
