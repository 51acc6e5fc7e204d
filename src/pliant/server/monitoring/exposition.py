"""The metrics as text: Prometheus's format, or OpenMetrics for who asks for it. The only place with prometheus-client.

Each scrape has a registry of its own over one set of measures; the library's global one is not used.
"""

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from pliant.core.histogram import Histogram
from pliant.server.monitoring.families import FAMILIES, MetricFamily, Scene

_OPENMETRICS: Final = "application/openmetrics-text"


def expose(scene: Scene, accept: str) -> tuple[bytes, str]:
    """Return the metrics as text, and its media type.

    Args:
        scene: what is measured.
        accept: the header of that name; whatever it holds, it chooses between two formats and stands in no answer.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SceneCollector(scene))
    if any(one.partition(";")[0].strip().lower() == _OPENMETRICS for one in accept.split(",")):
        text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return text, openmetrics.CONTENT_TYPE_LATEST
    return exposition.generate_latest(registry), exposition.CONTENT_TYPE_PLAIN_0_0_4


class _SceneCollector(Collector):
    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def collect(self) -> Iterator[Metric]:
        return (_metric(family, self._scene) for family in FAMILIES)


def _metric(family: MetricFamily, scene: Scene) -> Metric:
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.doc, labels=family.labels)
        for labels, value in family.series(scene):
            assert isinstance(value, Histogram)
            histogram.add_metric(labels, _buckets(value, family.bounds), value.total)
        return histogram
    of = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = of(family.name, family.doc, labels=family.labels)
    for labels, value in family.series(scene):
        assert not isinstance(value, Histogram)
        metric.add_metric(labels, value)
    return metric


def _buckets(histogram: Histogram, bounds: tuple[float, ...]) -> list[tuple[str, float]]:
    """Return how many values are not above each bound; none were counted if a gateway of another version has others."""
    known = len(histogram.counts) == len(bounds) + 1
    counts = accumulate(histogram.counts if known else (0,) * (len(bounds) + 1))
    return [(_bound(bound), count) for bound, count in zip((*bounds, math.inf), counts, strict=True)]


def _bound(bound: float) -> str:
    return "+Inf" if bound == math.inf else repr(bound)
