"""The REST bodies of environments."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from pliant.api.request import Request

MAX_SOURCE = 256 << 10

EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
SharedWith = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")], ...],
    Field(max_length=1000, description="Names of users; `*` is everybody."),
]
_Place = Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x1f]+$")]


class EnvironmentRequest(Request):
    """An environment to register; exactly one of `requirements`, `venv` and `conda`."""

    name: EnvironmentName
    requirements: Annotated[str, Field(max_length=MAX_SOURCE, pattern=r"^[^\x00]*$")] | None = None
    """The text of a requirements file; the server builds it."""
    venv: _Place | None = None
    """The whole path of a virtual environment (or of its Python) on the server's machine."""
    conda: _Place | None = None
    """The name or the whole path of a conda environment on the server's machine."""
    shared_with: SharedWith = ()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("requirements", "venv", "conda") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of requirements, venv and conda (got {', '.join(given) or 'none'})")
        return self


class EnvironmentShares(Request):
    """Who else may use it."""

    shared_with: SharedWith


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentView:
    """An environment and what became of it."""

    name: str
    owner: str
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
    shared_with: tuple[str, ...]
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPage:
    """Environments in the order of their names; ask again with `after=next` for more."""

    environments: tuple[EnvironmentView, ...]
    next: str | None
