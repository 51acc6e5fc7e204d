"""The REST bodies about sharing."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pliant.api.request import Request
from pliant.core.registry import MAX_NAME

MAX_SHARED = 1000


class ShareRequest(Request):
    """With whom something is shared from now on, and with nobody else."""

    shared_with: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_NAME)], ...], Field(max_length=MAX_SHARED)
    ]
    """Names of users; `*` stands for everybody who can log on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareView:
    """With whom something is shared."""

    name: str
    """Such as a job's id."""
    owner: str
    shared_with: tuple[str, ...]
    revision: int
    """Its `ETag`; 0 if it never was shared."""
