"""A server that believes in eight GPUs, on any machine: its tasks see none of them, and compute on the CPU."""

import os
import sys
from typing import Final

from pliant.cluster.agent import agent
from pliant.cluster.agent.devices import Devices
from pliant.cluster.agent.machine_watch import GpuReader
from pliant.core.machine import DeviceFacts
from pliant.entry.server import process

NUM_GPUS: Final = 8
FIRST: Final = 64
"""What CUDA_VISIBLE_DEVICES calls the first of them: no machine has so many, so no task sees one."""
MEMORY_BYTES: Final = 141 << 30


def discover_eight(*_: object) -> Devices:
    """Return what the agent would find on such a machine, but for the files of its GPUs."""
    names = tuple(str(FIRST + number) for number in range(NUM_GPUS))
    return Devices(num_slots=NUM_GPUS, num_cpus=len(os.sched_getaffinity(0)), gpus=names)


def read_eight(self: GpuReader) -> tuple[tuple[DeviceFacts, ...], str]:
    """Return what a driver would tell of them: each is busier, fuller and warmer than the one before it."""
    facts = (
        DeviceFacts(
            slot=slot,
            model="NVIDIA H200",
            memory_bytes=MEMORY_BYTES,
            memory_used_bytes=MEMORY_BYTES * slot // NUM_GPUS,
            utilisation=slot / NUM_GPUS,
            temperature_c=40.0 + slot,
        )
        for slot in range(NUM_GPUS)
    )
    return tuple(facts), ""


if __name__ == "__main__":
    GpuReader.read = read_eight  # type: ignore[method-assign]
    agent.discover = discover_eight  # type: ignore[assignment, attr-defined]
    sys.exit(process.main(sys.argv[1:]))
