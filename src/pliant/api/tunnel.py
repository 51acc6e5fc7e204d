"""Tunnels over REST: what asks for one, what answers, and where the two ends of it connect."""

from dataclasses import dataclass, field
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import Field, StringConstraints, field_validator

from pliant.api.request import Request

TUNNELS_PATH: Final = "/v1/tunnels/{tunnel_id}"
"""Where the client of a tunnel connects by WebSocket; its ticket in the Authorization header."""
INSIDE_PATH: Final = "/v1/tunnels/{tunnel_id}/inside"
"""Where its sidecar connects; proof of its key in the Authorization header."""
MAX_COMMAND_BYTES: Final = 64 << 10

_Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
_Length = Annotated[int, Field(ge=1, le=10_000)]


class TerminalRequest(Request):
    """The terminal that a shell is to run on."""

    term: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")] = "xterm"
    """What TERM is to say."""
    rows: _Length = 24
    columns: _Length = 80


class ShellRequest(Request):
    """A shell beside a task."""

    task: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """The number of the task, such as 2 for `job-1.2`; not needed if only one runs."""
    command: tuple[_Word, ...] = Field(default=(), max_length=1000)
    """What to run in place of a shell, and its arguments."""
    terminal: TerminalRequest | None = None
    """Left out: it runs on pipes, and what it writes to stderr comes apart."""

    @field_validator("command")
    @classmethod
    def _fits(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if sum(len(word.encode("utf-8", "surrogateescape")) for word in command) > MAX_COMMAND_BYTES:
            raise ValueError(f"it is longer than {MAX_COMMAND_BYTES >> 10} KiB; put it in a file of the job")
        if command and not command[0]:
            raise ValueError("it begins with an empty word; say which program to run")
        return command


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelView:
    """A tunnel that was made; its client has a minute to connect."""

    id: str
    task_id: str
    ticket: str = field(repr=False)
    """Opens it, once."""


def outside_path(tunnel_id: str) -> str:
    """Return the path where the client of a tunnel connects."""
    return TUNNELS_PATH.format(tunnel_id=quote(tunnel_id, safe=""))


def inside_path(tunnel_id: str) -> str:
    """Return the path where its sidecar connects."""
    return INSIDE_PATH.format(tunnel_id=quote(tunnel_id, safe=""))
