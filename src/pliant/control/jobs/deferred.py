"""Exits that are not judged yet: of tasks that may still say why they ended, and of tasks that nobody has seen yet.

A task's last message and the end of its process reach the server on two ways, in any order. Example: a script raises
at 5.00 s; its process is gone at 5.10 s, its link says `Failed` and is closed at 5.12 s. The exit is judged at 5.12 s,
with the message known; if the link stayed open it would be judged at 6.10 s (`messages_s` later) without it.
"""

from pliant.core.job import TaskId
from pliant.core.ports import TaskExit


class DeferredExits:
    """What is waited for, and until when. Used by the loop alone, under its lock."""

    def __init__(self) -> None:
        self._known: dict[TaskId, tuple[TaskExit, float]] = {}
        """Exits whose task may have more to say."""
        self._expected: dict[TaskId, float] = {}
        """Tasks that were not there when the server came back; their exits may be on their way."""

    def defer(self, ended: TaskExit, until: float) -> None:
        """Keep an exit until its task's link is closed; it is not waited for any more."""
        self.forget(ended.task_id)
        self._known[ended.task_id] = (ended, until)

    def expect(self, task_ids: frozenset[TaskId], until: float) -> None:
        """Wait for the exits of tasks that are not there."""
        self._expected = dict.fromkeys(task_ids, until)

    def take(self, task_id: TaskId) -> TaskExit | None:
        """Return the exit of a task that has nothing more to say, if it was kept, and keep it no longer."""
        return self._known.pop(task_id, (None, 0.0))[0]

    def due(self, now: float) -> list[TaskExit]:
        """Return exits that were kept long enough."""
        return [ended for ended, due in self._known.values() if due <= now]

    def vanished(self, now: float) -> list[TaskId]:
        """Return tasks whose exits were waited for long enough."""
        return [task_id for task_id, due in self._expected.items() if due <= now]

    def forget(self, task_id: TaskId) -> None:
        """Wait no more for the exit of a task."""
        self._expected.pop(task_id, None)

    def instants(self) -> list[float]:
        """Return when something is due."""
        return [*(due for _, due in self._known.values()), *self._expected.values()]

    def postpone(self, seconds: float) -> None:
        """Wait longer by this: the server stood still."""
        self._known = {task_id: (ended, due + seconds) for task_id, (ended, due) in self._known.items()}
        self._expected = {task_id: due + seconds for task_id, due in self._expected.items()}
