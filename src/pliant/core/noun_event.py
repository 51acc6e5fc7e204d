"""What is said when a noun changes that belongs to somebody: which event it is, and who may read it.

Theory of operation. Whether somebody reads the event of a noun is decided when it is read, by who sees the noun then.
The newest event of a noun takes the place of the one before, so that there are never more events than nouns, however
often a search or an import changes. Who saw the noun before a change and does not after it (a share was taken away,
or it was removed) would never learn that a list of theirs is out of date: they get an event of the same kind without
a name, of which there is one for each person, too. Example, a data set of Ann's:

    shared with Bob    dataset.changed `flowers`, which Ann and Bob read
    not any more       dataset.changed `flowers`, which Ann reads; one without a name for Bob
    removed            dataset.changed `flowers`, which administrators read; one without a name for Ann
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pliant.core.access import Permission, Principal
from pliant.core.event import Event, EventKind
from pliant.core.job import JobId
from pliant.core.registry import Noun

JOB_SHARE: Final = "job share"
"""The kind of the noun that says with whom a job is shared; it is called like the job."""

Change = Literal["added", "changed", "removed"]

EVENT_OF: Final[Mapping[str, EventKind]] = {
    "algorithm": EventKind.ALGORITHM_CHANGED,
    "dataset": EventKind.DATASET_CHANGED,
    "endpoint": EventKind.ENDPOINT_CHANGED,
    "environment": EventKind.ENVIRONMENT_CHANGED,
    JOB_SHARE: EventKind.SHARE_CHANGED,
    "model": EventKind.MODEL_CHANGED,
    "search": EventKind.SEARCH_CHANGED,
    "template": EventKind.TEMPLATE_CHANGED,
    "training": EventKind.MODEL_CHANGED,
}
"""Kinds of nouns whose changes are events. Other nouns belong to nobody, or nobody looks at them for long."""

_PARTS: Final[Mapping[str, str]] = {"training": "model"}
"""Nouns that are a part of another one, by whose name theirs begins: who sees that, sees them."""

_READ_BY: Final[Mapping[EventKind, Permission]] = {
    EventKind.ALGORITHM_CHANGED: Permission.JOBS_READ,
    EventKind.DATASET_CHANGED: Permission.DATA_READ,
    EventKind.ENDPOINT_CHANGED: Permission.ENDPOINTS_READ,
    EventKind.ENVIRONMENT_CHANGED: Permission.MODELS_READ,
    EventKind.MODEL_CHANGED: Permission.MODELS_READ,
    EventKind.SEARCH_CHANGED: Permission.JOBS_READ,
    EventKind.SHARE_CHANGED: Permission.JOBS_READ,
    EventKind.TEMPLATE_CHANGED: Permission.MODELS_READ,
    EventKind.UPLOAD_CHANGED: Permission.DATA_WRITE,
}
"""What one needs to read the nouns themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The noun by which it is decided who reads an event."""

    kind: str
    name: str

    @property
    def event_kind(self) -> EventKind:
        return EVENT_OF[self.kind]


def subject_of(kind: str, name: str) -> Subject | None:
    """Return by which noun it is decided who reads of a change of a noun; None: nothing is said of it."""
    if kind not in EVENT_OF:
        return None
    whole = _PARTS.get(kind)
    return Subject(kind=kind, name=name) if whole is None else Subject(kind=whole, name=name.partition("/")[0])


def is_part(kind: str) -> bool:
    """Tell whether nouns of this kind are seen by whoever sees another one."""
    return kind in _PARTS


def viewers_of(noun: Noun) -> frozenset[str]:
    """Return the users who see a noun, besides those who see all: its owner, and with whom it is shared (`*`: all)."""
    return frozenset({noun.owner, *getattr(noun, "shared_with", ())} - {""})


def event_of_change(subject: Subject, change: Change, at: float) -> Event:
    """Return what is said of a noun to those who see it."""
    if subject.kind == JOB_SHARE:
        message = f"{subject.name} is shared with others than before"
        job_id = JobId(subject.name)
    else:
        message, job_id = f"the {_words(subject.event_kind)} {subject.name} was {change}", None
    return Event(at=at, kind=subject.event_kind, message=message, job_id=job_id, data={"name": subject.name})


def event_without_name(kind: EventKind, at: float) -> Event:
    """Return what is said to one user: that what they see of nouns of a kind is out of date, and not which."""
    return Event(at=at, kind=kind, message=f"what you see of {_words(kind)}s has changed")


def hidden_from(caller: Principal) -> frozenset[EventKind]:
    """Return the kinds of events that somebody does not read, since their role or token may not read the nouns."""
    return frozenset(kind for kind, permission in _READ_BY.items() if not caller.may(permission))


def _words(kind: EventKind) -> str:
    noun = kind.partition(".")[0]
    return {"dataset": "data set", "share": "shared job"}.get(noun, noun)
