"""What is wrong with the settings of a search as a whole; samplers have rules of their own, which are not here."""

import itertools
from collections.abc import Iterator

from pliant.core.errors import Problem
from pliant.core.population import MAX_GENERATIONS
from pliant.core.search import SAMPLERS, Halving, SearchSettings
from pliant.core.space_rules import problems_of_space

Wrong = Iterator[tuple[str, str]]
"""Fields, each with what is wrong with it."""


def problems_of_settings(settings: SearchSettings) -> tuple[Problem, ...]:
    """Return all that is wrong, also with the space."""
    rules = (_wrong_objectives, _wrong_constraints, _wrong_halving, _wrong_population, _wrong_limits)
    wrong = (one for rule in rules for one in rule(settings))
    return (*problems_of_space(settings.parameters), *(Problem(field=field, message=said) for field, said in wrong))


def _wrong_objectives(settings: SearchSettings) -> Wrong:
    metrics = [objective.metric for objective in settings.objectives]
    for i, metric in enumerate(metrics):
        if metric in metrics[:i]:
            yield f"objectives.{i}.metric", f"{metric!r} is an objective already; name every metric once"
    if settings.target is not None and len(metrics) > 1:
        yield "target", f"of {len(metrics)} objectives no trial is simply the best; leave the target out, or name one"
    for i, way in enumerate(settings.pass_as):
        if way in settings.pass_as[:i]:
            yield f"pass_as.{i}", f"{way!r} is named twice; name it once"


def _wrong_constraints(settings: SearchSettings) -> Wrong:
    bounds: dict[tuple[str, str, str], float] = {}
    for i, one in enumerate(settings.constraints):
        sides = {side: bound for side, bound in (("upper", one.upper), ("lower", one.lower)) if bound is not None}
        if len(sides) != 1:
            yield f"constraints.{i}", "it has two bounds; make one of each" if sides else "give it upper or lower"
            continue
        ((side, bound),) = sides.items()
        other = "lower" if side == "upper" else "upper"
        opposite = bounds.get((one.metric, one.reading, other))
        if (one.metric, one.reading, side) in bounds:
            yield f"constraints.{i}", f"{one.metric!r} has such a bound already, {side}; give one"
        elif opposite is not None and (bound < opposite if side == "upper" else bound > opposite):
            yield f"constraints.{i}.{side}", f"no value of {one.metric} keeps {bound:g} and its {other}, {opposite:g}"
        else:
            bounds[one.metric, one.reading, side] = bound


def _wrong_halving(settings: SearchSettings) -> Wrong:
    halving = settings.halving
    if halving is None:
        return
    span = f"{halving.resource}s {halving.min} to {halving.max} by the factor {halving.factor}"
    num_brackets = _num_rungs(halving) + 1
    if halving.min > halving.max:
        yield "halving.min", f"{halving.min} is above max, {halving.max}; exchange them"
    elif halving.min == halving.max:
        yield "halving.max", f"{halving.max} is the first rung, too: it prunes nothing; give more, or leave halving out"
    elif halving.brackets > num_brackets:
        yield "halving.brackets", f"{span} have no room for {halving.brackets}; give {num_brackets} or fewer"
    size = halving.size
    if size is not None and size < halving.factor:
        yield (
            "halving.size",
            f"one in {halving.factor} goes on, and of {size} none; give {halving.factor} or more",
        )
    if size is not None and settings.max_trials is not None and size > settings.max_trials:
        yield "halving.size", f"{size} is above max_trials, {settings.max_trials}; lower the one or raise the other"


def _num_rungs(halving: Halving) -> int:
    """Return how many rungs lie below the end."""
    rungs = (halving.min * halving.factor**power for power in itertools.count())
    return sum(1 for _ in itertools.takewhile(lambda rung: rung < halving.max, rungs))


def _wrong_population(settings: SearchSettings) -> Wrong:
    population = settings.population
    if population is None:
        return
    num_ends = (population.max - 1) // population.every
    if num_ends < 1:
        said = f"the first decision would be at the end, epoch {population.max}: nobody is replaced"
        yield "population.every", f"{said}; give fewer than {population.max}"
    elif num_ends > MAX_GENERATIONS:
        fewest = -(-(population.max - 1) // MAX_GENERATIONS)
        said = f"it would be decided {num_ends:,} times, and {MAX_GENERATIONS:,} is the most"
        yield "population.every", f"{said}; give {fewest} or more"
    if settings.max_trials is not None and population.size > settings.max_trials:
        said = f"{population.size} is above max_trials, {settings.max_trials}"
        yield "population.size", f"{said}; lower the one, or raise the other or leave it out"
    for name, other in (("halving", settings.halving), ("a pruner", settings.pruner)):
        if other is not None:
            yield "population", f"{name} ends trials already; leave one of the two out"
    if (num := len(settings.objectives)) > 1:
        yield "population", f"it compares trials by one objective, and there are {num}; leave it out, or give one"
    if settings.sampler.name == "grid":
        yield "sampler.name", "a grid has no members to choose, it takes all; give random, or leave the population out"


def _wrong_limits(settings: SearchSettings) -> Wrong:
    limits = (settings.max_trials, settings.max_time_s, settings.max_slot_hours, settings.target, settings.population)
    may_end = settings.sampler.name == "grid" or settings.sampler.name not in SAMPLERS
    if not may_end and all(limit is None for limit in limits):
        yield "max_trials", "nothing ends the search; give max_trials, max_time_s, max_slot_hours or target"
