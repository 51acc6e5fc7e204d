"""How far a task is: eight bytes in a file of its LOG_DIR, which is there even if the task was killed.

Written by the task after every committed step, read by control when the task was lost.
"""

import struct
from pathlib import Path
from typing import Final

NAME: Final = ".step"
_FORM: Final = struct.Struct("<q")


def packed(step: int) -> bytes:
    """Return the content of the file for a task that has committed `step` optimizer steps."""
    return _FORM.pack(step)


def read(log_dir: Path) -> int | None:
    """Return the optimizer steps that a task had committed; None if it never held a state, or cannot be known."""
    try:
        content = (log_dir / NAME).read_bytes()
    except OSError:
        return None
    return int(_FORM.unpack(content)[0]) if len(content) == _FORM.size else None
