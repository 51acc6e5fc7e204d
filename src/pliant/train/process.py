"""Prepares a process for training."""

import torch


def prepare(num_threads: int) -> None:
    """Use this many threads inside an operator, so that the tasks of a host do not fight for its cores."""
    torch.set_num_threads(num_threads)
