"""Of several objectives: the trials that no other one beats, which is called the Pareto front.

One beats another if it is as good in all objectives and better in one. Example, with both to be minimized: of (1, 9),
(2, 5) and (3, 7) the last one is beaten by the second. Equal ones do not beat each other.
"""

from collections.abc import Sequence
from math import isnan

from pliant.core.search import Objective, Trial, TrialState


def find_front(objectives: Sequence[Objective], trials: Sequence[Trial]) -> Sequence[Trial]:
    """Return the trials that no other one beats, in the order of the first objective, the best first.

    Those that have not completed, were known before, violate a constraint, or have NaN as a result take no part.
    """
    signs = [1 if one.direction == "minimize" else -1 for one in objectives]
    ended = [one for one in trials if one.state is TrialState.COMPLETED and one.is_feasible and not one.is_known]
    ranked = sorted(
        (tuple(sign * result for sign, result in zip(signs, trial.results, strict=True)), trial.number, trial)
        for trial in ended
        if trial.results is not None and not any(map(isnan, trial.results))
    )
    front: list[tuple[tuple[float, ...], Trial]] = []
    for results, _, trial in ranked:  # who comes later beats nobody before it
        if not any(_beats(other, results) for other, _ in front):
            front.append((results, trial))
    return [trial for _, trial in front]


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
