"""News that control waits for a moment for before it judges: last words of a task, exits from before its own time."""

from pliant.core.job import TaskId
from pliant.core.ports import TaskExit


class Awaited:
    """What is waited for, and until when. Used by the loop alone, under its lock."""

    def __init__(self) -> None:
        self._late: dict[TaskId, tuple[TaskExit, float]] = {}
        """Exits whose task may have more to say."""
        self._missing: dict[TaskId, float] = {}
        """Tasks that nobody saw when the server came back; the news of their exit may be on its way."""

    def words(self, ended: TaskExit, until: float) -> None:
        """Wait for the last words of a task that has ended."""
        self._late[ended.task_id] = (ended, until)

    def exits(self, task_ids: frozenset[TaskId], until: float) -> None:
        """Wait for news of tasks that are not there."""
        self._missing = dict.fromkeys(task_ids, until)

    def spoken(self, task_id: TaskId) -> TaskExit | None:
        """Return the exit that waited for a task's last words, now that there will be no more."""
        return self._late.pop(task_id, (None, 0.0))[0]

    def due_words(self, now: float) -> list[TaskExit]:
        """Return exits that have waited long enough."""
        return [ended for ended, due in self._late.values() if due <= now]

    def due_exits(self, now: float) -> list[TaskId]:
        """Return missing tasks that have been waited for long enough."""
        return [task_id for task_id, due in self._missing.items() if due <= now]

    def give_up(self, task_id: TaskId) -> None:
        """Wait no more for a task."""
        self._missing.pop(task_id, None)

    def instants(self) -> list[float]:
        """Return when something is due."""
        return [*(due for _, due in self._late.values()), *self._missing.values()]

    def postpone(self, seconds: float) -> None:
        """Wait longer by this: the server stood still."""
        self._late = {task_id: (ended, due + seconds) for task_id, (ended, due) in self._late.items()}
        self._missing = {task_id: due + seconds for task_id, due in self._missing.items()}
