"""Where a machine keeps what is its own: homes may be on a disk that machines share."""

import os
from pathlib import Path


def machine_folder(name: str) -> Path:
    """Return the folder for this name on this machine; it may not be there yet."""
    if os.geteuid() == 0:
        return Path("/var/lib/pliant") / name
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "pliant" / name
