"""One part of the report of `bench.tune`."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench._report import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What was measured, and what is claimed of it."""

    title: str
    text: str
    """Markdown."""
    claims: Sequence[Claim]
