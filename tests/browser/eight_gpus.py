"""A server that believes in eight GPUs, on any machine: its tasks see none of them, and compute on the CPU."""

import os
import sys
from typing import Final

from pliant.cluster.agent import agent
from pliant.cluster.agent.devices import Devices
from pliant.entry.server import process

NUM_GPUS: Final = 8
FIRST: Final = 64
"""What CUDA_VISIBLE_DEVICES calls the first of them: no machine has so many, so no task sees one."""


def discover_eight(*_: object) -> Devices:
    """Return what the agent would find on such a machine, but for the files of its GPUs."""
    names = tuple(str(FIRST + number) for number in range(NUM_GPUS))
    return Devices(num_slots=NUM_GPUS, num_cpus=len(os.sched_getaffinity(0)), gpus=names)


if __name__ == "__main__":
    agent.discover = discover_eight  # type: ignore[assignment, attr-defined]
    sys.exit(process.main(sys.argv[1:]))
