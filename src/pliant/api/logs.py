"""Lines of logs, as REST shows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLine:
    """A line of a log."""

    offset: int
    """The byte at which it begins."""
    text: str
    """Without its end; what is no UTF-8 is U+FFFD. A very long one is cut."""
    is_cut: bool = False
    """There is more of it than is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """Lines that follow each other."""

    lines: tuple[PlacedLine, ...]
    start: int
    """The byte at which the first begins; 0: nothing is before it."""
    end: int
    """The byte after the last."""
    num_bytes: int
    """How long the log is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLines:
    """Lines that hold a text."""

    lines: tuple[PlacedLine, ...]
    next: int | None
    """The byte to go on at; null: the log has been looked through to its end."""
    end: int
    """So far it was looked at."""
