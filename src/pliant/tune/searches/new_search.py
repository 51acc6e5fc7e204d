"""What a search begins with, and what is said of it before it begins: what is wrong, and what its owner should know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pliant.core.algorithm import AlgorithmCode
from pliant.core.errors import Problem
from pliant.core.known_trial import KnownTrial, problems_of_known
from pliant.core.search import SAMPLERS, SearchSettings
from pliant.core.space import Values
from pliant.core.space_rules import problems_of_values
from pliant.tune.algorithm_rules import problems_of_given
from pliant.tune.sampler_rules import CONSTRAINED
from pliant.tune.searches.ports import SearchPorts
from pliant.tune.searches.settings_rules import problems_of_search

_NOT_LEARNING: Final = frozenset(SAMPLERS) - {"tpe", "gp"}
"""Samplers that learn nothing from trials that they did not choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTrials:
    """What a search begins with."""

    known: Sequence[KnownTrial] = ()
    """Trials of another study, from which it learns; they become its first ones, and count for no limit."""
    enqueued: Sequence[Values] = ()
    """What is tried first of all."""


NO_TRIALS: Final = FirstTrials()


def problems_of_new(
    settings: SearchSettings, owner: str, algorithm: AlgorithmCode | None, ports: SearchPorts, first: FirstTrials
) -> tuple[Problem, ...]:
    """Return all that is wrong with a new search, but for its job and its code.

    Args:
        owner: whose it will be.
        algorithm: what chooses its values; None: a sampler that is built in.
        first: what it begins with.
    """
    if problems := problems_of_search(settings, owner, algorithm, ports):
        return problems
    enqueued = problems_of_trials(settings, algorithm, first.enqueued)
    return (*problems_of_known(settings, first.known), *enqueued)


def notes_of_new(settings: SearchSettings, first: FirstTrials) -> tuple[str, ...]:
    """Return what the owner of a new search should know."""
    return (*_notes_of_known(settings, first.known), *_notes_of_constraints(settings))


def _notes_of_known(settings: SearchSettings, known: Sequence[KnownTrial]) -> Iterator[str]:
    if known and settings.sampler.name in _NOT_LEARNING and settings.pruner is None:
        name = settings.sampler.name
        yield f"{name} does not learn from trials that are known; tpe and gp do"


def _notes_of_constraints(settings: SearchSettings) -> Iterator[str]:
    if settings.constraints and settings.sampler.name in SAMPLERS and settings.sampler.name not in CONSTRAINED:
        name, others = settings.sampler.name, ", ".join(sorted(CONSTRAINED))
        yield f"{name} does not learn from constraints, it chooses as if there were none; {others} do"


def problems_of_trials(
    settings: SearchSettings, algorithm: AlgorithmCode | None, trials: Sequence[Values]
) -> Iterator[Problem]:
    """Yield what is wrong with values that are to be tried."""
    for index, values in enumerate(trials):
        for problem in problems_of_values(settings.parameters, values):
            yield Problem(field=f"trials.{index}.{problem.field}", message=problem.message)
    yield from problems_of_given(settings, algorithm, trials)
