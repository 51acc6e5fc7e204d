"""Which metrics there are, as one table: name, type, labels, what it means, and how it follows from the measures.

Names are those of Prometheus's conventions: base units, `_total` for what only grows. What it is written as is
decided elsewhere (`exposition`). Names of endpoints, queues and owners are people's, and may be anything here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pliant import __version__
from pliant.control.loop.measures import PoolMeasures, VersionMeasures
from pliant.core.histogram import BATCH_BOUNDS, DURATION_BOUNDS_S, LATENCY_BOUNDS_S, Histogram
from pliant.core.machine import DeviceFacts, MachineFacts
from pliant.core.serving import LoadTotals, VersionLoad

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is measured at one scrape."""

    pool: PoolMeasures
    num_gateways: int
    """That are connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """One metric with all its series."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    labels: Labels = ()
    doc: str
    """One sentence."""
    series: Callable[[Scene], Iterable[tuple[Labels, float | Histogram]]]
    bounds: tuple[float, ...] = ()
    """Of a histogram."""


def _one(value: Callable[[Scene], float | Histogram]) -> Callable[[Scene], Iterable[tuple[Labels, float | Histogram]]]:
    return lambda scene: [((), value(scene))]


def _slots(scene: Scene) -> Iterator[tuple[Labels, float]]:
    for node, (held, excluded, every) in scene.pool.slots.items():
        yield (node, "held"), held
        yield (node, "free"), every - held - excluded
        yield (node, "excluded"), excluded


def _of_machines(value: Callable[[MachineFacts], float | None]) -> Callable[[Scene], Iterator[tuple[Labels, float]]]:
    def series(scene: Scene) -> Iterator[tuple[Labels, float]]:
        for node, facts in scene.pool.machines.items():
            if (found := value(facts)) is not None:
                yield (node,), found

    return series


def _of_gpus(value: Callable[[DeviceFacts], float | None]) -> Callable[[Scene], Iterator[tuple[Labels, float]]]:
    def series(scene: Scene) -> Iterator[tuple[Labels, float]]:
        for node, facts in scene.pool.machines.items():
            for device in facts.devices:
                if (found := value(device)) is not None:
                    yield (node, str(device.slot), device.model), found

    return series


def _by_key(
    counts: Callable[[PoolMeasures], Mapping[str, int]],
) -> Callable[[Scene], Iterator[tuple[Labels, float]]]:
    return lambda scene: (((key,), number) for key, number in counts(scene.pool).items())


def _jobs(scene: Scene) -> Iterator[tuple[Labels, float]]:
    for (state, kind, queue), number in scene.pool.jobs.items():
        yield (state.value, kind, queue), number


def _holders(held: bool) -> Callable[[Scene], Iterator[tuple[Labels, float]]]:
    def series(scene: Scene) -> Iterator[tuple[Labels, float]]:
        for job_id, one in scene.pool.holders.items():
            yield (job_id, one.kind, one.queue, one.owner), one.held if held else one.target

    return series


def _versions(
    value: Callable[[VersionMeasures], float | None],
) -> Callable[[Scene], Iterator[tuple[Labels, float]]]:
    def series(scene: Scene) -> Iterator[tuple[Labels, float]]:
        for (name, number), version in scene.pool.versions.items():
            if (found := value(version)) is not None:
                yield (name, str(number)), found

    return series


def _load(value: Callable[[VersionLoad], float]) -> Callable[[Scene], Iterator[tuple[Labels, float]]]:
    return _versions(lambda version: None if version.load is None else value(version.load))


def _histograms(value: Callable[[LoadTotals], Histogram]) -> Callable[[Scene], Iterator[tuple[Labels, Histogram]]]:
    def series(scene: Scene) -> Iterator[tuple[Labels, Histogram]]:
        for (name, number), version in scene.pool.versions.items():
            if version.load is not None:
                yield (name, str(number)), value(version.load.totals)

    return series


def _info(scene: Scene) -> Iterator[tuple[Labels, float]]:
    for (name, number), version in scene.pool.versions.items():
        yield (name, str(number), version.job_id, version.owner, version.queue), 1


def _kernels(scene: Scene) -> Iterator[tuple[Labels, float]]:
    for (name, number), version in scene.pool.versions.items():
        for state, num in version.kernels.items():
            yield (name, str(number), state), num


def _requests(scene: Scene) -> Iterator[tuple[Labels, float]]:
    for (name, number), version in scene.pool.versions.items():
        if version.load is not None:
            totals = version.load.totals
            yield (name, str(number), "success"), totals.succeeded
            yield (name, str(number), "rejected"), totals.rejected
            yield (name, str(number), "error"), totals.failed
            yield (name, str(number), "refused"), totals.refused


_VERSION: Final = ("endpoint", "version")
_JOB: Final = ("job", "kind", "queue", "owner")
_GPU: Final = ("node", "slot", "model")

FAMILIES: Final[tuple[MetricFamily, ...]] = (
    MetricFamily(
        name="pliant_build_info",
        kind="gauge",
        labels=("version",),
        doc="Always 1; the version of the server.",
        series=lambda _: [((__version__,), 1)],
    ),
    MetricFamily(
        name="pliant_slots",
        kind="gauge",
        labels=("node", "state"),
        doc="Slots of a node, `held` by tasks, `free`, or `excluded` by people.",
        series=_slots,
    ),
    MetricFamily(
        name="pliant_node_load",
        kind="gauge",
        labels=("node",),
        doc="Threads that run on a node or wait to, the mean of a minute.",
        series=_of_machines(lambda facts: facts.load),
    ),
    MetricFamily(
        name="pliant_node_memory_bytes",
        kind="gauge",
        labels=("node",),
        doc="Memory of a node.",
        series=_of_machines(lambda facts: facts.memory_bytes),
    ),
    MetricFamily(
        name="pliant_node_memory_used_bytes",
        kind="gauge",
        labels=("node",),
        doc="What of it no new program could have.",
        series=_of_machines(lambda facts: facts.memory_used_bytes),
    ),
    MetricFamily(
        name="pliant_gpu_memory_bytes",
        kind="gauge",
        labels=_GPU,
        doc="Memory of the GPU of a slot.",
        series=_of_gpus(lambda device: device.memory_bytes),
    ),
    MetricFamily(
        name="pliant_gpu_memory_used_bytes",
        kind="gauge",
        labels=_GPU,
        doc="What of it is used, by whomever.",
        series=_of_gpus(lambda device: device.memory_used_bytes),
    ),
    MetricFamily(
        name="pliant_gpu_busy_ratio",
        kind="gauge",
        labels=_GPU,
        doc="Part of the time in which it computed anything.",
        series=_of_gpus(lambda device: device.utilisation),
    ),
    MetricFamily(
        name="pliant_gpu_temperature_celsius",
        kind="gauge",
        labels=_GPU,
        doc="How hot it is.",
        series=_of_gpus(lambda device: device.temperature_c),
    ),
    MetricFamily(
        name="pliant_jobs",
        kind="gauge",
        labels=("state", "kind", "queue"),
        doc="Jobs that have not ended.",
        series=_jobs,
    ),
    MetricFamily(
        name="pliant_jobs_ended_total",
        kind="counter",
        labels=("state",),
        doc="Jobs that have ended, by how.",
        series=_by_key(lambda pool: pool.ended),
    ),
    MetricFamily(
        name="pliant_job_slots",
        kind="gauge",
        labels=_JOB,
        doc="Slots that a job holds; no series of jobs that hold none, so there are never more than slots.",
        series=_holders(held=True),
    ),
    MetricFamily(
        name="pliant_job_slots_granted",
        kind="gauge",
        labels=_JOB,
        doc="Slots that the newest decision gives such a job; it holds more while it shrinks, fewer while it grows.",
        series=_holders(held=False),
    ),
    MetricFamily(
        name="pliant_queue_slots_held",
        kind="gauge",
        labels=("queue",),
        doc="Slots that the jobs of a queue hold.",
        series=_by_key(lambda pool: {name: one.held for name, one in pool.queues.items()}),
    ),
    MetricFamily(
        name="pliant_queue_slots_wanted",
        kind="gauge",
        labels=("queue",),
        doc="Slots that they would take if there were enough.",
        series=_by_key(lambda pool: {name: one.wanted for name, one in pool.queues.items()}),
    ),
    MetricFamily(
        name="pliant_queue_slots_deserved",
        kind="gauge",
        labels=("queue",),
        doc="Slots that a queue deserves of those that it competes for, by the newest decision.",
        series=_by_key(lambda pool: {name: one.deserved for name, one in pool.queues.items()}),
    ),
    MetricFamily(
        name="pliant_events_total",
        kind="counter",
        labels=("kind",),
        doc="Events that were written, by their kind, such as `decision`, `demand` or `task.lost`.",
        series=_by_key(lambda pool: pool.events),
    ),
    MetricFamily(
        name="pliant_schedule_duration_seconds",
        kind="histogram",
        doc="How long the scheduler took to decide, without the writing.",
        series=_one(lambda scene: scene.pool.plans_s),
        bounds=DURATION_BOUNDS_S,
    ),
    MetricFamily(
        name="pliant_tick_duration_seconds",
        kind="histogram",
        doc="How long the control loop took for one look at everything, with decisions and writing.",
        series=_one(lambda scene: scene.pool.ticks_s),
        bounds=DURATION_BOUNDS_S,
    ),
    MetricFamily(
        name="pliant_tick_age_seconds",
        kind="gauge",
        doc="How long ago the control loop last looked; it does so once a second at least.",
        series=_one(lambda scene: scene.pool.tick_age_s),
    ),
    MetricFamily(
        name="pliant_resize_pause_seconds",
        kind="histogram",
        doc="How long trainings stood still when their size changed.",
        series=_one(lambda scene: scene.pool.pauses_s),
        bounds=DURATION_BOUNDS_S,
    ),
    MetricFamily(
        name="pliant_gateways_connected",
        kind="gauge",
        doc="Gateways that report; with 0 of them what is said of endpoints below is old.",
        series=_one(lambda scene: scene.num_gateways),
    ),
    MetricFamily(
        name="pliant_endpoint_info",
        kind="gauge",
        labels=(*_VERSION, "job", "owner", "queue"),
        doc="Always 1; what belongs to a version of an endpoint that runs, or would if it was asked.",
        series=_info,
    ),
    MetricFamily(
        name="pliant_endpoint_requests_total",
        kind="counter",
        labels=(*_VERSION, "outcome"),
        doc="Requests: `success`, `rejected` (4xx of the kernel), `error` (5xx), `refused` (by a limit).",
        series=_requests,
    ),
    MetricFamily(
        name="pliant_endpoint_request_duration_seconds",
        kind="histogram",
        labels=_VERSION,
        doc="What requests took with their wait, but for those that were refused.",
        series=_histograms(lambda totals: totals.latency_s),
        bounds=LATENCY_BOUNDS_S,
    ),
    MetricFamily(
        name="pliant_endpoint_batch_size",
        kind="histogram",
        labels=_VERSION,
        doc="Requests in the batches that kernels have computed.",
        series=_histograms(lambda totals: totals.batch_size),
        bounds=BATCH_BOUNDS,
    ),
    MetricFamily(
        name="pliant_endpoint_busy_seconds_total",
        kind="counter",
        labels=_VERSION,
        doc="Seconds that kernels have spent computing, all together.",
        series=_load(lambda load: load.totals.busy_s),
    ),
    MetricFamily(
        name="pliant_endpoint_queue_length",
        kind="gauge",
        labels=_VERSION,
        doc="Requests that wait for a kernel.",
        series=_load(lambda load: load.queued),
    ),
    MetricFamily(
        name="pliant_endpoint_requests_in_flight",
        kind="gauge",
        labels=_VERSION,
        doc="Requests that kernels hold.",
        series=_load(lambda load: load.in_flight),
    ),
    MetricFamily(
        name="pliant_endpoint_oldest_wait_seconds",
        kind="gauge",
        labels=_VERSION,
        doc="Age of the oldest request that waits; 0 if none does.",
        series=_load(lambda load: load.oldest_wait_s),
    ),
    MetricFamily(
        name="pliant_endpoint_kernels",
        kind="gauge",
        labels=(*_VERSION, "state"),
        doc="Kernels that are `starting`, `ready` or `leaving`.",
        series=_kernels,
    ),
    MetricFamily(
        name="pliant_endpoint_kernels_wanted",
        kind="gauge",
        labels=_VERSION,
        doc="Kernels that the load needs.",
        series=_versions(lambda version: version.wanted),
    ),
)
