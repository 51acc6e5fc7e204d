"""Prepares a process for training."""

import pickle
from pathlib import Path

import torch

from pliant.train.errors import TrainingError


def prepare(num_threads: int) -> None:
    """Use this many threads inside an operator, so that the tasks of a host do not fight for its cores."""
    torch.set_num_threads(num_threads)


def reseed(seed: int) -> None:
    """Seed the generators that a forward pass draws from.

    Not `torch.manual_seed`: where CUDA is not in use that formats and keeps a stack trace at every call.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Start from a saved `state_dict`.

    Raises:
        TrainingError: it cannot be read, or belongs to another model.
    """
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, EOFError, RuntimeError, ValueError, TypeError, pickle.UnpicklingError) as error:
        raise TrainingError(f"the weights to start from could not be loaded from {path}: {error}") from error
