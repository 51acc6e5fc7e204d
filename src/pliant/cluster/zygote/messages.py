"""What agent and zygote say to each other: one JSON object per line, told apart by `kind`. Shapes only, no logic."""

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from pliant.core.job import TaskId
from pliant.core.ports import RunAs

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """From the agent: start this task."""

    task_id: TaskId
    slots: tuple[int, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Added to the zygote's environment; holds secrets."""
    cwd: str
    log_dir: str
    python: str | None
    """Another interpreter; the task is started cold."""
    run_as: RunAs | None = None
    """Another user of the operating system to run as."""
    read_only: tuple[str, ...] = ()
    """Folders that the task shall read and not write."""
    kind: Literal["launch"] = "launch"


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
    kind: Literal["ended"] = "ended"


Message = Launch | Warm | Started | Ended

_KINDS: Final[Mapping[str, type[Message]]] = {"launch": Launch, "warm": Warm, "started": Started, "ended": Ended}


def encode(message: Message) -> bytes:
    """Return the line of a message."""
    return json.dumps(asdict(message)).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message in a line."""
    fields: dict[str, Any] = json.loads(line)
    fields |= {name: tuple(fields[name]) for name in ("slots", "argv", "read_only") if name in fields}
    if fields.get("run_as") is not None:
        given: dict[str, Any] = fields["run_as"]
        fields["run_as"] = RunAs(**{name: tuple(value) for name, value in given.items()} | {"user": given["user"]})
    return _KINDS[fields["kind"]](**fields)


class Inbox:
    """Cuts what comes out of a socket into messages."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._rest = b""

    def read(self) -> Iterator[Message] | None:
        """Return the messages that one read completes; None at the end of the stream.

        Raises:
            BlockingIOError: nothing is there, on a socket that does not wait.
        """
        try:
            chunk = self._channel.recv(_CHUNK)
        except ConnectionResetError:
            return None
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return map(decode, lines)
