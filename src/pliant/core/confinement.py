"""What a process that runs a person's code may reach of its machine.

Values only; `pliant.isolation` puts it in force.
"""

from dataclasses import dataclass
from typing import Literal

IsolationMode = Literal["auto", "required", "off"]
"""`auto`: what this machine can. `required`: nothing starts where a wall is missing. `off`: modes of files alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """Another user of the operating system: one of the machine's user database by name, or an id of its own."""

    name: str = ""
    """Empty: there is only the id."""
    uid: int | None = None
    """Also the id of its group; None: that of the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What one process may reach. The system's own files may be read by everybody; nothing else but what stands here.

    Paths are whole. One that is not there is left out.
    """

    user: RunAs | None = None
    """Whom it runs as; None: the server's own user."""
    writes: tuple[str, ...] = ()
    """Folders of its own: read, write, execute. They become the user's with all they hold, unless they are already."""
    shares: tuple[str, ...] = ()
    """Folders that it may write to as well as their modes let it; they stay whose they are."""
    reads: tuple[str, ...] = ()
    """Folders and files that it may read and execute, and not write."""
    named: tuple[str, ...] = ()
    """What a person named: read like `reads`, if no link is on the way. They may change it after it was checked."""
    hides: tuple[str, ...] = ()
    """Folders of which it sees nothing but what stands above; the first is the server's own."""
    temporary: str | None = None
    """A folder that it sees as /tmp and /var/tmp; None: it has neither."""
    memory: str | None = None
    """A folder in shared memory that it sees as /dev/shm; None: it has none."""
    devices: tuple[str, ...] = ()
    """Device files besides the harmless ones that everybody has."""
    max_file_bytes: int | None = None
    """No file that it writes may be longer; None: as long as the system lets it."""
    has_network: bool = True
    """It may make sockets of the network; else it can only use those that it was started with, and those of its own
    machine that lie where it may write."""
    sees_all: bool = False
    """It sees what lies elsewhere, though it cannot read it: a program of ours that looks where a person says."""
    required: bool = False
    """It does not start where a wall is missing."""
