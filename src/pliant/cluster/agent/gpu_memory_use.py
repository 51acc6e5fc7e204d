"""How much of a GPU's memory tasks use that hold a part of it, and the end of those that use more than that part.

A kernel keeps torch and ONNX Runtime to its part from inside, but its code is a stranger's, and can undo that. So the
driver is asked which process uses how much. Source: `nvmlDeviceGetComputeRunningProcesses` in NVIDIA's NVML reference.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pynvml

from pliant.cluster.agent.devices import Devices
from pliant.cluster.agent.memory_use import processes_of
from pliant.cluster.process import process_table
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.size import size
from pliant.core.slot import WHOLE_SLOT

CHECK_EVERY_S: Final = 0.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """The memory of one GPU, in bytes."""

    total: int
    used: Mapping[int, int]
    """By the number of the process."""


class GpuMemoryCheck:
    """Compares every now and then what tasks use of their GPUs with the part that they hold.

    Args:
        devices: of this node.
        read: returns the memory of a GPU by its index; None if the driver does not say.
    """

    def __init__(self, devices: Devices, read: Callable[[int], GpuMemory | None] | None = None) -> None:
        self._devices = devices
        self._read = read or read_gpu_memory
        self._next_at = 0.0

    def concerns(self, tasks: Iterable[Record]) -> bool:
        """Tell whether one of these tasks holds a part of a GPU."""
        return bool(self._devices.gpus) and any(task.slot_share < WHOLE_SLOT for task in tasks)

    def over_limit(self, tasks: Iterable[tuple[Record, Collection[int]]]) -> Iterator[tuple[TaskId, str]]:
        """Yield the tasks that are over their limit, with why they are ended; nothing before it is time again.

        With every task come the numbers of its sidecars' processes, which count.
        """
        limited = [(task, beside) for task, beside in tasks if self.concerns((task,))]
        if not limited or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + CHECK_EVERY_S
        table = process_table()
        memory = {slot: self._read(int(self._devices.gpus[slot])) for task, _ in limited for slot in task.slots}
        for task, beside in limited:
            gpu = memory[task.slots[0]]
            if gpu is None or task.pid is None:
                continue
            used = sum(gpu.used.get(pid, 0) for pid in processes_of(task.pid, task.group, table, beside))
            limit = gpu.total * task.slot_share // WHOLE_SLOT
            if used > limit:
                what = f"{task.slot_share / WHOLE_SLOT:g} of a GPU that it holds"
                yield (
                    task.task_id,
                    f"used {size(used)} of its GPU's memory, more than {size(limit)}, the {what}, and was ended for it",
                )


def read_gpu_memory(index: int) -> GpuMemory | None:
    """Return the memory of a GPU; None if the driver does not say."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        total = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        return GpuMemory(total=total, used={int(one.pid): int(one.usedGpuMemory or 0) for one in running})
    except pynvml.NVMLError as error:
        _log.warning("what processes use of GPU %d is unknown: %s", index, error)
        return None
    finally:
        pynvml.nvmlShutdown()
