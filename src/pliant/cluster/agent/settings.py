"""How the agent of a node is set up. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.core.confinement import IsolationMode
from pliant.core.job import NodeId

PRELOAD: Final = (
    "pliant.train",
    "pliant.entry.task",
    "pliant.entry.sidecar",
    "encodings.idna",
    "torch._dynamo",
    "pliant.train.rehearsal",
)
"""Modules that every task needs. Of the last three the first is imported when the first address is looked up, the
second by the first optimizer of a process, which takes a second; the third does what first steps do once."""
ENTRY: Final = "pliant.entry.task:main"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """How one agent is set up; fixed for its life."""

    node_id: NodeId
    state_dir: Path
    """Made if missing; one agent at a time."""
    num_slots: int | None = None
    """Share the CPU in so many slots; if left out, one slot per GPU, or per CPU where there is no GPU."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What resource groups choose this host by."""
    host: str = "127.0.0.1"
    """The address that peers reach this machine's tasks at."""
    memory_root: Path | None = None
    """Made if missing, in shared memory: what the tasks of a job keep there outlives them; None: there is none."""
    isolation: IsolationMode = "auto"
    uid: int | None = None
    """Such as people's processes run as, to try whether they can; None: the agent's own user."""
    may_read: tuple[str, ...] = ()
    """Folders and files that all tasks may read, as far as their modes allow."""
    may_write: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    """Folders that no task sees anything of, besides those that an order names."""
    max_disk_bytes: int | None = None
    """What all tasks of a job together may have on this node's disk; None: as much as fits."""
    max_log_bytes: int | None = None
    """What a task may have on it in its stdout, or in its stderr; None: as much as fits."""
    preload: tuple[str, ...] = PRELOAD
    """Modules that the zygote imports, so that tasks need not."""
    strange_environments: Mapping[str, str] = field(default_factory=dict)
    """Folders of environments that do not work on this machine, each with the reason."""
    has_copies: bool = False
    """It does not see the server's state folder: the folders of jobs here are copies."""
    waits_for_a_server: bool = True
    """It goes on when it has ended its tasks since no server was there for too long; else it ends."""
    entry: str = ENTRY
    """`module:function` of the tasks' program; the function takes the arguments and returns the exit code."""
