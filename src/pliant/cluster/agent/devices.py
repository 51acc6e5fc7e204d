"""Which slots this machine has, and the environment that confines a task to its own.

A slot is one GPU, or a share of the CPU. Slot i is the i-th device. Knows no tasks and starts nothing.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pynvml

from pliant.core.slot import WHOLE_SLOT

_log = logging.getLogger(__name__)

_FOR_ALL_GPUS = (
    *("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"),
    *("/dev/nvidia-caps", "/dev/infiniband", "/dev/gdrdrv"),
)
"""Whoever uses one GPU needs them; `nvidia-caps` holds those of MIG, `infiniband` those of a fast network."""
_LEAST_MEMORY_BYTES = 512 << 20
"""What torch and a small model need."""
_NO_DRIVER = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """What one machine has to share."""

    num_slots: int
    num_cpus: int
    memory_bytes: int = 0
    """Of the machine; 0 if that is not known."""
    gpus: tuple[str, ...] = ()
    """What CUDA_VISIBLE_DEVICES calls each slot's GPU; empty if the slots are shares of the CPU."""
    files: tuple[str, ...] = ()
    """The device file of each slot's GPU."""


def discover(num_slots: int | None, env: Mapping[str, str]) -> Devices:
    """Return this machine's devices: declared shares of the CPU, or else one slot per GPU, or else one per CPU.

    A CUDA_VISIBLE_DEVICES in `env` narrows the GPUs down, as it does for CUDA itself.

    Raises:
        ValueError: fewer than none were declared.
    """
    num_cpus = len(os.sched_getaffinity(0))
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if num_slots is not None:
        if num_slots < 0:
            raise ValueError(f"num_slots is {num_slots}; declare 0 or more, or none to use what there is")
        return Devices(num_slots=num_slots, num_cpus=num_cpus, memory_bytes=memory_bytes)
    gpus = visible(_gpu_uuids(), env.get("CUDA_VISIBLE_DEVICES"))
    files = tuple(f"/dev/nvidia{_minor_number(int(gpu))}" for gpu in gpus)
    num_slots = len(gpus) or num_cpus
    return Devices(num_slots=num_slots, num_cpus=num_cpus, memory_bytes=memory_bytes, gpus=gpus, files=files)


def visible(uuids: Sequence[str], setting: str | None) -> tuple[str, ...]:
    """Return the indices of the GPUs that a CUDA_VISIBLE_DEVICES setting leaves visible.

    As CUDA reads it: a list of indices or of beginnings of UUIDs, cut at the first that names no GPU; None leaves all.
    """
    if setting is None:
        return tuple(str(index) for index in range(len(uuids)))
    chosen: list[str] = []
    for name in (part.strip() for part in setting.split(",")):
        index = _index_of(name, uuids)
        if index is None or str(index) in chosen:
            break
        chosen.append(str(index))
    return tuple(chosen)


def confine(
    devices: Devices, slots: Sequence[int], sees: Sequence[int] = (), slot_share: int = WHOLE_SLOT
) -> dict[str, str]:
    """Return the environment that keeps libraries on a task's slots: its GPUs, and its share of the machine's threads.

    `sees` names the slots whose GPUs it can see if these are not its own only.
    """
    gpus = ",".join(devices.gpus[slot] for slot in sees or slots) if devices.gpus else ""
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of the indices that NVML tells
        "CUDA_VISIBLE_DEVICES": gpus,
        "NVIDIA_VISIBLE_DEVICES": gpus,
        **thread_limits(share_of_threads(devices, slots, slot_share)),
    }


def device_files(devices: Devices, slots: Sequence[int]) -> tuple[str, ...]:
    """Return the files that a task with these slots needs to reach its GPUs, and none of others."""
    return (*(devices.files[slot] for slot in slots), *_FOR_ALL_GPUS) if devices.files else ()


def share_of_threads(devices: Devices, slots: Sequence[int], slot_share: int = WHOLE_SLOT) -> int:
    """Return how many threads a task with these slots, or thousandths of one, may use; at least 1."""
    return max(1, devices.num_cpus * len(slots) * slot_share // (devices.num_slots * WHOLE_SLOT))


def share_of_memory(devices: Devices, slot_share: int) -> int | None:
    """Return what a task with a part of a slot may use of the machine's memory, bytes; None: there is no limit."""
    if slot_share >= WHOLE_SLOT or not devices.memory_bytes:
        return None
    return max(_LEAST_MEMORY_BYTES, devices.memory_bytes * slot_share // (devices.num_slots * WHOLE_SLOT))


def thread_limits(num_threads: int) -> dict[str, str]:
    """Return the environment that keeps the mathematical libraries to so many threads."""
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(num_threads))


def _index_of(name: str, uuids: Sequence[str]) -> int | None:
    if name.isdecimal():
        return int(name) if int(name) < len(uuids) else None
    found = [index for index, uuid in enumerate(uuids) if name and uuid.startswith(name)]
    return found[0] if len(found) == 1 else None


def _minor_number(index: int) -> int:
    """Return the number in the name of a GPU's device file; it is the index nearly always."""
    pynvml.nvmlInit()
    try:
        return int(pynvml.nvmlDeviceGetMinorNumber(pynvml.nvmlDeviceGetHandleByIndex(index)))
    except pynvml.NVMLError:
        return index
    finally:
        pynvml.nvmlShutdown()


def _gpu_uuids() -> list[str]:
    """Return the UUIDs of all GPUs in the order of their PCI addresses; none where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value not in _NO_DRIVER:
            _log.warning("GPUs are not used: the NVIDIA driver does not answer (%s); nvidia-smi tells more", error)
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
