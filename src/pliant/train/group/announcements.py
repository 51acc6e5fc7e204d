"""The generations that the server has announced to one task, and how far each of them is here.

Pure bookkeeping without a lock or a thread; `TaskMembership` holds the lock.

Example, for task A in generation 1 with B. Rows in the order of time:

    what happens                     newest   A pledges
    Form 2 (A, B, C)                 2        nothing: A is not connected with B and C yet
    A is connected in 2              2        2
    Form 3 (A, B), since C died      3        nothing: 3 is newer, and A is not connected in it yet
    A is connected in 3              3        3
    Abandon 2                        3        3, and the connections of 2 are dropped
    Form 4 (B)                       4        4: A is not a member, so it needs no connection to leave
"""

from dataclasses import dataclass, field
from typing import Final

from pliant.core.job import TaskId
from pliant.core.link import Form
from pliant.train.group.collectives import Group

REFORMS_S: Final = 6.0
"""A generation that failed is announced again within this time, however often it has failed."""


@dataclass(slots=True, kw_only=True)
class Announcements:
    """What the server has announced to a task. Generations are numbered from 1."""

    task_id: TaskId
    forms: dict[int, Form] = field(default_factory=dict)
    """By generation; only those that are newer than the one that was entered last."""
    connected: dict[int, Group] = field(default_factory=dict)
    """Groups of announced generations, ready to be entered."""
    abandoned: set[int] = field(default_factory=set)
    abandoned_at: float = 0.0
    """When a generation was given up last; monotonic, seconds."""
    last: Form | None = None
    """The newest announcement in which this task is a member, also if it did not connect in it."""
    dismissed: str | None = None
    """Why this task must leave at once; None if it need not."""
    departs: bool = False
    """Its program was told to leave: by an exception, which is raised or about to be."""
    entered: int = 0
    """The generation that the task stands in or stood in last."""

    def add(self, form: Form) -> bool:
        """Add an announcement; return False if it is old, known, or abandoned already."""
        number = form.generation
        if number <= self.entered or number in self.forms or number in self.abandoned:
            return False
        self.forms[number] = form
        if self.task_id in form.members:
            self.last = form
        return True

    def give_up(self, reason: str) -> str | None:
        """Note that the program is told to leave, and return why it must; None if it was told before."""
        if self.departs:
            return None
        self.departs = True
        self.dismissed = reason if self.dismissed is None else self.dismissed
        return self.dismissed

    def abandon(self, number: int, now: float = 0.0) -> None:
        """Give a generation up; whoever waits in it must see that this task does not come."""
        self.abandoned.add(number)
        self.abandoned_at = now
        self.drop(number)

    def drop(self, number: int) -> None:
        """Close the connections of a generation that was not entered."""
        group = self.connected.pop(number, None)
        if group is not None:
            group.drop()

    def newest(self) -> Form | None:
        """Return the newest announcement that was not abandoned."""
        live = [number for number in self.forms if number > self.entered and number not in self.abandoned]
        return self.forms[max(live)] if live else None

    def unconnected(self, now: float) -> Form | None:
        """Return the newest announcement in which this task was to connect, if it has not; None otherwise.

        One that was given up counts for a while yet: it is announced again if the same tasks are still to train.
        """
        form = self.last
        if form is None or form.generation <= self.entered or form.generation in self.connected:
            return None
        return None if form.generation in self.abandoned and now - self.abandoned_at > REFORMS_S else form

    def newest_connected(self) -> Form | None:
        """Return the newest announcement if the task is a member and connected; None otherwise."""
        form = self.newest()
        return form if form is not None and form.generation in self.connected else None

    def pledge(self) -> int | None:
        """Return the number of the newest generation if the task is ready to switch to it, or to leave by it."""
        form = self.newest()
        if form is None or (self.task_id in form.members and form.generation not in self.connected):
            return None
        return form.generation

    def is_over(self, number: int) -> bool:
        """Tell whether an announced generation will not be entered any more. May be called without the lock."""
        return self.dismissed is not None or number in self.abandoned or number <= self.entered

    def enter(self, number: int) -> None:
        """Note that a generation was entered; forget it and those before it."""
        self.entered = number
        for old in [old for old in self.forms if old <= number]:
            self.drop(old)
            del self.forms[old]
        self.abandoned = {abandoned for abandoned in self.abandoned if abandoned >= number}
