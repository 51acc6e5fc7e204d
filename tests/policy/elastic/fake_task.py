"""One task of the model: its session, its engine and its end of the link, reduced to what decides who trains."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from pliant.core.job import JobId, TaskId
from pliant.core.link import Form, Hello, Left, Lost, Ready, Switched, ToTask

JOB = JobId("job-1")
Message = Hello | Ready | Switched | Lost | Left


class Phase(Enum):
    """What a task's training thread does."""

    BUILDING = auto()
    """Imports, builds its model."""
    WAITING = auto()
    """Waits for a generation that is connected."""
    JOINING = auto()
    """Stands in a generation and compares its state with the others'."""
    TRAINING = auto()
    LEAVING = auto()
    """Trains no more; the process is about to exit."""


@dataclass(slots=True, kw_only=True)
class FakeTask:
    """One process: its session, its engine, and its end of the link."""

    id: TaskId
    phase: Phase = Phase.BUILDING
    alive: bool = True
    linked: bool = True
    forms: dict[int, Form] = field(default_factory=dict)
    connecting: set[int] = field(default_factory=set)
    connected: set[int] = field(default_factory=set)
    abandoned: set[int] = field(default_factory=set)
    dismissed: bool = False
    standing: Form | None = None
    """The generation it stands in."""
    trained: int | None = None
    """The last one it trained in."""
    step: int | None = None
    """Steps that its state has committed; None if it holds no state."""
    inbox: deque[ToTask] = field(default_factory=deque)
    outbox: deque[Message] = field(default_factory=deque)

    @property
    def here(self) -> int:
        return self.standing.generation if self.standing else 0

    def hello(self) -> Hello:
        ready = self.phase is not Phase.BUILDING
        return Hello(
            task_id=self.id,
            pid=1,
            generation=self.trained,
            step=self.step,
            lost=self.stands_still(),
            failed=self.here if self.phase is Phase.WAITING and self.standing is not None else None,
            ready=ready,
            host=self.id if ready else "",
            port=1 if ready else 0,
        )

    def stands_still(self) -> bool:
        lost = self.phase is Phase.WAITING and self.standing is not None
        return lost or self.here != (self.trained or 0) or (self.standing is None and bool(self.forms))

    def newest(self) -> Form | None:
        live = [n for n in self.forms if n > self.here and n not in self.abandoned]
        return self.forms[max(live)] if live else None

    def pledge(self) -> int | None:
        form = self.newest()
        if form is None or (self.id in form.members and form.generation not in self.connected):
            return None
        return form.generation
