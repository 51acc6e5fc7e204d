"""Which algorithm of somebody's own a search is for, and what such an algorithm can do. Pure.

| | conditions | several objectives | pruner | halving |
|---|---|---|---|---|
| of IBM's form | no | no | no | yes |
| a sampler of Optuna's kind | as it can | as it can | yes | yes |

What else it makes of a search it says itself, when it is asked for values.
"""

from collections.abc import Iterator, Mapping, Sequence

from pliant.core.algorithm import AlgorithmCode
from pliant.core.errors import Problem
from pliant.core.near_name import near_name
from pliant.core.search import SAMPLERS, SearchSettings
from pliant.core.space import Values


def problem_of_name(name: str, installed: Sequence[str]) -> Problem:
    """Return that there is no sampler of a name, and which one may be meant.

    Args:
        installed: the names of all algorithms that who asks may use.
    """
    near = near_name(name, [*SAMPLERS, *installed]) or near_name(name.lower(), SAMPLERS)
    there = f"give {', '.join(SAMPLERS)}, or an algorithm that you may use"
    advice = there if near is None else f"is {near!r} meant?"
    return Problem(field="sampler.name", message=f"there is no sampler or algorithm {name!r:.80}; {advice}")


def problems_of_algorithm(settings: SearchSettings, algorithm: AlgorithmCode) -> Iterator[Problem]:
    """Yield what an algorithm cannot do of what a search asks for."""
    if algorithm.kind != "ibm":
        return
    name = f"the algorithm {settings.sampler.name!r}, which is of IBM's form,"
    for parameter, one in settings.parameters.items():
        if one.when:
            message = f"{name} cannot do with conditions; leave `when` out, or take tpe, random or nsga2"
            yield Problem(field=f"parameters.{parameter}.when", message=message)
    if (num := len(settings.objectives)) > 1:
        message = f"{name} takes one objective, and there are {num}; give one, or take tpe or nsga2"
        yield Problem(field="sampler.name", message=message)
    if settings.pruner is not None:
        message = f"{name} does not judge trials while they train; leave the pruner out, or take halving"
        yield Problem(field="pruner", message=message)


def problems_of_given(
    settings: SearchSettings, algorithm: AlgorithmCode | None, trials: Sequence[Values]
) -> Iterator[Problem]:
    """Yield which trials that somebody wants tried leave out what nobody can choose."""
    is_of_ibm = algorithm is not None and algorithm.kind == "ibm"
    if not is_of_ibm and settings.sampler.name != "grid":
        return
    whose = "an algorithm of IBM's form chooses" if is_of_ibm else "a grid chooses"
    for index, values in enumerate(trials):
        if missing := _missing(settings, values):
            message = f"{whose} all values or none; give {', '.join(missing)} as well"
            yield Problem(field=f"trials.{index}", message=message)


def _missing(settings: SearchSettings, values: Mapping[str, object]) -> Sequence[str]:
    return [name for name, one in settings.parameters.items() if name not in values and one.kind != "fixed"]
