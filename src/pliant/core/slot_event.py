"""What somebody learns of slots that others hold: by how many they changed, as the pool shows anyhow, and not whose."""

from typing import Final

from pliant.core.access import VisibleJobs
from pliant.core.event import Event, EventKind

_MESSAGE: Final = "others hold another number of slots"


def event_shown(event: Event, visible: VisibleJobs | None) -> Event:
    """Return an event as somebody reads it: of others' slots only its number, its time, and how many more they hold."""
    if event.kind is not EventKind.SLOTS_CHANGED or visible is None or event.job_id is None:
        return event
    if visible.covers(event.job_id, str(event.data.get("owner", ""))):
        return event
    change = int(event.data.get("num_slots") or 0) - int(event.data.get("from_slots") or 0)
    return Event(seq=event.seq, at=event.at, kind=event.kind, message=_MESSAGE, data={"change": change})
