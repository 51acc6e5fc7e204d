"""What a request says that it takes: the media types of `Accept`, the encodings of `Accept-Encoding`."""

from collections.abc import Iterator
from typing import Final

_PAGE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})


def wants_page(accept: str) -> bool:
    """Tell whether a page for people is asked for by name; `*/*` is what programs say."""
    return any(name in _PAGE_TYPES for name in _taken(accept))


def encodings_of(accept_encoding: str) -> frozenset[str]:
    """Return the encodings that are taken."""
    return frozenset(_taken(accept_encoding))


def _taken(header: str) -> Iterator[str]:
    """Yield what a header lists, without what it refuses (`q=0`)."""
    for listed in header.split(","):
        name, *parameters = (part.strip().lower() for part in listed.split(";"))
        weights = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
        if name and not any(weight.strip("0") in ("", ".") for weight in weights):
            yield name
