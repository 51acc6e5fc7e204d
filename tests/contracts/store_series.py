"""The contract of `Store` over series: points, the charts that are made of many of them, and the usage of slots."""

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.contracts.store import a_job, a_metric

from pliant.core.access import VisibleJobs
from pliant.core.event import Usage
from pliant.core.job import JobId
from pliant.core.ports import Store, Writes
from pliant.core.slot_time import integrate


class SeriesContract:
    """What a caller may rely on of points, charts and usage; the fixture is `store`."""

    def test_points_come_in_order_of_step_and_name(self, store: Store) -> None:
        points = (a_metric(2, "loss"), a_metric(1, "loss"), a_metric(2, "accuracy"), a_metric(10, "accuracy"))
        store.write(Writes(jobs=(a_job(), a_job("job-2")), metrics=(*points, a_metric(1, job_id="job-2"))))
        job_id = JobId("job-1")
        assert store.metrics(job_id) == (points[1], points[2], points[0], points[3])
        assert store.metrics(job_id, names=["loss"]) == (points[1], points[0])
        assert store.metrics(job_id, names=["loss", "accuracy"], after_step=1) == (points[2], points[0], points[3])
        assert store.metrics(job_id, limit=1) == (points[1],)

    def test_a_point_of_the_same_step_replaces_the_one_before(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),), metrics=(a_metric(1, value=0.9), a_metric(2))))
        store.write(Writes(metrics=(a_metric(1, value=0.1),)))
        assert store.metrics(JobId("job-1")) == (a_metric(1, value=0.1), a_metric(2))

    def test_a_chart_of_few_points_has_them_all(self, store: Store) -> None:
        points = [a_metric(step, value=float(step % 7)) for step in (1, 2, 5)]
        store.write(Writes(jobs=(a_job(),), metrics=(*points, a_metric(2, "accuracy", math.nan))))
        accuracy, loss = store.chart(JobId("job-1"))
        assert (accuracy.name, loss.name) == ("accuracy", "loss")
        assert [(b.first_step, b.last_step, b.mean, b.num_points) for b in loss.buckets] == [
            (1, 1, 1.0, 1),
            (2, 2, 2.0, 1),
            (5, 5, 5.0, 1),
        ]
        assert [(b.num_points, b.num_values, b.mean, b.lowest) for b in accuracy.buckets] == [(1, 0, None, None)]
        assert store.chart(JobId("job-1"), names=["loss"], first_step=2, last_step=4) == (
            replace(loss, buckets=loss.buckets[1:2]),
        )
        assert store.chart(JobId("job-1"), names=["unknown"]) == ()
        assert store.chart(JobId("job-2")) == ()

    @pytest.mark.parametrize("max_buckets", [1, 7, 100])
    def test_a_chart_of_many_points_loses_no_count_and_no_extreme(self, store: Store, max_buckets: int) -> None:
        values = [math.sin(step / 50) + (step == 1234) * 9 - (step == 3999) * 9 for step in range(4000)]
        points = tuple(a_metric(step, value=value) for step, value in enumerate(values))
        store.write(Writes(jobs=(a_job(), a_job("job-2"))))
        for start in range(0, 4000, 500):
            store.write(Writes(metrics=(*points[start : start + 500], a_metric(start, job_id="job-2", value=77.0))))
        (series,) = store.chart(JobId("job-1"), max_buckets=max_buckets)
        buckets = series.buckets
        assert max_buckets / 4 < len(buckets) <= max_buckets
        assert sum(b.num_points for b in buckets) == sum(b.num_values for b in buckets) == 4000
        assert max(b.highest for b in buckets if b.highest is not None) == max(values)
        assert min(b.lowest for b in buckets if b.lowest is not None) == min(values)
        assert (buckets[0].first_step, buckets[-1].last_step) == (0, 3999)
        assert all(one.last_step < other.first_step for one, other in pairwise(buckets))
        for bucket in buckets:
            under = values[bucket.first_step : bucket.last_step + 1]
            assert bucket.mean == pytest.approx(sum(under) / len(under))
            assert (bucket.lowest, bucket.highest) == (min(under), max(under))

    def test_a_chart_merges_neighbours_over_equal_numbers_of_steps(self, store: Store) -> None:
        there = (step for step in range(5, 180) if step % 7 not in (2, 3))
        points = [a_metric(step, value=math.nan if step % 5 == 0 else step / 8) for step in there]
        store.write(Writes(jobs=(a_job(),), metrics=tuple(points)))
        (series,) = store.chart(JobId("job-1"), max_buckets=50)
        for number, bucket in enumerate(series.buckets):
            cell = [point for point in points if (point.step - 5) // 4 == number]
            values = [point.value for point in cell if not math.isnan(point.value)]
            assert (bucket.first_step, bucket.last_step, bucket.at) == (cell[0].step, cell[-1].step, cell[-1].at)
            assert (bucket.num_points, bucket.num_values, bucket.total) == (len(cell), len(values), sum(values))
        assert len(series.buckets) == 44

    def test_a_point_that_is_replaced_counts_once_in_a_chart(self, store: Store) -> None:
        store.write(Writes(jobs=(a_job(),), metrics=tuple(a_metric(step, value=1.0) for step in range(200))))
        store.write(Writes(metrics=(a_metric(7, value=-5.0),)))
        store.write(Writes(metrics=(a_metric(7, value=3.0),)))
        (series,) = store.chart(JobId("job-1"), max_buckets=1)
        (bucket,) = series.buckets
        assert (bucket.num_points, bucket.lowest, bucket.highest) == (200, 1.0, 3.0)
        assert bucket.total == pytest.approx(202.0)

    def test_series_are_listed_with_their_ends(self, store: Store) -> None:
        points = [a_metric(step, value=step / 8) for step in range(1, 100)]
        more = (a_metric(7, "B", math.nan), a_metric(5, "B", 2.0), a_metric(3, "a"), a_metric(1, job_id="job-2"))
        store.write(Writes(jobs=(a_job(), a_job("job-2")), metrics=(*points, *more)))
        store.write(Writes(metrics=(a_metric(99, value=0.5),)))
        found = store.series_ends(JobId("job-1"))
        assert [(one.name, one.num_points, one.first_step, one.last_step, one.value) for one in found] == [
            ("B", 2, 5, 7, None),
            ("a", 1, 3, 3, more[2].value),
            ("loss", 99, 1, 99, 0.5),
        ]
        assert found[2].at == max(point.at for point in points)
        assert store.series_ends(JobId("job-1"), after="B", limit=1) == found[1:2]
        assert store.series_ends(JobId("job-3")) == ()

    def test_usage_starts_with_each_jobs_last_earlier_point(self, store: Store) -> None:
        def point(at: float, job_id: str, num_slots: int) -> Usage:
            return Usage(at=at, job_id=JobId(job_id), num_slots=num_slots)

        points = [point(1.0, "job-1", 1), point(2.0, "job-1", 2), point(2.0, "job-1", 3), point(2.5, "job-2", 1)]
        points += [point(4.0, "job-2", 0), point(5.0, "job-1", 8)]
        store.write(Writes(jobs=(a_job(), a_job("job-2")), usage=tuple(points)))
        assert store.usage() == tuple(points)
        assert store.usage(since=4.0) == tuple(points[2:])
        assert store.usage(since=2.0) == (points[0], *points[1:])
        assert store.usage(since=4.0, job_id=JobId("job-1")) == (points[2], points[5])
        assert store.usage(since=9.0) == (points[4], points[5])

    def test_what_was_used_is_the_integral_of_the_usage(self, store: Store) -> None:
        chance = random.Random(7)
        ids = [f"job-{number}" for number in range(1, 6)]
        jobs = [replace(a_job(job_id), owner="ann" if job_id < "job-3" else "ben") for job_id in ids]
        instants = sorted(chance.choice((chance.uniform(0, 50), float(chance.randrange(50)))) for _ in range(80))
        points = [Usage(at=at, job_id=JobId(chance.choice(ids)), num_slots=chance.randrange(4)) for at in instants]
        store.write(Writes(jobs=tuple(jobs), usage=tuple(points)))
        for start, until in [(0.0, 60.0), (10.0, 20.0), (25.0, 25.5), (49.0, 90.0), (0.0, 1.0), (7.0, 8.0)]:
            for visible in (None, VisibleJobs(owner="ann", shared=frozenset({JobId("job-4")}))):
                found = store.slot_time(start, until, visible)
                expected = integrate(store.usage(since=start, visible=visible), start, until)
                assert {one.job_id: one.slot_seconds for one in found} == pytest.approx(expected)
                assert {(one.owner, one.queue, one.name) for one in found} <= {
                    ("ann", "default", "digits"),
                    ("ben", "default", "digits"),
                }
        assert store.slot_time(60.0, 50.0) == ()
