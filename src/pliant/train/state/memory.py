"""Whether a checkpoint fits into shared memory beside everything else that needs memory on this machine."""

import os
from pathlib import Path
from typing import Final

_MEMINFO: Final = Path("/proc/meminfo")
_SPARE: Final = 10
"""One part in so many of the file system, and of the machine's memory, is left to others."""


def explain_shortage(folder: Path, num_bytes: int) -> str:
    """Say why checkpoints of so many bytes cannot be kept in this folder; empty if they can.

    Two must fit: the newest is kept while the next one is written. What the folder holds already counts as one.
    """
    try:
        held = sum(path.stat().st_size for path in folder.iterdir())
        system = os.statvfs(folder)
    except OSError as error:
        return f"checkpoints in shared memory are off: {error}"
    needed = max(num_bytes, 2 * num_bytes - held)
    free = system.f_bavail * system.f_frsize - system.f_blocks * system.f_frsize // _SPARE
    if free < needed:
        return (
            f"checkpoints in shared memory are off: {folder} has {max(free, 0) / 1e6:.0f} MB to spare, "
            f"{needed / 1e6:.0f} MB are needed; enlarge that file system (`docker run --shm-size`)"
        )
    total, available = _memory()
    if available - total // _SPARE < needed:
        return (
            f"checkpoints in shared memory are off: this machine has {available / 1e6:.0f} MB of {total / 1e6:.0f} MB "
            f"left, a tenth of it is left to others, {needed / 1e6:.0f} MB are needed"
        )
    return ""


def _memory() -> tuple[int, int]:
    """Return the machine's memory and what is available of it, in bytes."""
    pairs = (line.split(":") for line in _MEMINFO.read_text().splitlines())
    kilobytes = {name: int(value.split()[0]) for name, value in pairs if name in ("MemTotal", "MemAvailable")}
    return kilobytes["MemTotal"] * 1024, kilobytes["MemAvailable"] * 1024
