"""Which trial of a search a job is, and how its script gets the values that were chosen for it."""

from dataclasses import dataclass
from typing import Literal

from pliant.core.space import Values

PassAs = Literal["arguments", "environment", "config"]
"""How a script gets its values: as `--name=value`, as variables `PLIANT_PARAM_NAME`, as the file `config.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPart:
    """What the job of a trial knows of its search."""

    search: str
    number: int
    values: Values
    """What the sampler chose."""
    pass_as: tuple[PassAs, ...] = ("arguments", "environment")

    @property
    def label(self) -> str:
        """The trial for people: `lr-search #4`."""
        return f"{self.search} #{self.number}"
