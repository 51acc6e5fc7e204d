"""Who trains with whom: what is known of one job's tasks (`Membership`), what may happen to it, and what follows.

Theory of operation
===================
The tasks of a job train together in a *generation*: its members, in rank order. Nobody joins or leaves one. When the
members are to change, the next generation is announced; it forms (its members connect to each other) while the current
one trains on, and all go over to it at a step boundary:

    announced, forming ---- its leader says Switched ----> current: it trains ---- the next one is ----> over
        |                                                      |
        +---- it failed for a member, or a member is lost -----+----> abandoned: whoever is in it waits for another

At most one generation is current and at most one forms. Numbers only grow, so that everything said about an older
generation is known to be old.

After every event the next generation is worked out anew (`generation`). While one forms, none is announced. If nobody
trains, all who hold a state form the next one, wanted or not: any of them may be the only one with the newest step.
Otherwise the members are brought to the tasks that the scheduler wants, with these rules:
- leavers go at once; a newcomer that is ready waits a moment for others that were ordered, so that all join together;
- if all members are to go, one stays until the newcomers have its state.

Example: A trains alone in generation 1. At 10.0 s the scheduler wants A, B and C.

    10.0  Ready from B                  C was ordered too, so B waits until 10.3 at the latest
    10.1  Ready from C                  announced: generation 2 = A, B, C; all three are sent a `Form`
    10.1  Switched from A, step 40      2 is current: it trains on three tasks; one was in the generation before
    12.0  B's process exits             2 is abandoned, A and C are told; announced: generation 3 = A, C
    12.0  Switched from A, step 41      3 is current

The coordinator (`coordinator.handle`) takes in one event at a time. Messages may be lost with a connection and said
again, a process may be gone before what it said is heard, and the server may crash after any event and be started from
what the store holds (`restore`). So everything may be told twice, and what is old changes nothing.

Invariants:
- generation numbers only grow; at most one generation is current and at most one forms;
- a forming generation has only ready members; those who hold state come first;
- a task that nobody wants stays in a generation that forms after a loss, so that a committed step that only it holds is
  not lost, and in a planned one if no member of the one before is wanted, so that the newcomers get its state; it
  leaves with the next planned change;
- nobody recovers without a live task that may hold state: whoever was a member of a generation and, after a restart,
  whoever has not said hello yet.

Knows nothing of sockets, stores or processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pliant.core.job import JobId, TaskId
from pliant.core.link import Hello, Left, Lost, Ready, Switched, ToTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The scheduler wants exactly these tasks: live ones to stay, ordered ones to join. Empty: everybody leaves."""

    tasks: frozenset[TaskId]
    cause: str = ""
    """Why, in words; told to people with the generation that follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMessage:
    """A task said something. Messages that do not concern membership are ignored."""

    task_id: TaskId
    message: Hello | Ready | Switched | Lost | Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A task's process has exited, for whatever reason."""

    task_id: TaskId
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Severed:
    """These tasks do not train with the others any more, whatever they do; their processes may not have exited yet."""

    tasks: tuple[TaskId, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed."""


MembershipEvent = Wanted | TaskMessage | Gone | Severed | Tick


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationView:
    """A generation that forms or trains."""

    number: int
    members: tuple[TaskId, ...]
    cause: str = ""
    dead: bool = False
    """It was abandoned: whoever is in it waits for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """What is known of one live task."""

    ready: bool = False
    ready_at: float = 0.0
    host: str = ""
    port: int = 0
    holds_state: bool = False
    """It trained once, so it has a state that a recovery may need."""
    left: bool = False
    """It said that it left; its process is about to exit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The coordinator's state for one job."""

    job_id: JobId
    number: int = 0
    """The highest generation number ever announced."""
    current: GenerationView | None = None
    """The generation that trains, or that trained last if it is dead."""
    forming: GenerationView | None = None
    tasks: Mapping[TaskId, TaskStatus] = field(default_factory=dict)
    wanted: frozenset[TaskId] = field(default_factory=frozenset)
    cause: str = ""
    num_failures: int = 0
    """Generations in a row that were announced and never trained."""
    retry_at: float = 0.0
    gather_s: float = 0.3
    """A newcomer that is ready waits this long for others that were ordered, so that all join in one change."""
    wake_at: float | None = None
    """Feed a `Tick` at this instant at the latest; None if time alone changes nothing."""

    @property
    def active(self) -> tuple[TaskId, ...]:
        """Members of the generation that trains, in rank order; empty if none does."""
        return self.current.members if self.current is not None and not self.current.dead else ()

    def status_of(self, task_id: TaskId) -> TaskStatus:
        """Return what is known of a task; of one that was never heard of, nothing."""
        return self.tasks.get(task_id, TaskStatus())

    def newest_holders(self) -> frozenset[TaskId]:
        """Return the live tasks that hold the newest state, or one that is a step older, as far as is known.

        Those that trained last; only if none of them is left, whoever may hold a state. Of a newcomer whose generation
        was given up before it trained that is believed, too, so that nothing is lost; but perhaps it holds none.
        """
        known = frozenset(task for task, status in self.tasks.items() if status.holds_state and not status.left)
        trained = known.intersection(self.current.members if self.current is not None else ())
        return trained or known

    def trains_in(self, generation: int | None) -> bool:
        """Tell whether this is the generation that trains."""
        return self.current is not None and not self.current.dead and self.current.number == generation

    def is_over(self, generation: int) -> bool:
        """Tell whether a generation neither trains nor forms."""
        return not self.trains_in(generation) and (self.forming is None or self.forming.number != generation)

    def concerned_by(self, generation: GenerationView) -> tuple[TaskId, ...]:
        """Return the live tasks to be told of a generation: its members, and those of the current one."""
        current = self.current.members if self.current is not None else ()
        both = dict.fromkeys((*generation.members, *current))
        return tuple(task for task in both if task in self.tasks and not self.tasks[task].left)


def restore(
    job_id: JobId,
    *,
    number: int,
    active: GenerationView | None,
    forming: GenerationView | None,
    wanted: frozenset[TaskId],
    leaving: frozenset[TaskId] = frozenset(),
) -> Membership:
    """Rebuild the state from what the store remembers; the live tasks will say `Hello`.

    `number` is the highest generation ever recorded. Every task of `wanted`, of `leaving` (live ones that are not
    wanted any more) and of the generations is believed to live until a `Gone` says otherwise, and to hold state until
    its `Hello` says otherwise.
    """
    members = (*(active.members if active else ()), *(forming.members if forming else ()), *sorted(wanted | leaving))
    return Membership(
        job_id=job_id,
        number=number,
        current=active,
        forming=forming,
        tasks={task: TaskStatus(holds_state=True) for task in members},
        wanted=wanted,
    )


def put_status(membership: Membership, task_id: TaskId, status: TaskStatus) -> Membership:
    """Note what is known of a task."""
    if membership.tasks.get(task_id) == status:
        return membership
    return replace(membership, tasks={**membership.tasks, task_id: status})


def presume_state(membership: Membership, generation: GenerationView) -> Membership:
    """Believe of all members of a generation that they entered it, whether or not they have said so yet."""
    tasks = {
        task: replace(status, holds_state=True) if task in generation.members else status
        for task, status in membership.tasks.items()
    }
    return replace(membership, tasks=tasks)
