"""Which events are marks on a chart of slots, and what each says of somebody's slots."""

from collections.abc import Mapping
from typing import Final

from pliant.core.event import Event, EventKind, Value
from pliant.core.lifecycle import JobState
from pliant.core.slot_history import JobLayer
from pliant.core.slot_mark import MarkKind, SlotMark

MARKED: Final = (
    EventKind.DECISION,
    EventKind.JOB_STATE,
    EventKind.JOB_CHANGED,
    EventKind.TASK_LOST,
    EventKind.QUEUE_CHANGED,
    EventKind.SERVER_STARTED,
    EventKind.SERVER_STOPPING,
)
ENDS: Final[Mapping[str, MarkKind]] = {
    JobState.COMPLETED: "went",
    JobState.STOPPED: "went",
    JobState.FAILED: "failed",
}
"""Of the changes of a job's state only its end is a mark: before it, decisions say what becomes of its slots."""
_FIXED: Final[Mapping[EventKind, MarkKind]] = {
    EventKind.JOB_CHANGED: "changed",
    EventKind.TASK_LOST: "failed",
    EventKind.QUEUE_CHANGED: "queue",
    EventKind.SERVER_STARTED: "server",
    EventKind.SERVER_STOPPING: "server",
}


def mark_of(event: Event, layer: JobLayer | None) -> SlotMark | None:
    """Return the mark that an event is; None if it is none.

    Args:
        event: what happened.
        layer: what is known of the job that it is about; None: it is about none.
    """
    kind = _kind_of(event)
    if kind is None:
        return None
    before, after = _slots(event)
    return SlotMark(
        seq=event.seq,
        at=event.at,
        kind=kind,
        message=event.message,
        job_id=event.job_id,
        name=_text(event.data.get("name")) if layer is None else layer.name,
        colour=None if layer is None else layer.colour,
        from_slots=before,
        to_slots=after,
        who=_text(event.data.get("who")),
    )


def _kind_of(event: Event) -> MarkKind | None:
    if event.kind is EventKind.JOB_STATE:
        return ENDS.get(str(event.data.get("to")))
    if event.kind is not EventKind.DECISION:
        return _FIXED.get(event.kind)
    before, after = _number(event.data.get("from")) or 0, _number(event.data.get("to")) or 0
    if before == 0:
        return "came"
    if after == 0:
        return "went"
    return "grew" if after > before else "shrank"


def _slots(event: Event) -> tuple[int | None, int | None]:
    if event.kind is EventKind.DECISION:
        return _number(event.data.get("from_slots")), _number(event.data.get("num_slots"))
    if event.kind is EventKind.JOB_STATE:
        return _number(event.data.get("num_slots")), 0
    return None, None


def _number(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
