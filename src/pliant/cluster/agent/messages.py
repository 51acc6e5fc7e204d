"""What an adapter and the agent of a node say to each other, as `pliant.cluster.json_lines`. Shapes only, no logic.

The agent begins with an account of its node: `NodeFound`, an `Observed` for every task whose exit was not acknowledged,
`Spent`, `Readiness`, `Addresses`; and ends it with `UpToDate`. What follows are changes. Of a task it sends `Observed`,
then `Exited`, and `Exited` again when asked to (`ResendExits`) until the adapter has acknowledged it. An adapter that
was away, or is another one, asks for the account again (`Introduce`); that one has the exits in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.cluster.json_lines import by_kind
from pliant.core.job import JobId, TaskId
from pliant.core.machine import MachineFacts
from pliant.core.plan import NodeView
from pliant.core.ports import Address, LiveTask, StartOrder, TaskExit, TaskNote

# from the adapter


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a task. An id that lives or lived is ignored; an order that cannot be carried out ends in `Exited`."""

    order: StartOrder
    kind: Literal["start"] = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Send SIGTERM to a task, or ignore this if it does not live."""

    task_id: TaskId
    kind: Literal["drain"] = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Send SIGKILL to a task, or ignore this if it does not live."""

    task_id: TaskId
    kind: Literal["kill"] = "kill"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStacks:
    """Make a task write the stacks of its threads to its stderr, or ignore this if it does not live or cannot."""

    task_id: TaskId
    kind: Literal["write-stacks"] = "write-stacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSidecar:
    """Start a sidecar beside a task that runs. Its end comes as `SidecarEnded`, also if it could not be started."""

    order: StartOrder
    beside: TaskId
    kind: Literal["start-sidecar"] = "start-sidecar"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSidecar:
    """Send SIGKILL to a sidecar, or ignore this if it does not live."""

    sidecar_id: TaskId
    kind: Literal["end-sidecar"] = "end-sidecar"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendExits:
    """Send every exit again that was not acknowledged."""

    kind: Literal["resend-exits"] = "resend-exits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """The listener has this task's exit: record that, and do not send it again."""

    task_id: TaskId
    kind: Literal["acknowledge"] = "acknowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retain:
    """Remove what the tasks of all other jobs have left in shared memory."""

    job_ids: tuple[JobId, ...]
    kind: Literal["retain"] = "retain"


@dataclass(frozen=True, slots=True, kw_only=True)
class UseAddress:
    """The adapter has given away one of the free addresses: do not offer it again soon, and send another."""

    address: Address
    kind: Literal["use-address"] = "use-address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduce:
    """Send the account of the node again, as it is when all that came before is obeyed."""

    session: int
    """Of the adapter, counted from 1; the account says of which it is."""
    kind: Literal["introduce"] = "introduce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Carry out what came before, then end; the tasks go on."""

    kind: Literal["close"] = "close"


ToAgent = (
    Start
    | Drain
    | Kill
    | WriteStacks
    | StartSidecar
    | EndSidecar
    | ResendExits
    | Acknowledge
    | Retain
    | UseAddress
    | Introduce
    | Close
)

# from the agent


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFound:
    """The agent's node; an account of it begins."""

    node: NodeView
    session: int = 0
    """Whose `Introduce` it answers; 0: nobody's, the agent has begun."""
    kind: Literal["node-found"] = "node-found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A task holds slots; from the second time on, its process exists."""

    task: LiveTask
    kind: Literal["observed"] = "observed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """A task's process is gone, or it could not be started; its slots are free."""

    exit: TaskExit
    kind: Literal["exited"] = "exited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The owner of a task is to know something of it; sent once."""

    note: TaskNote
    kind: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarEnded:
    """A sidecar is gone; sent once."""

    sidecar_id: TaskId
    error: str = ""
    """Why it could not run, or was ended; empty if it ended by itself."""
    kind: Literal["sidecar-ended"] = "sidecar-ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Ids of tasks that live or lived: no task is started under them again."""

    task_ids: tuple[TaskId, ...]
    kind: Literal["spent"] = "spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How ready the zygote is: only a warm one starts a task in milliseconds, until then orders wait."""

    pid: int | None
    """None if none runs; the next start brings one up."""
    warm: bool
    warm_up_s: float | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """Modules that could not be imported, and why."""
    num_threads: int | None = None
    """More than one makes forks unsafe; every task is started cold then."""
    kind: Literal["readiness"] = "readiness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Changes of the stock of free addresses, so that no adapter has to wait for one."""

    added: tuple[Address, ...] = ()
    withdrawn: tuple[Address, ...] = ()
    """Somebody listens there now."""
    error: str = ""
    """Why the stock is not full."""
    kind: Literal["addresses"] = "addresses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """The agent has looked at everything; it does so once a second at least, and says so once a second at most."""

    zygote_silent_s: float = 0.0
    """So long the zygote has not answered."""
    kind: Literal["alive"] = "alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How the machine is; sent every ten seconds, if nothing there hangs."""

    facts: MachineFacts
    kind: Literal["measured"] = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpToDate:
    """The account of the node is complete; what follows are changes."""

    kind: Literal["up-to-date"] = "up-to-date"


FromAgent = (
    NodeFound | Observed | Exited | Noted | SidecarEnded | Spent | Readiness | Addresses | Alive | Measured | UpToDate
)

TO_AGENT: Final[Mapping[str, type[ToAgent]]] = by_kind(
    (
        Start,
        Drain,
        Kill,
        WriteStacks,
        StartSidecar,
        EndSidecar,
        ResendExits,
        Acknowledge,
        Retain,
        UseAddress,
        Introduce,
        Close,
    )
)
FROM_AGENT: Final[Mapping[str, type[FromAgent]]] = by_kind(
    (NodeFound, Observed, Exited, Noted, SidecarEnded, Spent, Readiness, Addresses, Alive, Measured, UpToDate)
)
