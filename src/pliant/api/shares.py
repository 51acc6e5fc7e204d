"""The REST bodies about sharing: who else may see something."""

from dataclasses import dataclass

from pliant.api.request import Request
from pliant.core.access import SharedWith


class ShareRequest(Request):
    """With whom something is shared from now on, and with nobody else."""

    shared_with: SharedWith
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
