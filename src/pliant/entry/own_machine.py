"""What the server and the agent of another machine do alike with the machine that they are on."""

import os
from pathlib import Path
from typing import Final

AGENTS_FILE: Final = Path("address") / "agents.json"
"""In the state folder: where agents find the server, and by what they see that it is the same folder."""
SERVER_FILE: Final = Path("address") / "server.json"
"""There: where clients on this machine, tasks and gateways find the server."""
_SHARED: Final = ".pliant-shared-"
_NUM_DIGITS: Final = 12
FOR_TORCH: Final = {"TORCH_CPP_LOG_LEVEL": "ERROR", "THP_MEM_ALLOC_ENABLE": "1"}
"""What tasks have if neither the operator nor their job says otherwise. Torch warned in their logs whenever a
connection of a generation that is over closes. And most machines give large pages only to a program that asks for them,
which torch does for tensors of 2 MiB and more: new memory is four times as fast then."""
SHARED_MEMORY: Final = Path("/dev/shm")


def shared_probe(folder: Path, probe: str) -> Path:
    """Return the file in a folder that all machines of a pool see, by which they know that it is the same."""
    return folder / f"{_SHARED}{probe[:_NUM_DIGITS]}"


def homes() -> tuple[str, ...]:
    """Return the home of the user whose process this is, which no task needs."""
    home = os.path.expanduser("~")
    return (home,) if os.path.isabs(home) and os.path.isdir(home) and os.path.dirname(home) != home else ()
