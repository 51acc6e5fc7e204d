"""What this machine is and how it is just now, read now and then beside the agent, which never waits for it.

A driver that hangs holds up whoever asks it, for ever. So every reading is a thread of its own, and there is one at a
time: while one hangs none follows, and the adapter sees by their age that the newest facts are old. Sources: `proc(5)`;
NVIDIA's NVML reference. Knows no tasks.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pynvml

from pliant.cluster.agent.devices import Devices
from pliant.core.machine import DeviceFacts, MachineFacts

_log = logging.getLogger(__name__)

EVERY_S: Final = 10.0
_MAX_NAME: Final = 100
_KIB: Final = 1024


class MachineWatch:
    """Reads facts every ten seconds; the agent's thread alone calls it.

    Args:
        read: returns the facts; called in a thread of its own.
        monotonic: seconds.
    """

    def __init__(self, read: Callable[[], MachineFacts], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._monotonic = monotonic
        self._due_at = monotonic()
        self._under_way: threading.Thread | None = None
        self._found: MachineFacts | None = None

    def newest(self) -> MachineFacts | None:
        """Return facts that were read since the last call, or None; begin to read if it is time. Never waits."""
        if self._under_way is None:
            if self._monotonic() >= self._due_at:
                self._due_at = self._monotonic() + EVERY_S
                self._under_way = threading.Thread(target=self._look, name="pliant-machine-facts", daemon=True)
                self._under_way.start()
            return None
        if self._under_way.is_alive():
            return None
        self._under_way = None
        found, self._found = self._found, None
        return found

    def _look(self) -> None:
        try:
            self._found = self._read()
        except Exception:  # noqa: BLE001 - the top of the thread
            _log.exception("what this machine does is unknown for now")


class MachineReader:
    """Reads the facts of this machine. What it cannot read it leaves out.

    Args:
        devices: those of the node; only GPUs that are slots are told of.
        proc: where Linux tells of itself.
    """

    def __init__(self, devices: Devices, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._gpus = GpuReader(devices.gpus)
        self._cpu_model = self._field("cpuinfo", "model name", ":")[:_MAX_NAME]
        booted = self._field("stat", "btime", None)
        self._booted_at = float(booted) if booted.isdecimal() else None

    def read(self) -> MachineFacts:
        """Return the facts as they are now."""
        total, available = self._bytes("MemTotal"), self._bytes("MemAvailable")
        devices, trouble = self._gpus.read()
        return MachineFacts(
            cpu_model=self._cpu_model,
            num_cpus=os.cpu_count() or 0,
            load=self._load(),
            memory_bytes=total,
            memory_used_bytes=None if total is None or available is None else max(0, total - available),
            booted_at=self._booted_at,
            devices=devices,
            trouble=trouble,
        )

    def _load(self) -> float | None:
        with suppress(OSError, ValueError, IndexError):
            return float((self._proc / "loadavg").read_text().split()[0])
        return None

    def _bytes(self, name: str) -> int | None:
        number, _, unit = self._field("meminfo", name, ":").partition(" ")
        return int(number) * _KIB if number.isdecimal() and unit == "kB" else None

    def _field(self, file: str, name: str, separator: str | None) -> str:
        """Return what stands behind a name in a file of `/proc`; empty if it is not there."""
        with suppress(OSError), (self._proc / file).open(errors="replace") as lines:
            for line in lines:
                parts = line.split(separator, 1)
                if len(parts) == 2 and parts[0].strip() == name:
                    return parts[1].strip()
        return ""


class GpuReader:
    """Reads what the NVIDIA driver tells of GPUs, given by their indices.

    It keeps the driver open: where nobody else does, every opening would initialise the GPUs anew, for seconds.
    """

    def __init__(self, indices: tuple[str, ...]) -> None:
        self._indices = indices
        self._is_open = False

    def read(self) -> tuple[tuple[DeviceFacts, ...], str]:
        """Return the facts of the GPUs, and why there are none, in words."""
        if not self._indices:
            return (), ""
        try:
            if not self._is_open:
                pynvml.nvmlInit()
                self._is_open = True
            return tuple(_device(slot, int(index)) for slot, index in enumerate(self._indices)), ""
        except pynvml.NVMLError as error:
            self._close()
            return (), f"the NVIDIA driver does not answer: {str(error)[:_MAX_NAME]}; nvidia-smi tells more"

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


def _device(slot: int, index: int) -> DeviceFacts:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name = pynvml.nvmlDeviceGetName(handle)
    memory = _answer(pynvml.nvmlDeviceGetMemoryInfo, handle)
    rates = _answer(pynvml.nvmlDeviceGetUtilizationRates, handle)
    celsius = _answer(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    return DeviceFacts(
        slot=slot,
        model=(name.decode(errors="replace") if isinstance(name, bytes) else str(name))[:_MAX_NAME],
        memory_bytes=None if memory is None else int(memory.total),
        memory_used_bytes=None if memory is None else int(memory.used),
        utilisation=None if rates is None else int(rates.gpu) / 100,
        temperature_c=None if celsius is None else float(celsius),
    )


def _answer(ask: Callable[..., Any], *args: Any) -> Any:
    """Return what the driver answers; None if this GPU does not tell that.

    Raises:
        pynvml.NVMLError: it does not answer at all.
    """
    try:
        return ask(*args)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_NOT_SUPPORTED:
            return None
        raise
