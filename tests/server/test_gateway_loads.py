"""What several gateways report, made one: levels are sums, nothing is counted twice, and totals never fall."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.histogram import Histogram
from pliant.core.job import JobId
from pliant.core.serving import CountedLoad, LoadTotals, VersionLoad
from pliant.core.time_counts import time_bucket
from pliant.policy.autoscale.load import ScaleState, take
from pliant.policy.autoscale.window import WINDOW_S, total
from pliant.server.gateway_loads import FORGET_S, SILENT_S, GatewayLoads

JOB = JobId("job-1")
NAMES = ("local", "local-1", "local-2")


def report(seconds: float = 0.25, **values: object) -> VersionLoad:
    return replace(VersionLoad(job_id=JOB, seconds=seconds), **values)  # type: ignore[arg-type]


def connected(*names: str) -> GatewayLoads:
    loads = GatewayLoads()
    for pid, name in enumerate(names, 1):
        loads.connect(name, pid)
    return loads


def test_levels_are_added_kernels_are_not_and_what_happened_is_what_this_one_reports() -> None:
    loads = connected("local", "local-1")
    first = report(in_flight=2, queued=4, mean_load=5.5, oldest_wait_s=0.5, num_ready=3, completed=8)
    second = report(in_flight=1, queued=1, mean_load=2.0, oldest_wait_s=0.75, num_ready=2, completed=3, refused=1)
    third = report(completed=9, failed=2, num_batches=4, busy_s=0.125, num_ready=3)

    assert loads.merge("local", first, 10.0) is first
    assert loads.merge("local-1", second, 10.125) == report(
        0.125, in_flight=3, queued=5, mean_load=7.5, oldest_wait_s=0.75, num_ready=3, completed=3, refused=1
    )
    assert loads.merge("local", third, 10.25) == report(
        0.125,
        in_flight=1,
        queued=1,
        mean_load=2.0,
        oldest_wait_s=0.75,
        num_ready=3,
        completed=9,
        failed=2,
        num_batches=4,
        busy_s=0.125,
    )


def test_versions_do_not_mix() -> None:
    loads = connected("local", "local-1")
    loads.merge("local", report(queued=4), 10.0)
    other = replace(report(queued=1), job_id=JobId("job-2"))

    assert loads.merge("local-1", other, 10.0) is other


@pytest.mark.parametrize("end", ["cut off", "replaced", "silent"])
def test_who_is_cut_off_replaced_or_silent_has_no_queue_and_comes_back_with_the_next_report(end: str) -> None:
    loads, at = connected("local", "local-1"), 10.0
    loads.merge("local", report(queued=4, num_ready=3), at)
    if end == "cut off":
        loads.disconnect("local")
    elif end == "replaced":
        loads.connect("local", 99)
    else:
        at += SILENT_S

    alone = loads.merge("local-1", report(queued=1, num_ready=2), at + 0.25)
    loads.connect("local", 99 if end == "replaced" else 1)
    back = loads.merge("local", report(queued=2), at + 0.5)

    assert (alone.queued, alone.num_ready) == (1, 2)
    assert back.queued == 3


def test_quantiles_are_those_of_all_values_together() -> None:
    loads = connected("local", "local-1")
    quick = CountedLoad(
        job_id=JOB,
        seconds=0.25,
        latency_s={"p50": 0.01, "p95": 0.01, "p99": 0.01},
        latency_counts={time_bucket(0.01): 90},
        service_counts={time_bucket(0.01): 90},
    )
    slow = replace(quick, latency_counts={time_bucket(1.0): 8, time_bucket(9.0): 2}, service_counts={})

    loads.merge("local", quick, 10.0)
    merged = loads.merge("local-1", slow, 10.25)

    assert type(merged) is VersionLoad, "counts are of no use to those who read it"
    assert merged.latency_s == pytest.approx({"p50": 0.01, "p95": 1.0, "p99": 9.0}, rel=0.03)
    assert merged.service_p95_s == pytest.approx(0.01, rel=0.03)


def test_without_counts_the_largest_quantile_is_taken() -> None:
    loads = connected("local", "local-1")
    loads.merge("local", report(latency_s={"p50": 0.1, "p95": 0.5, "p99": 0.9}, service_p95_s=0.2), 10.0)

    merged = loads.merge("local-1", report(latency_s={"p50": 0.2, "p95": 0.3, "p99": 0.4}, service_p95_s=0.1), 10.25)

    assert merged.latency_s == {"p50": 0.2, "p95": 0.5, "p99": 0.9}
    assert merged.service_p95_s == 0.2
    assert connected("local").merge("local", report(), 1.0).latency_s == {}


def test_without_answers_there_are_no_quantiles() -> None:
    loads = connected("local", "local-1")
    loads.merge("local", report(), 10.0)

    merged = loads.merge("local-1", CountedLoad(job_id=JOB, seconds=0.25, latency_counts={}, service_counts={}), 10.25)

    assert (merged.latency_s, merged.service_p95_s) == ({}, 0.0)


def totals(num: int) -> LoadTotals:
    return LoadTotals(succeeded=num, latency_s=Histogram((num, 0), num / 10), busy_s=num / 10)


def test_what_a_process_has_counted_stays_in_the_totals_when_another_takes_its_place() -> None:
    loads = connected("local", "local-1")
    loads.merge("local", report(totals=totals(100)), 10.0)
    loads.merge("local-1", report(totals=totals(10)), 10.25)
    loads.disconnect("local-1")
    assert loads.merge("local", report(totals=totals(101)), 10.5).totals.succeeded == 111
    loads.connect("local-1", 77)
    merged = loads.merge("local-1", report(totals=totals(12)), 10.75)

    assert merged.totals.succeeded == 101 + 10 + 12, "12 of the new process are not those of the old one"
    assert merged.totals.latency_s.counts == (123, 0)
    loads.connect("local-1", 77)
    assert loads.merge("local-1", report(totals=totals(13)), 11.0).totals.succeeded == 124, "a link that breaks"


def test_seconds_do_not_fall_by_a_last_digit_when_they_are_added_in_another_order() -> None:
    loads, a, b, c = connected(*NAMES), 0.1, 0.1, 0.4
    assert c + a + b < a + b + c, "sums of floats depend on their order"
    for name, busy_s in zip(NAMES, (a, b, c), strict=True):
        before = loads.merge(name, report(totals=LoadTotals(busy_s=busy_s)), 10.0)

    loads.connect(NAMES[2], 77)
    after = loads.merge(NAMES[2], report(totals=LoadTotals(busy_s=0.0)), 10.5)

    assert after.totals.busy_s == before.totals.busy_s


def test_the_only_gateway_begins_anew_when_it_restarts() -> None:
    loads = connected("local")
    loads.merge("local", report(totals=totals(100)), 10.0)
    loads.disconnect("local")
    loads.connect("local", 77)
    again = report(totals=totals(3))

    assert loads.merge("local", again, 10.25) is again


def test_what_was_done_without_a_server_comes_as_no_burst() -> None:
    loads = connected("local", "local-1")
    loads.merge("local", report(60.0, completed=6000), 100.0)

    merged = loads.merge("local-1", report(60.0, completed=6000, busy_s=30.0, failed=60), 100.25)

    assert (merged.completed, merged.busy_s, merged.failed) == (600, 3.0, 6), "those of a window"


def test_a_clock_that_is_put_back_leaves_a_report_its_own_seconds() -> None:
    loads = connected("local", "local-1")
    loads.merge("local", report(), 100.0)

    assert loads.merge("local-1", report(0.5), 40.0).seconds == 0.5


def test_versions_that_nobody_reports_are_forgotten() -> None:
    loads, at = connected("local", "local-1"), 10.0
    for number in range(50):
        for name in NAMES[:2]:
            loads.merge(name, replace(report(), job_id=JobId(f"job-{number}")), at)
        at += FORGET_S / 5

    assert len(loads) < 10


@dataclass
class Gateway:
    """A gateway process, of which one knows all."""

    pid: int
    present: int = 0
    completed: int = 0
    ended: int = 0
    """Since the newest report."""
    reported: int = 0
    """What was present at the newest report."""
    reported_total: int = 0
    reported_at: float = 0.0


@dataclass
class World:
    """Up to three gateways, and what truly came."""

    loads: GatewayLoads = field(default_factory=GatewayLoads)
    gateways: dict[str, Gateway] = field(default_factory=dict)
    now: float = 100.0
    num_pids: int = 0

    def start(self, name: str) -> None:
        self.num_pids += 1
        self.gateways[name] = Gateway(pid=self.num_pids, reported_at=self.now - 0.2)
        self.loads.connect(name, self.num_pids)

    def report(self, name: str) -> VersionLoad:
        one = self.gateways[name]
        load = report(
            self.now - one.reported_at,
            in_flight=one.present // 2,
            queued=one.present - one.present // 2,
            num_ready=1,
            completed=one.ended,
            totals=LoadTotals(
                succeeded=one.completed,
                latency_s=Histogram((one.completed,), one.completed * 0.1),
                busy_s=one.completed * 0.1,
            ),
        )
        one.ended, one.reported, one.reported_total, one.reported_at = 0, one.present, one.completed, self.now
        return load


_requests = st.tuples(st.sampled_from(NAMES), st.integers(0, 20), st.integers(0, 20), st.floats(0.001, 0.2))


@given(st.lists(_requests, min_size=1, max_size=14))
def test_requests_that_arrive_are_counted_once_each_whoever_reports_when(
    steps: list[tuple[str, int, int, float]],
) -> None:
    world, num_arrived = World(), 0
    for name in NAMES:
        world.start(name)
    state = take(ScaleState(), world.loads.merge(NAMES[0], world.report(NAMES[0]), world.now), world.now)
    began_at = world.now
    for name, num_new, num_done, gap_s in steps:
        one = world.gateways[name]
        done = min(num_done, one.present + num_new)
        one.present += num_new - done
        one.ended += done
        one.completed += done
        num_arrived += num_new
        world.now += gap_s
        merged = world.loads.merge(name, world.report(name), world.now)
        state = take(state, merged, world.now)

        there = world.gateways.values()
        assert merged.in_flight + merged.queued == sum(gateway.reported for gateway in there)
        assert merged.totals.succeeded == sum(gateway.reported_total for gateway in there)

    window = total(state.samples, world.now, WINDOW_S)
    assert window.arrived == pytest.approx(num_arrived)
    assert window.seconds == pytest.approx(0.2 + world.now - began_at)


_events = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(["report", "die", "cut", "restart"]), st.integers(0, 9), st.floats(0.01, 9)
)


def _numbers(load: VersionLoad) -> tuple[float, ...]:
    totals = load.totals
    return (totals.succeeded, totals.busy_s, totals.latency_s.total, *totals.latency_s.counts)


@given(st.lists(_events, max_size=60))
def test_totals_never_fall_and_miss_nothing_that_was_reported_whatever_becomes_of_gateways(
    events: list[tuple[str, str, int, float]],
) -> None:
    world, ended = World(), 0
    for name in NAMES:
        world.start(name)
    before: tuple[float, ...] = (0,) * 4
    for name in NAMES[:2]:  # from the second on they are several
        before = _numbers(world.loads.merge(name, world.report(name), world.now))
    for name, event, num, gap_s in events:
        world.now += gap_s
        one = world.gateways[name]
        if event in ("die", "cut"):
            world.loads.disconnect(name)
        if event in ("die", "restart"):
            ended += one.reported_total
            world.start(name)
        elif event == "report":
            world.loads.connect(name, one.pid)
            one.completed += num
            merged = world.loads.merge(name, world.report(name), world.now)

            assert all(new >= old for new, old in zip(_numbers(merged), before, strict=True))
            before = _numbers(merged)
            assert merged.totals.succeeded == ended + sum(each.reported_total for each in world.gateways.values())
            assert merged.totals.busy_s == pytest.approx(merged.totals.succeeded * 0.1)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.floats(0, 900)), max_size=30))
def test_what_one_gateway_alone_reports_stays_the_object_that_it_was(steps: list[tuple[bool, int, float]]) -> None:
    world = World()
    world.start("local")
    for restarts, num, gap_s in steps:
        world.now += gap_s
        if restarts:
            world.start("local")
        world.gateways["local"].completed += num
        load = world.report("local")
        assert world.loads.merge("local", load, world.now) is load
