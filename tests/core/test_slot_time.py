"""What was used is the integral of how many slots were held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.event import Usage
from pliant.core.job import JobId
from pliant.core.slot_time import SlotTime, UsageKey, add_up, integrate

KEYS: tuple[UsageKey, ...] = ("user", "queue", "job")


def point(at: float, num_slots: int, job_id: str = "job-1") -> Usage:
    return Usage(at=at, job_id=JobId(job_id), num_slots=num_slots)


def test_the_example_of_the_theory() -> None:
    assert integrate([point(10, 4), point(20, 2), point(30, 0)], 15, 100) == {"job-1": 40.0}


POINTS = st.lists(
    st.builds(point, st.integers(0, 30), st.integers(0, 5), st.sampled_from(["job-1", "job-2"])), max_size=20
).map(lambda points: sorted(points, key=lambda one: one.at))


@given(POINTS, st.integers(0, 40), st.integers(0, 40))
def test_every_second_counts_with_the_slots_that_were_held_in_it(points: list[Usage], start: int, until: int) -> None:
    expected = dict.fromkeys(("job-1", "job-2"), 0)
    for second in range(start, until):
        for job_id in expected:
            held = [one.num_slots for one in points if one.job_id == job_id and one.at <= second]
            expected[job_id] += held[-1] if held else 0
    assert integrate(points, start, until) == {key: num for key, num in expected.items() if num}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("qr"), st.floats(0.1, 1e6)), max_size=9))
def test_no_sum_loses_anything(used: list[tuple[str, str, float]]) -> None:
    times = [
        SlotTime(job_id=JobId(f"job-{n}"), name="x", owner=owner, queue=queue, slot_seconds=seconds)
        for n, (owner, queue, seconds) in enumerate(used)
    ]
    for key in KEYS:
        sums = add_up(times, key)
        assert sum(one.slot_seconds for one in sums) == pytest.approx(sum(one.slot_seconds for one in times))
        assert sum(one.num_jobs for one in sums) == len(times)
        assert sum(one.share for one in sums) == pytest.approx(1.0 if times else 0.0)
        assert list(sums) == sorted(sums, key=lambda one: -one.slot_seconds)
