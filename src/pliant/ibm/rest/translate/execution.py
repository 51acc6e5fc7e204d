"""What is kept of a submission through IBM's API beside its job. A job of another way in is no exec."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One exec."""

    KIND: ClassVar[str] = "wmla-exec"

    name: str
    """The id of its job."""
    owner: str
    args: str = ""
    """As it was submitted, without secrets."""
    framework: str = ""
    app_name: str = ""
    instance_group: str = ""
    """`sigName`, `--ig` or `--consumer`, as it was given."""
    num_workers: int = 1
    notes: tuple[str, ...] = ()
    """What of it has no effect, and why."""
