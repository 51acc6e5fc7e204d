"""How seldom a server looks for garbage, and how often it gives memory that it does not use back to the machine.

With a thousand machines there are some hundred thousand objects, and all threads stand still while they are looked
through: for a tenth of a second and more, whenever a few hundred new ones had come. So what is there at the start is
never looked through again, and all of the rest once in ten minutes, however fast a pool fills; new ones as they come.

The C library keeps what was freed in the middle of its heaps, and what is asked for next does not always fit there: a
server that was asked much held 18 MB of such memory after five minutes, and half a megabyte more every minute, with the
same 36 MB in use. It is told once a minute to give it back.
"""

import ctypes
import gc
import threading
import time
from typing import Final

_NEW_OBJECTS: Final = 10_000
"""So many objects come before the newest are looked through for garbage; Python's own number is 700."""
_NEVER: Final = 2**31 - 1
"""The newest are looked through so often before all are."""
_TRIM_S: Final = 60.0
"""Memory is given back once in so long."""
_NUM_TRIMS: Final = 10
"""After so many, all objects are looked through for garbage."""


def spare_collections() -> None:
    """Look for garbage and give memory back in a thread, from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, gc.get_threshold()[1], _NEVER)
    threading.Thread(target=_tidy_for_ever, name="pliant-garbage", daemon=True).start()


def _tidy_for_ever() -> None:
    while True:
        for _ in range(_NUM_TRIMS):
            time.sleep(_TRIM_S)
            give_back()
        gc.collect()


def give_back() -> None:
    """Give memory that the C library holds and nobody uses back to the machine, if this C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
