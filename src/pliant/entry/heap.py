"""Keeps memory that a step has freed for the next step, which needs as much again.

The GNU C library gives freed memory back to the kernel as soon as a little of it lies together, and takes it anew, page
by page, at the next allocation. How much is little it learns from the largest block that was freed so far. So a step
whose tensors are small, because its parts are, pays for thousands of new pages every time.
"""

import ctypes
import re
from collections.abc import Mapping
from typing import Final

BLOCK_BYTES: Final = 32 << 20
"""Blocks of up to so many bytes come from the heap; the library allows no more. Larger ones are the kernel's."""
KEPT_BYTES: Final = 512 << 20
"""So much free memory at the heap's end is kept."""
_SETTINGS: Final = (("MALLOC_MMAP_THRESHOLD_", -3, BLOCK_BYTES), ("MALLOC_TRIM_THRESHOLD_", -1, KEPT_BYTES))
"""The variable in which the C library finds each when a program starts, its number for mallopt(3), and ours."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


def keep_freed_memory(env: Mapping[str, str]) -> None:
    """Set what the C library keeps in this process; nothing is done where it is not GNU's.

    What the environment says of it counts instead, also in a process that was forked, where the library has not looked.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or "glibc.malloc." in env.get("GLIBC_TUNABLES", ""):
        return
    for name, parameter, ours in _SETTINGS:
        said = env.get(name, "")
        mallopt(parameter, int(said) if _NUMBER.fullmatch(said) else ours)
