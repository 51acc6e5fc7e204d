"""What is kept of a submission through IBM's API beside its job. A job of another way in is no exec."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from pliant.core.registry import Registry

PAGE: Final = 1000


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


def executions(registry: Registry, owner: str | None) -> Iterator[Execution]:
    """Yield all execs of a user, or of everybody, in no particular order."""
    after = ""
    while True:
        page = registry.list(Execution, owner=owner, after=after, limit=PAGE)
        yield from (kept.noun for kept in page)
        if len(page) < PAGE:
            return
        after = page[-1].noun.name
