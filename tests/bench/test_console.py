"""What the benchmark of the console plants is what it says, and a line through noise is told with its error."""

from collections import defaultdict
from itertools import pairwise

import pytest

from bench.console.found import frames_per_s, slope
from bench.console.planted import NUM_CHANGES, NUM_CHANGING, NUM_JOBS, SLOTS_EACH, WEEK_S, changes_of_week, planted_jobs

NOW = 1_800_000_000.0


def test_the_week_has_as_many_changes_as_it_says_in_the_order_of_time() -> None:
    points = list(changes_of_week(NOW))

    assert len(points) == NUM_CHANGES
    assert all(one.at < other.at for one, other in pairwise(points))
    assert points[0].at > NOW - WEEK_S
    assert points[-1].at < NOW


def test_each_point_of_the_week_is_a_change_and_nobody_holds_anything_at_its_end() -> None:
    of_job = defaultdict(list)
    for point in changes_of_week(NOW):
        of_job[point.job_id].append(point.num_slots)

    assert len(of_job) == NUM_CHANGING
    for held in of_job.values():
        assert all(one != other for one, other in pairwise([0, *held]))
        assert max(held) == SLOTS_EACH
        assert held[-1] == 0


def test_planted_jobs_have_ended_and_those_of_the_week_are_the_newest() -> None:
    jobs = list(planted_jobs(NOW))

    assert len({job.id for job in jobs}) == NUM_JOBS
    assert all(job.ended for job in jobs)
    assert {job.id for job in jobs[-NUM_CHANGING:]} == {point.job_id for point in changes_of_week(NOW)}
    assert all(job.ended_at is not None and job.ended_at <= NOW - WEEK_S for job in jobs[:-NUM_CHANGING])
    assert all(job.started_at is not None and job.started_at <= NOW - WEEK_S + 1 for job in jobs)


def test_a_line_without_noise_is_sure() -> None:
    found = slope([0, 10, 20, 30], [5, 6, 7, 8])

    assert found.rise(100) == pytest.approx((10, 0), abs=1e-9)


def test_a_line_through_noise_says_how_much_it_may_be_wrong() -> None:
    at = list(range(100))
    found = slope(at, [(-1) ** second + 0.5 * second for second in at])
    rise, error = found.rise(100)

    assert abs(rise - 50) < error < 2.5


def test_two_points_are_no_line_to_be_sure_of() -> None:
    assert slope([0, 1], [0, 0]).error_per_s == float("inf")


def test_frames_are_counted_between_the_first_and_the_last() -> None:
    assert frames_per_s([100, 120, 140, 200]) == 30
