"""What a server was started with, as it may be shown."""

from dataclasses import dataclass
from typing import Literal

OptionSource = Literal["option", "environment", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOption:
    """One option of `up`."""

    name: str
    """As it is written on a command line, such as `--slots`."""
    value: str
    """As text; several with commas between them; empty: none. What may be secret is left out."""
    source: OptionSource
    """Whether it was given, came from a variable of the environment, or is what it is by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server was started with, and what became of it."""

    version: str
    started_at: float
    url: str
    """Where tasks and people reach it."""
    store: Literal["sqlite", "postgresql"]
    database: str
    """Its URL, without what may be secret."""
    home: str
    """The state folder."""
    data_root: str
    """What data sets may be named by path lies below it."""
    copies: str = ""
    """How the copying of what jobs write to an object store stands, in words; empty: nothing is copied."""
    options: tuple[ServerOption, ...]
    """In the order of their names."""
