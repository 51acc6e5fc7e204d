"""What runs inside a training task. Scripts need one name: `from pliant.train import Run`."""

from pliant.train.errors import TrainingError
from pliant.train.run import Run
from pliant.train.state.results import Saving

__all__ = ["Run", "Saving", "TrainingError"]
