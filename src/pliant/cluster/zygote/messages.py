"""What agent and zygote say to each other, as `pliant.cluster.json_lines`. Shapes only, no logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.cluster.json_lines import by_kind
from pliant.core.confinement import Confinement
from pliant.core.job import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """From the agent: start this task. What it is lies in a file that the child alone reads, since it holds secrets."""

    task_id: TaskId
    slots: tuple[int, ...]
    beside: TaskId | None = None
    """It is a sidecar of this task: it has no record, and ends with the task."""
    group: str | None = None
    """The control group that a sidecar joins; that of a task stands in its record."""
    kind: Literal["launch"] = "launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgram:
    """From the agent to the child, past the zygote: what to become."""

    task_id: TaskId
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Added to the zygote's environment; holds secrets."""
    cwd: str
    log_dir: str
    """Where stdout and stderr go; empty: nowhere."""
    python: str | None = None
    """Another interpreter; the task is started cold."""
    entry: str | None = None
    """`module:function` to run in place of the tasks' program, without the folder on the path; None: that one."""
    confinement: Confinement | None = None
    """What it may reach; None: all that the agent may."""
    kind: Literal["program"] = "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """From the agent: answer that you are well."""

    kind: Literal["ping"] = "ping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """From the zygote: the answer."""

    kind: Literal["pong"] = "pong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """From the zygote: the modules are imported, from now on a start takes milliseconds."""

    seconds: float
    """The imports took this long."""
    num_threads: int
    """More than one makes a fork unsafe; every task is started cold then."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Modules that could not be imported, and why; tasks that need them meet the same error."""
    kind: Literal["warm"] = "warm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """From the zygote: the task's process exists and its record is written."""

    task_id: TaskId
    pid: int
    stamp: str | None
    """None if it has ended already."""
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """From the zygote: the task has ended, or could not be started."""

    task_id: TaskId
    exit_code: int | None
    error: str = ""
    cause: str = ""
    """Why it was ended though nobody had asked for that, in words that follow its name."""
    kind: Literal["ended"] = "ended"


PROGRAM: Final[Mapping[str, type[TaskProgram]]] = by_kind((TaskProgram,))

ZygoteMessage = Launch | Ping | Pong | Warm | Started | Ended

KINDS: Final[Mapping[str, type[ZygoteMessage]]] = by_kind((Launch, Ping, Pong, Warm, Started, Ended))
