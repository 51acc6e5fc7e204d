"""The zygote's process, started by the local agent: `python -P -m pliant.entry.zygote`. Not for people to call."""

import argparse
import gc
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> None:
    """Serve the agent at the other end of the channel."""
    gc.disable()  # until what tasks need is imported
    from pliant.cluster import process
    from pliant.cluster.zygote.zygote import Zygote, ZygoteSettings
    from pliant.entry.clock import SystemClock

    parser = argparse.ArgumentParser(prog="pliant.entry.zygote", description=__doc__)
    parser.add_argument("--channel", type=int, required=True, help="number of the open socket to the agent")
    parser.add_argument("--state-dir", type=Path, required=True, help="folder of the task records")
    parser.add_argument("--term", type=int, required=True, help="the agent's term")
    parser.add_argument("--entry", required=True, help="module:function of the tasks' program")
    parser.add_argument("--preload", action="append", default=[], help="a module to import before the first task")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    os.chdir("/")
    process.close_files(but=options.channel)  # a lock of the server's must not live on in here
    settings = ZygoteSettings(
        state_dir=options.state_dir, term=options.term, entry=options.entry, preload=tuple(options.preload)
    )
    Zygote(socket.socket(fileno=options.channel), settings, SystemClock()).run()


if __name__ == "__main__":
    main()
