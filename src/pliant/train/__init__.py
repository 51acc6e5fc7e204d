"""What runs inside a training task. Scripts need one name: `from pliant.train import Run`."""

from pliant.train.errors import TrainingError
from pliant.train.results import Saving
from pliant.train.run import Run

__all__ = ["Run", "Saving", "TrainingError"]
