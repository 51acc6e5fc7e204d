"""How a figure grows with the size of a pool: the exponent of a power law, and where it reaches a budget."""

import math
from collections.abc import Mapping
from itertools import pairwise


def exponent(points: Mapping[int, float], since: int = 1) -> float | None:
    """Return the slope of the least squares line through the logarithms; None of fewer than two points.

    Args:
        points: what was measured, by size.
        since: smaller sizes are left out, where what does not grow counts for most.

    >>> exponent({10: 1.0, 100: 10.0, 1000: 100.0})
    1.0
    """
    kept = [(math.log(size), math.log(value)) for size, value in points.items() if size >= since and value > 0]
    if len(kept) < 2:
        return None
    mean_x = sum(x for x, _ in kept) / len(kept)
    mean_y = sum(y for _, y in kept) / len(kept)
    spread = sum((x - mean_x) * (x - mean_x) for x, _ in kept)
    return sum((x - mean_x) * (y - mean_y) for x, y in kept) / spread


def reaches(points: Mapping[int, float], budget: float, since: int = 1) -> float | None:
    """Return the size at which a figure that grows reaches its budget, by the slope through what was measured.

    Between two sizes that were measured the law between these two counts; beyond the largest, that of all. None if it
    does not grow, or too little was measured.

    >>> round(reaches({10: 1.0, 100: 10.0}, 30.0))
    300
    """
    sizes = sorted(points)
    for below, above in pairwise(sizes):
        if 0 < points[below] <= budget < points[above]:
            slope = exponent({size: points[size] for size in (below, above)})
            return _extend(below, points[below], budget, slope)
    if not sizes or points[sizes[-1]] > budget:
        return float(sizes[0]) if sizes else None
    return _extend(sizes[-1], points[sizes[-1]], budget, exponent(points, since))


def _extend(size: int, value: float, budget: float, slope: float | None) -> float | None:
    if slope is None or slope <= 0 or value <= 0:
        return None
    return size * math.pow(budget / value, 1 / slope)
