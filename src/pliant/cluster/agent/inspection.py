"""What an agent and the process that looks at what tasks left behind say to each other, and what that process does.

It is a process of its own because a file system can hold up whoever opens a file on it, for ever: then this process
waits, and the agent, its tasks and its zygote go on (`pliant.cluster.agent.inspector`).
"""

import socket
from dataclasses import dataclass
from typing import Final, Literal

from pliant.cluster.agent.exit_facts import collect
from pliant.cluster.json_lines import LineSocket, by_kind, decode, encode
from pliant.cluster.zygote.records import Record
from pliant.core.ports import ExitFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect:
    """Look at what a task left behind whose process is gone."""

    number: int
    """Of this question."""
    record: Record
    kind: Literal["inspect"] = "inspect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What was found; questions are answered in their order."""

    number: int
    facts: ExitFacts
    kind: Literal["inspected"] = "inspected"


QUESTIONS: Final = by_kind((Inspect,))
ANSWERS: Final = by_kind((Inspected,))


def serve(channel: socket.socket) -> None:
    """Answer until the agent at the other end is gone."""
    lines = LineSocket(channel)
    while (found := lines.receive()) is not None:
        for line in found:
            asked = decode(line, QUESTIONS)
            lines.put(encode(Inspected(number=asked.number, facts=collect(asked.record, out_of_memory=False))))
            lines.flush()
