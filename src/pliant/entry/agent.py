"""An agent in a process of its own: `python -P -m pliant.entry.agent`. Not for people to call.

A signal may end it at any moment: its tasks go on, and the next agent on the same folder adopts them.
"""

import argparse
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from pliant.cluster.agent.agent import Agent
from pliant.cluster.agent.channel import SocketChannel
from pliant.cluster.agent.settings import ENTRY, AgentSettings
from pliant.core.job import NodeId
from pliant.entry.clock import SystemClock
from pliant.isolation.variables import allowed


def main(argv: Sequence[str] | None = None) -> None:
    """Serve the adapter at the other end of the channel; go on without it for as long as there are tasks."""
    parser = argparse.ArgumentParser(prog="pliant.entry.agent", description=__doc__)
    parser.add_argument("--channel", type=int, required=True, help="number of the open socket to the adapter")
    parser.add_argument("--node", type=NodeId, required=True, help="name of the node")
    parser.add_argument("--state-dir", type=Path, required=True, help="folder of the task records")
    parser.add_argument("--num-slots", type=int, help="shares of the CPU; left out: the GPUs, or else the CPUs")
    parser.add_argument("--memory-root", type=Path, help="folder in shared memory")
    parser.add_argument("--preload", action="append", default=[], help="a module to import before the first task")
    parser.add_argument("--pass-env", action="append", default=[], help="a variable that all tasks get")
    parser.add_argument("--entry", default=ENTRY, help="module:function of the tasks' program")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    settings = AgentSettings(
        node_id=options.node,
        state_dir=options.state_dir,
        num_slots=options.num_slots,
        memory_root=options.memory_root,
        preload=tuple(options.preload),
        entry=options.entry,
    )
    channel = SocketChannel(socket.socket(fileno=options.channel))
    Agent(settings, channel, clock=SystemClock(), base_env=allowed(os.environ, options.pass_env)).run()


if __name__ == "__main__":
    main()
