"""An environment that jobs name: where it comes from, who may use it, and what became of it.

What is made of it, and how, is known to `pliant.catalog` alone.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from pliant.core.access import SharedWith
from pliant.core.registry import CatalogName, Owned


class EnvironmentKind(StrEnum):
    """Where an environment comes from."""

    VENV = "venv"
    """A virtual environment that somebody made; `source` is the whole path of it, or of its Python."""
    CONDA = "conda"
    """A conda environment that somebody made; `source` is its name or its whole path."""
    REQUIREMENTS = "requirements"
    """Built by the server; `source` is the text of a requirements file."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentSettings:
    """What people say of every environment. A field that is added here is one of REST and of `env add`, too."""

    name: CatalogName
    shared_with: SharedWith = ()
    """Names of users; `*` is everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment(EnvironmentSettings):
    """A named environment."""

    KIND: ClassVar[str] = "environment"

    owner: str
    kind: EnvironmentKind
    source: str
    key: str
    """Of its build; empty before that is known."""


@dataclass(frozen=True, kw_only=True)
class _Outcome(Owned):
    """What became of an environment; first in every answer."""

    kind: str
    """`requirements`, `venv` or `conda`."""
    source: str
    """The requirements, or the path or name of what somebody else made."""
    state: str
    """`building`, `ready` or `failed`."""
    why: str
    """How far it is, or why it failed; empty if it is ready."""
    output: tuple[str, ...]
    """The last lines of what the builder printed, if it failed."""
    key: str
    """A digest of all that decides what comes out; environments of the same key are built once."""
    python: str
    builder: str
    num_bytes: int
    built_at: float | None
    last_used_at: float | None
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentView(EnvironmentSettings, _Outcome):
    """An environment and what became of it."""

    shared_with: tuple[str, ...] = field()
    revision: int
