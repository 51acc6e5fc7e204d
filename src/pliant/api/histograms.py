"""Answers about the histograms of a job; a histogram itself is a noun of `core`."""

from dataclasses import dataclass

from pliant.core.tensor_histogram import HistogramSeries, TensorHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramNames:
    """What a job has histograms of, in the order of the names: `weights/fc1.weight`, `gradients/fc1.weight`."""

    series: tuple[HistogramSeries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPage:
    """The histograms of one name in the order of their steps; of a long training some, evenly over it."""

    name: str
    histograms: tuple[TensorHistogram, ...]
