"""Prepares a process for training."""

import torch


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
