"""A process that looks at tasks' files for an agent, which starts it. Not for people to call.

`python -P -m pliant.entry.inspector SOCKET`, with the number of an open socket to the agent.
"""

import signal
import socket
import sys
from collections.abc import Sequence

from pliant.cluster.agent.inspection import serve


def main(argv: Sequence[str]) -> None:
    """Answer the agent at the other end of the socket, whose number is the one argument, until it is gone."""
    (channel,) = argv
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    with socket.socket(fileno=int(channel)) as end:
        serve(end)


if __name__ == "__main__":
    main(sys.argv[1:])
