"""Who trains with whom: the membership coordinator of one job, a pure state machine.

`handle(membership, event, now)` returns the next state and the effects to perform. It knows nothing of sockets, stores
or processes; the control loop feeds it and carries out what it says. Everything may be told twice.

Invariants:
- generation numbers only grow; at most one generation is active and at most one is forming;
- a forming generation has only ready members; those who hold state come first;
- a task that nobody wants is never a member of a planned generation, but stays in one that forms after a loss, so that
  a committed step that only it holds is not lost; it leaves with the next planned change.
"""

from dataclasses import dataclass

from pliant.core.job import TaskId
from pliant.core.link import Broken, Hello, Left, Ready, Switched, ToTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The scheduler wants exactly these tasks to stay (and those it has ordered to join). Empty: everybody leaves."""

    tasks: frozenset[TaskId]
    cause: str = ""
    """Why, in words; told to people with the generation that follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A task said something. Messages that do not concern membership are ignored."""

    task_id: TaskId
    message: Hello | Ready | Switched | Broken | Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A task's process has exited, for whatever reason."""

    task_id: TaskId
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed."""


MembershipEvent = Wanted | Heard | Gone | Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send this message to this task."""

    task_id: TaskId
    message: ToTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A generation was announced; record it as forming. (The `Form` messages are effects of their own.)"""

    generation: int
    members: tuple[TaskId, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """A generation trains; the one before it is retired."""

    generation: int
    members: tuple[TaskId, ...]
    from_size: int
    """Size of the generation that trained before; 0 if none did."""
    step: int
    pause_s: float
    redone_steps: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A generation was given up."""

    generation: int
    reason: str


Effect = Send | Announced | Activated | Abandoned
