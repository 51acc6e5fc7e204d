"""The memory of a GPU that a kernel shares with others: how much is its own, and how torch is kept to that.

The agent of the node looks from outside whether a kernel keeps to it, and ends one that does not. Here libraries learn
their limit, so that a model that needs too much fails with an error that says so.
"""

import os
from typing import Final

from pliant.core.slot import WHOLE_SLOT

_CONTEXT_BYTES: Final = 600 << 20
"""What the driver keeps of a GPU's memory for each process, about; libraries do not count it."""


def part_of_gpu(slot_share: int) -> int | None:
    """Return how much of its GPU's memory a kernel may allocate, bytes; None: all of it, or there is no GPU."""
    if slot_share >= WHOLE_SLOT or not os.environ.get("CUDA_VISIBLE_DEVICES"):
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    total = int(torch.cuda.get_device_properties(0).total_memory)
    part = total * slot_share // WHOLE_SLOT
    return max(part // 2, part - _CONTEXT_BYTES)


def keep_to_part_of_gpu(slot_share: int) -> None:
    """Have torch allocate no more of its GPU's memory than is the kernel's own."""
    limit = part_of_gpu(slot_share)
    if limit is not None:
        import torch

        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
