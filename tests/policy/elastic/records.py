"""What the server's store holds of a job's generations, and what a server that starts again takes from it."""

from collections.abc import Iterable
from dataclasses import dataclass

from pliant.core.job import JobId, TaskId
from pliant.policy.elastic.membership import (
    Abandoned,
    Activated,
    Announced,
    Effect,
    GenerationView,
    Membership,
    Send,
    restore,
)


@dataclass(slots=True, kw_only=True)
class Record:
    """What the store holds of a generation."""

    members: tuple[TaskId, ...]
    cause: str
    state: str


class Records:
    """The generations by number."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}

    def store(self, effect: Effect) -> None:
        """Take in what the server has decided."""
        match effect:
            case Announced():
                assert effect.generation > self._newest, "numbers grow"
                self._end("forming", "abandoned")
                record = Record(members=effect.members, cause=effect.cause, state="forming")
                self._records[effect.generation] = record
            case Activated():
                record = self._records[effect.generation]
                assert record.state == "forming"
                self._end("active", "retired")
                record.state = "active"
            case Abandoned():
                assert self._records[effect.generation].state in ("forming", "active")
                self._records[effect.generation].state = "abandoned"
            case Send():
                pass

    def end_all(self) -> None:
        """No process of the job is left."""
        self._end("active", "retired")
        self._end("forming", "abandoned")

    def restore(self, job_id: JobId, *, wanted: frozenset[TaskId], living: Iterable[TaskId]) -> Membership:
        """Return what a server that starts again remembers."""
        groups = {
            record.state: GenerationView(number=number, members=record.members, cause=record.cause)
            for number, record in self._records.items()
        }
        return restore(
            job_id,
            number=self._newest,
            active=groups.get("active"),
            forming=groups.get("forming"),
            wanted=wanted,
            leaving=frozenset(living) - wanted,
        )

    @property
    def _newest(self) -> int:
        return max(self._records, default=0)

    def _end(self, state: str, becomes: str) -> None:
        for record in self._records.values():
            if record.state == state:
                record.state = becomes
