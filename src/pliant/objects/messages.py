"""What a server and the process that copies for it say to each other. Shapes only, no logic."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginCopying:
    """Copy the jobs below a folder to a store. Said first."""

    url: str
    jobs: str
    pool: str
    """The id of the pool: a store holds the copies of one."""
    kind: Literal["begin copying"] = "begin copying"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveJobs:
    """These jobs are not over; all others are. Said when it is something else than before."""

    jobs: tuple[str, ...]
    kind: Literal["active jobs"] = "active jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetJobCopies:
    """This job was deleted."""

    job: str
    kind: Literal["forget copies"] = "forget copies"


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBack:
    """Bring back what the disk lacks of a job."""

    job: str
    kind: Literal["bring back"] = "bring back"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCopying:
    """Copy what is there, and end."""

    kind: Literal["end copying"] = "end copying"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReached:
    """The store takes, gives back and removes objects."""

    is_known: bool
    """It has held copies of this pool before."""
    kind: Literal["store reached"] = "store reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRefused:
    """The store cannot be used; the process ends."""

    reason: str
    is_other: bool = False
    """It holds the copies of another pool: that will not mend itself."""
    kind: Literal["store refused"] = "store refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyNews:
    """How the copying stands, when that has changed."""

    why_away: str
    num_waiting: int
    kind: Literal["copy news"] = "copy news"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesForgotten:
    """The answer to `ForgetJobCopies`."""

    job: str
    problem: str
    """Why they are still there; empty: they are not."""
    kind: Literal["copies forgotten"] = "copies forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtBack:
    """The answer to `BringBack`."""

    job: str
    what: str
    """What came back; empty: nothing was missing."""
    problem: str
    kind: Literal["brought back"] = "brought back"


ToCopier = BeginCopying | ActiveJobs | ForgetJobCopies | BringBack | EndCopying
FromCopier = StoreReached | StoreRefused | CopyNews | CopiesForgotten | BroughtBack
