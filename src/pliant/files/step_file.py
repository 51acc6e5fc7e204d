"""How far a task is: eight bytes in a file of its LOG_DIR, which is there even if the task was killed.

Written by the task after every committed step, read by the agent of its node when its process is gone.
"""

import struct
from pathlib import Path
from typing import Final

NAME: Final = ".step"
_FORM: Final = struct.Struct("<q")
NUM_BYTES: Final = _FORM.size


def pack(step: int) -> bytes:
    """Return the content of the file for a task that has committed `step` optimizer steps."""
    return _FORM.pack(step)


def unpack(content: bytes) -> int | None:
    """Return the optimizer steps in the content of the file; None if it says none."""
    if len(content) != NUM_BYTES:
        return None
    step = int(_FORM.unpack(content)[0])
    return step if step >= 0 else None


def read(log_dir: Path) -> int | None:
    """Return the optimizer steps that a task had committed; None if it never held a state, or cannot be known."""
    try:
        return unpack((log_dir / NAME).read_bytes())
    except OSError:
        return None
