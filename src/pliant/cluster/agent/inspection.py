"""What an agent asks the processes that look at tasks' files for it, what they answer, and what such a process does.

They are processes of their own because a file system can hold up whoever opens a file on it, for ever: then they wait,
and the agent, its tasks and its zygote go on (`pliant.cluster.agent.inspector`).
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from pliant.cluster.agent.disk_watch import DiskFindings, DiskWatch, JobFiles
from pliant.cluster.agent.exit_facts import collect
from pliant.cluster.agent.log_limits import LogCut, TaskLogs, cut_logs
from pliant.cluster.json_lines import LineSocket, by_kind, decode, encode
from pliant.cluster.zygote.records import Record
from pliant.core.ports import ExitFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspect:
    """Look at what a task left behind whose process is gone."""

    number: int = 0
    """Of this question."""
    record: Record
    kind: Literal["inspect"] = "inspect"

    def __str__(self) -> str:
        return f"what {self.record.task_id} left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What was found; questions are answered in their order."""

    number: int
    facts: ExitFacts
    kind: Literal["inspected"] = "inspected"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureDisk:
    """Look whether jobs hold too much of the disk; these are all that have tasks."""

    number: int = 0
    max_bytes: int
    jobs: tuple[JobFiles, ...]
    kind: Literal["measure_disk"] = "measure_disk"

    def __str__(self) -> str:
        return f"what {', '.join(job.job for job in self.jobs)} hold on the disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskMeasured:
    """Which do; a job that was not measured this time is not named."""

    number: int
    findings: DiskFindings
    kind: Literal["disk_measured"] = "disk_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLogs:
    """Cut logs that are too long."""

    number: int = 0
    max_bytes: int
    logs: tuple[TaskLogs, ...]
    kind: Literal["cut_logs"] = "cut_logs"

    def __str__(self) -> str:
        return f"how long the logs of {', '.join(log.task_id for log in self.logs)} are"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsCut:
    """Which were."""

    number: int
    cuts: tuple[LogCut, ...]
    kind: Literal["logs_cut"] = "logs_cut"


Question = Inspect | MeasureDisk | CutLogs
Answer = Inspected | DiskMeasured | LogsCut

QUESTIONS: Final[Mapping[str, type[Question]]] = by_kind((Inspect, MeasureDisk, CutLogs))
ANSWERS: Final[Mapping[str, type[Answer]]] = by_kind((Inspected, DiskMeasured, LogsCut))


def serve(channel: socket.socket) -> None:
    """Answer until the agent at the other end is gone."""
    lines, watch = LineSocket(channel), DiskWatch()
    while (found := lines.receive()) is not None:
        for line in found:
            lines.put(encode(_answer(decode(line, QUESTIONS), watch)))
            lines.flush()


def _answer(asked: Question, watch: DiskWatch) -> Answer:
    match asked:
        case Inspect():
            return Inspected(number=asked.number, facts=collect(asked.record, out_of_memory=False))
        case MeasureDisk():
            return DiskMeasured(number=asked.number, findings=watch.look(asked.jobs, asked.max_bytes))
        case CutLogs():
            return LogsCut(number=asked.number, cuts=cut_logs(asked.logs, asked.max_bytes))
        case _:
            assert_never(asked)
