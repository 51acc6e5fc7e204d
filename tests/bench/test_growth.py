"""The page of growth: its fits are what was planted, its pools are as it says, and its parts measure what happens."""

import math
from pathlib import Path

import pytest

from bench.growth import ends, plans, ticks, writes
from bench.growth.__main__ import limit_table, limits, plan_table, tick_table
from bench.growth.fit import exponent, reaches
from bench.growth.pools import pending
from pliant.core.plan import Policy


@pytest.mark.parametrize("planted", [0.5, 1.0, 2.0])
def test_the_exponent_is_the_planted_one(planted: float) -> None:
    points = {size: 3.0 * size**planted for size in (10, 100, 1000)}

    assert exponent(points) == pytest.approx(planted)


def test_small_sizes_can_be_left_out_of_the_exponent() -> None:
    assert exponent({10: 100.0, 100: 100.0, 1000: 1000.0}, since=100) == pytest.approx(1.0)


@pytest.mark.parametrize("points", [{}, {10: 1.0}, {10: 1.0, 100: 0.0}])
def test_of_fewer_than_two_figures_there_is_no_exponent(points: dict[int, float]) -> None:
    assert exponent(points) is None


def test_a_budget_is_reached_between_two_sizes_or_beyond_all() -> None:
    quadratic = {size: size**2 / 1000 for size in (10, 100, 1000)}

    assert reaches(quadratic, 2.5) == pytest.approx(50)
    assert reaches(quadratic, 9000.0) == pytest.approx(3000)


def test_a_budget_that_the_smallest_size_does_not_keep_is_reached_there() -> None:
    assert reaches({10: 5.0, 100: 50.0}, 1.0) == 10


def test_what_does_not_grow_reaches_no_budget() -> None:
    assert reaches({10: 5.0, 100: 5.0}, 10.0) is None
    assert reaches({}, 10.0) is None


def test_a_pool_at_rest_has_given_out_all_its_slots() -> None:
    rest, _ = plans.settle(pending(20), Policy())

    held = [(task.node_id, slot) for one in rest.workloads for task in one.tasks for slot in task.slots]
    assert len(held) == len(set(held)) == 200


def test_ticks_start_all_that_the_pool_has_slots_for(tmp_path: Path) -> None:
    found = ticks.measure(3, 2, tmp_path)

    assert (found.num_jobs, found.num_tasks) == (6, 30)
    assert {name: len(taken) for name, taken in found.changes.items()} == dict.fromkeys(found.changes, 2)
    assert all(taken > 0 for taken in [*found.starting, *found.changes["a fixed job was stopped"]])


def test_what_is_written_for_a_job_is_counted(tmp_path: Path) -> None:
    found = {one.what: one for one in writes.measure(tmp_path)}

    reported = found["elastic job: one report of its leader"]
    assert (reported.transactions, reported.rows) == (1, 3)  # the job, and a point of each of two series
    assert all(one.transactions >= 1 and one.rows > one.transactions for one in found.values())


def test_the_tables_have_a_row_for_each_size_and_the_limits_come_in_order(tmp_path: Path) -> None:
    planned = [plans.measure(size, 1) for size in (2, 4)]
    ticked = [ticks.measure(size, 1, tmp_path) for size in (2, 4)]
    ended = [ends.measure(size, 1) for size in (2, 4)]

    found = limits(planned, planned, ticked, ended, {"renewals": 1e-3, "pulses": 1e-4, "reports": 1e-2})

    assert [line.split(" |")[0] for line in plan_table(planned).splitlines()[2:]] == ["| 2", "| 4", "| grows with"]
    assert [line.split(" |")[0] for line in tick_table(ticked).splitlines()[2:]] == ["| 2", "| 4", "| grows with"]
    sizes = [math.inf if one.nodes is None else one.nodes for one in found]
    assert sizes == sorted(sizes)
    assert "| reports of trainings with short steps, all jobs | a core | 50 | 100 trainings |" in limit_table(found)
