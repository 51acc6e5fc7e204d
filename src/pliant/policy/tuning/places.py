"""How many trials of a search train at once if nobody has said, and why.

As many as the slots have room for; but a sampler that learns from results chooses worse the more trials it does not
know the end of, and slots that no trial takes go to those that train. So it is no more than the sampler can use, unless
slots would idle: trials that cannot grow take all slots there are.

Example: 16 slots, trials of 1 to 8 tasks. Random values: 16 train at once. TPE: 4, with 4 slots each; if a trial grows
to 2 tasks at most, 8. By whole rungs, and in a population, nothing is known of those that began together, so there is
nothing to wait for.
"""

import math
from dataclasses import dataclass
from typing import Final

from pliant.core.search import SearchSettings
from pliant.policy.tuning.rungs import size_of

MOST_GUESSED: Final = 4
"""Of TPE and Gaussian processes: with 60 trials TPE comes to the same with 1 and 4 in flight, and to worse with 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How many trials train at once."""

    num: int
    reason: str


def places_of(settings: SearchSettings, *, num_fitting: int, num_filling: int) -> Places:
    """Return how many trials of a search train at once at most.

    Args:
        settings: of the search.
        num_fitting: so many the slots of the queue have room for, each with its minimum.
        num_filling: so many fill these slots, each with its maximum.
    """
    if settings.parallel is not None:
        return Places(num=settings.parallel, reason="as was said")
    fitting = Places(num=num_fitting, reason="the slots of its queue have room for so many")
    if (size := _size(settings)) is not None:
        return fitting if size >= num_fitting else Places(num=size, reason="so many begin together")
    useful, name = _useful(settings), settings.sampler.name
    if useful is None or useful >= num_fitting:
        return fitting
    if num_filling > useful:
        why = f"{name} chooses better with {useful}, but fewer would leave slots idle"
        return Places(num=min(num_fitting, num_filling), reason=why)
    return Places(num=useful, reason=f"with more {name} chooses worse, and each trial may take several slots")


def _size(settings: SearchSettings) -> int | None:
    """Return how many trials begin together, of which nothing is known before all are there; None: they do not."""
    if settings.population is not None:
        return settings.population.size
    halving = settings.halving
    return size_of(settings, 0) if halving is not None and halving.order == "rungs" else None


def _useful(settings: SearchSettings) -> int | None:
    """Return how many trials a sampler can choose before it knows what they come to; None: any number."""
    match settings.sampler.name:
        case "tpe" | "gp":
            return MOST_GUESSED
        case "cmaes":
            return _population(settings)
        case _:
            return None


def _population(settings: SearchSettings) -> int:
    """Return how many trials CMA-ES learns from together (Hansen, The CMA Evolution Strategy, table 1)."""
    given = settings.sampler.options.get("popsize")
    if isinstance(given, int):
        return given
    num_chosen = sum(one.kind != "fixed" for one in settings.parameters.values())
    return 4 + math.floor(3 * math.log(max(1, num_chosen)))
