"""Whether this process is a notebook's kernel, and what shows things below its cell. IPython is not needed: it is only
looked for where it is loaded.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

Put = Callable[..., Any]
"""Shows something in the cell that runs, and returns the handle to put something else in its place."""


def in_kernel() -> bool:
    """Tell whether this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def display_of_kernel() -> Put | None:
    """Return what shows things in a notebook; None where there is none."""
    if not in_kernel():
        return None
    from IPython.display import display  # a kernel has it; Pliant does not need it

    return functools.partial(display, display_id=True)
