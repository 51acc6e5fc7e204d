"""The REST bodies of environments. Answers are the views of `pliant.core.environment`."""

from dataclasses import dataclass
from typing import Annotated, Self

from annotated_types import Len, MaxLen
from pydantic import model_validator

from pliant.api.request import Request
from pliant.core.access import SharedWith
from pliant.core.environment import Environment, EnvironmentKind, EnvironmentSettings, EnvironmentView
from pliant.core.input import NO_NUL, Input, Pattern, values_of

MAX_SOURCE = 256 << 10

_Place = Annotated[str, Input(Len(1, 4000), Pattern(r"^[^\x00-\x1f]+$", "one line of text"))]


class EnvironmentRequest(Request, EnvironmentSettings):
    """An environment to register; exactly one of `requirements`, `venv` and `conda`."""

    requirements: Annotated[str, Input(MaxLen(MAX_SOURCE), NO_NUL)] | None = None
    """The text of a requirements file; the server builds it."""
    venv: _Place | None = None
    """The whole path of a virtual environment (or of its Python) on the server's machine."""
    conda: _Place | None = None
    """The name or the whole path of a conda environment on the server's machine."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("requirements", "venv", "conda") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of requirements, venv and conda (got {', '.join(given) or 'none'})")
        return self

    def noun(self, owner: str) -> Environment:
        """Return the environment that this body asks for, before anything is made of it."""
        ((kind, source),) = [(kind, given) for kind in EnvironmentKind if (given := getattr(self, kind)) is not None]
        return Environment(**values_of(EnvironmentSettings, self), owner=owner, kind=kind, source=source, key="")


class EnvironmentShares(Request):
    """Who else may use it."""

    shared_with: SharedWith
    """Names of users; `*` is everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPage:
    """Environments in the order of their names; ask again with `after=next` for more."""

    environments: tuple[EnvironmentView, ...]
    next: str | None
