"""Histograms of a job's weights and gradients, or of what else its script logs: how the values lie at a step.

Scripts are strangers' code: a job has no more names than so many, a name no more histograms than so many, and what does
not make sense is not kept. Of too many histograms of one name those stay that lie evenly over the steps.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pliant.core.job import JobId

NUM_BINS: Final = 64
MAX_BINS: Final = 256
MAX_NAMES: Final = 400
"""Of one job; histograms of further names are not kept."""
MAX_HISTOGRAMS: Final = 64
"""Of one name; see `thin`."""
MAX_NAME: Final = 250
MAX_MAGNITUDE: Final = 1e300
"""Larger numbers count as infinite, so that the width of a bin is always a number."""
WEIGHTS: Final = "weights/"
GRADIENTS: Final = "gradients/"
"""What names of parameters begin with where all of them are logged."""
MAX_STEP: Final = 2**31 - 1
_MAX_COUNT: Final = 2**53
_MAX_TIME: Final = float(2**33)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHistogram:
    """How many values of a tensor lie where."""

    name: str
    step: int
    """Optimizer steps committed."""
    epoch: int
    at: float
    """Seconds since the epoch (UTC)."""
    lowest: float
    """The smallest value; 0 if there is no finite one."""
    highest: float
    counts: tuple[int, ...]
    """Values in each of equally wide bins from `lowest` to `highest`. A bin has its lower edge, the last one both. One
    bin if all values are the same; none if there is no finite one."""
    num_nan: int = 0
    num_infinite: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistograms:
    """Some histograms of a job."""

    job_id: JobId
    histograms: tuple[TensorHistogram, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramSeries:
    """The histograms that a job has of one name."""

    name: str
    num_histograms: int
    first_step: int
    last_step: int


def edges(lowest: float, highest: float, num_bins: int) -> list[float]:
    """Return the edges of equally wide bins, one more than there are bins; the same bits as `numpy.linspace`."""
    width = (highest - lowest) / num_bins
    return [lowest + number * width for number in range(num_bins)] + [highest]


def sound(histograms: Iterable[TensorHistogram]) -> Iterator[TensorHistogram]:
    """Yield those that can be kept and shown."""
    return (one for one in histograms if _makes_sense(one))


def is_name(name: str) -> bool:
    """Tell whether histograms can have this name: one line that shows what it holds, not too long."""
    return 0 < len(name) <= MAX_NAME and name.isprintable() and name == name.strip()


def _makes_sense(one: TensorHistogram) -> bool:
    numbers = (*one.counts, one.num_nan, one.num_infinite)
    return (
        is_name(one.name)
        and 0 <= one.step <= MAX_STEP
        and 0 <= one.epoch <= MAX_STEP
        and 0 <= one.at <= _MAX_TIME
        and -MAX_MAGNITUDE <= one.lowest <= one.highest <= MAX_MAGNITUDE
        and math.isfinite(one.highest - one.lowest)
        and len(one.counts) <= MAX_BINS
        and all(0 <= number <= _MAX_COUNT for number in numbers)
    )


def first_names(there: Iterable[str], histograms: Iterable[TensorHistogram]) -> tuple[TensorHistogram, ...]:
    """Return those histograms that a job has room for, if it has some of these names already."""
    names, kept = set(there), []
    for one in histograms:
        if one.name in names or len(names) < MAX_NAMES:
            names.add(one.name)
            kept.append(one)
    return tuple(kept)


def thin(steps: Sequence[int]) -> tuple[int, ...]:
    """Return which steps go if there are more than are kept; the first and the last stay.

    Whichever has its neighbours nearest goes first, so that what stays lies evenly however long the training is.

    Args:
        steps: in their order, all different.
    """
    left, gone = list(steps), []
    while len(left) > MAX_HISTOGRAMS:
        nearest = min(range(1, len(left) - 1), key=lambda place: left[place + 1] - left[place - 1])
        gone.append(left.pop(nearest))
    return tuple(gone)
