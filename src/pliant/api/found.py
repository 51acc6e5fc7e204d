"""What was found by a text, as REST shows it."""

from dataclasses import dataclass
from typing import Literal

FoundKind = Literal[
    "job", "endpoint", "search", "model", "template", "dataset", "environment", "queue", "machine", "user"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNoun:
    """Something whose name, or a job's id, holds the text."""

    kind: FoundKind
    id: str
    """By which its own routes take it: a job's id, the name of everything else."""
    name: str
    state: str | None = None
    """None: things of its kind have none."""
    detail: str = ""
    """What tells it from others of a like name, such as whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNouns:
    """What was found, the best first: what is called so, what begins so, what holds it."""

    found: tuple[FoundNoun, ...]
