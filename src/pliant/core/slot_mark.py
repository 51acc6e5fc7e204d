"""Marks on a chart of slots: the moments at which somebody came, went, was resized, or was changed."""

from dataclasses import dataclass
from typing import Literal

from pliant.core.job import JobId

MarkKind = Literal["came", "went", "grew", "shrank", "failed", "changed", "queue", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotMark:
    """Something that happened to somebody's slots, or that decides about them."""

    seq: int
    """The number of the event."""
    at: float
    kind: MarkKind
    message: str
    """The event's sentence, such as the reason of the decision."""
    job_id: JobId | None = None
    name: str = ""
    """The job's, or that of the queue."""
    colour: int | None = None
    from_slots: int | None = None
    """As decided, before; null if that is not known or makes no sense."""
    to_slots: int | None = None
    who: str = ""
    """The person who did it; empty if nobody did, or it is not known."""
