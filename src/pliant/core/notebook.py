"""Where the notebook server of a job listens, and what opens it: the script that runs it and its sidecar agree on that.

Both have the same user, the same files and the same variables, and nobody else has all of them. So the server listens
at a socket in a folder of the job's own, and its token lies in a file beside it: not on a command line, in no variable
and in no log.
"""

import re
from collections.abc import Mapping
from typing import Final

SCRIPT: Final = ".pliant-notebook.py"
"""What such a job runs; it lies beside its code, and no list of files shows it."""
SCRIPT_TEXT: Final = """\
from pliant.integrations.jupyter.serve import main

main()
"""
SOCKET: Final = "pliant-notebook.sock"
TOKEN_FILE: Final = "pliant-notebook-token"
TAG: Final = "notebook"
"""Jobs that run one are found by it."""
DEFAULT_IDLE: Final = "30m"
_RUNTIME: Final = "JUPYTER_RUNTIME_DIR"
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_-]{20,128}")


def folder_of(env: Mapping[str, str]) -> str:
    """Return the folder in which both lie, by the variables of the task."""
    return env.get(_RUNTIME) or env.get("HOME") or "."


def read_token(content: bytes) -> str:
    """Return the token that was sent from within a job; it comes into an address and onto a terminal.

    Raises:
        ValueError: it is none.
    """
    if not _TOKEN.fullmatch(content):
        raise ValueError("what came in the place of a token is none")
    return content.decode()
