"""The process that chooses the values of one search's trials. Not for people to call.

`python -P -m pliant.entry.adviser SOCKET`, with the number of an open socket to who asks
(`pliant.tune.adviser_messages`); standard input stays open as long as that one lives, and nothing comes through it.
Exit codes: 0 when the socket is closed, 3 if who asks is gone.
"""

import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final

from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.questions import end_with_server, serve

MAX_MEMORY_BYTES: Final = 8 << 30
"""Of data, which is what it allocates; the code of torch, and what else is mapped from files, does not count."""


def main(argv: Sequence[str]) -> int:
    """Answer who is at the other end of the socket, whose number is the one argument, until it is gone."""
    (channel,) = argv
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    os.set_inheritable(int(channel), False)
    end_with_server(0)
    with socket.socket(fileno=int(channel)) as end, end.makefile("rwb") as lines:
        serve(lines, OptunaAdviser)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
