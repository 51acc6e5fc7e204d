"""What is wrong with the settings of a search as a whole; samplers have rules of their own, which are not here."""

from collections.abc import Iterator

from pliant.core.errors import Problem
from pliant.core.search import Halving, SearchSettings
from pliant.core.space_rules import problems_of_space

Wrong = Iterator[tuple[str, str]]
"""Fields, each with what is wrong with it."""


def problems_of_settings(settings: SearchSettings) -> tuple[Problem, ...]:
    """Return all that is wrong, also with the space."""
    wrong = (*_wrong_objectives(settings), *_wrong_ends(settings), *_wrong_limits(settings))
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


def _wrong_ends(settings: SearchSettings) -> Wrong:
    """Yield what is wrong with how trials are ended early."""
    if settings.pruner is not None and len(settings.objectives) > 1:
        yield "pruner", "a pruner compares one objective; leave it out, or name one objective"
    if settings.halving is None:
        return
    if settings.pruner is not None:
        yield "pruner", "halving and a pruner both end trials early; leave one of them out"
    yield from _wrong_halving(settings.halving)
    size = settings.halving.size
    if size is not None and settings.max_trials is not None and size > settings.max_trials:
        yield (
            "halving.size",
            f"{size} is above max_trials, {settings.max_trials}; lower the one or raise the other",
        )


def _wrong_halving(halving: Halving) -> Wrong:
    least, most, factor = halving.min, halving.max, halving.factor
    span = f"{halving.resource}s {least} to {most} by the factor {factor}"
    if least > most:
        yield "halving.min", f"{least} is above max, {most}; exchange them"
    elif most < least * factor:
        yield "halving.max", f"{span} prune nothing: no whole rung lies below the end; give {least * factor} or more"
    elif least * factor ** (halving.brackets - 1) > most:
        brackets = next(num for num in range(1, halving.brackets + 1) if least * factor**num > most)
        yield (
            "halving.brackets",
            f"{span} have no room for {halving.brackets}; give {brackets} or fewer",
        )
    if halving.size is not None and halving.size < factor:
        yield "halving.size", f"one in {factor} goes on, and of {halving.size} none would; give {factor} or more"


def _wrong_limits(settings: SearchSettings) -> Wrong:
    limits = (settings.max_trials, settings.max_time_s, settings.max_slot_hours, settings.target)
    if settings.sampler.name != "grid" and all(limit is None for limit in limits):
        yield "max_trials", "nothing ends the search; give max_trials, max_time_s, max_slot_hours or target"
