"""Which trial of a search a job is, and how its script gets the values that were chosen for it."""

from dataclasses import dataclass
from typing import Literal

from pliant.core.space import Values, text_of_value, variable_of

PassAs = Literal["arguments", "environment", "config", "model"]
"""How a script gets its values: as `--name=value`, as variables `PLIANT_PARAM_NAME`, as the file `config.json`; or, if
it is a model's, as what is entered for a training, in `ps.conf` and `parameters.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPart:
    """What the job of a trial knows of its search."""

    search: str
    number: int
    values: Values
    """What the sampler chose."""
    pass_as: tuple[PassAs, ...] = ("arguments", "environment")
    keep_every: int = 0
    """Its state is kept at the end of every so many epochs, for trials that begin from there; 0: it is not."""
    parent_job: str = ""
    """The job of the trial from whose state it begins; empty: it begins at the beginning."""
    parent_epoch: int = 0
    """At the end of which epoch."""

    def variables(self) -> dict[str, str]:
        """Return the variables that tell the script its values; none if it gets them otherwise."""
        if "environment" not in self.pass_as:
            return {}
        return {variable_of(name): text_of_value(value) for name, value in self.values.items()}
