"""What a data set looks like: a few small pictures, or the first rows of its tables; made once, when it is imported."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Ge, Le, MaxLen

PreviewKind = Literal["images", "table", "none"]

MAX_IMAGES: Final = 40
"""Of one part."""
MAX_SIDE: Final = 96
"""Pixels of a small picture, across and down."""
MAX_PNG_CHARACTERS: Final = 1 << 16
MAX_ROWS: Final = 50
MAX_COLUMNS: Final = 50
MAX_CELL: Final = 200
"""Characters."""
MAX_NAME: Final = 300

_Shown = Annotated[str, MaxLen(MAX_NAME)]
_Row = Annotated[tuple[Annotated[str, MaxLen(MAX_CELL)], ...], MaxLen(MAX_COLUMNS)]
_Pixels = Annotated[int, Ge(1), Le(1 << 26)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnail:
    """A picture, made small."""

    label: _Shown
    """Its class; empty if it has none."""
    name: _Shown
    width: _Pixels
    """Of the picture itself."""
    height: _Pixels
    png: Annotated[str, MaxLen(MAX_PNG_CHARACTERS)]
    """The small one as PNG, in base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewPart:
    """What one part of a data set looks like."""

    split: _Shown
    """`train`, `validation` or `test`; `all` where there are no parts."""
    images: Annotated[tuple[Thumbnail, ...], MaxLen(MAX_IMAGES)] = ()
    """Of every class some, in turn."""
    columns: _Row = ()
    """The first ones."""
    rows: Annotated[tuple[_Row, ...], MaxLen(MAX_ROWS)] = ()
    """The first ones, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPreview:
    """What a data set looks like."""

    kind: PreviewKind
    reason: Annotated[str, MaxLen(1000)] = ""
    """Why there is nothing to be seen, if there is not."""
    parts: Annotated[tuple[PreviewPart, ...], MaxLen(3)] = ()


def nothing(reason: str) -> DatasetPreview:
    """Return that there is nothing to be seen, and why."""
    return DatasetPreview(kind="none", reason=reason)
