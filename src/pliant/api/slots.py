"""Answers about slots over time; the chart itself is a noun of `core`."""

from dataclasses import dataclass

from pliant.core.slot_mark import SlotMark


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkPage:
    """The newest marks of a window, in order."""

    marks: tuple[SlotMark, ...]
    num_more: int
    """Older ones of the window that are not among them; 10,000 if there are more than that."""
