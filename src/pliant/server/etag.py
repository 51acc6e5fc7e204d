"""Revisions in HTTP: an `ETag` is the revision's number in quotes."""

import re
from typing import Annotated, Final, Protocol, TypeVar

from fastapi import Header, Response

from pliant.core.errors import InvalidInput

_REVISION: Final = re.compile(r'(?:W/)?"([0-9]{1,9})"|([0-9]{1,9})')
"""A weak one, or one without quotes, means the same: there is only one kind of revision."""


def etag(revision: int) -> str:
    """Return the header of a revision."""
    return f'"{revision}"'


class Revised(Protocol):
    """What an answer shows of a noun."""

    @property
    def revision(self) -> int:
        """Grows by one with every change."""
        ...


R = TypeVar("R", bound=Revised)
IfMatch = Annotated[str | None, Header(description="Refuse unless it is at this revision.")]


def with_etag(noun: R, response: Response) -> R:
    """Return a noun; its answer carries its revision."""
    response.headers["ETag"] = etag(noun.revision)
    return noun


def revision_of(if_match: str | None) -> int | None:
    """Return the revision that an `If-Match` header names; None for no header, or for `*`.

    Raises:
        InvalidInput: it names none.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    found = _REVISION.fullmatch(if_match.strip())
    if found is None:
        message = f"{if_match!r:.80} is no revision; send the `ETag` of what was read, such as {etag(3)}"
        raise InvalidInput.at("If-Match", message)
    return int(found[1] or found[2])
