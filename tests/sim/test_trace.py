"""Traces are checked as a whole, and a seed always makes the same day."""

import json

import pytest

from pliant.core.errors import InvalidInput
from pliant.sim.trace import day, on_pool, parse, story


def problems(text: str) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        on_pool(parse(text), None, None)
    return {problem.field: problem.message for problem in refused.value.problems}


def test_a_trace_survives_json() -> None:
    assert parse(day(3).model_dump_json(exclude_none=True)) == day(3)


def test_everything_that_is_wrong_with_the_shape_is_told_at_once() -> None:
    job = {"name": "", "at_s": -1, "slot_hours": 0, "max_tasks": "8", "speed": 3}
    found = problems(json.dumps({"slots": 0, "jobs": [job], "changes": [{"at_s": 0, "job": "A", "set": {}}]}))

    fields = ["name", "at_s", "slot_hours", "max_tasks", "speed"]
    assert set(found) == {"slots", *(f"jobs.0.{field}" for field in fields), "changes.0.set"}
    assert "'8' is no whole number" in found["jobs.0.max_tasks"]


def test_everything_that_does_not_fit_together_is_told_at_once() -> None:
    jobs = [
        {"name": "A", "at_s": 10, "slot_hours": 1, "min_tasks": 3, "max_tasks": 2},
        {"name": "A", "at_s": 0, "slot_hours": 1},
        {"name": "C", "at_s": 50, "slot_hours": 1, "slots_per_task": 9},
        {"name": "D", "at_s": 60, "slot_hours": 1, "max_tasks": 2, "fixed": True},
    ]
    losses = [{"at_s": 0, "job": "X"}, {"at_s": 49, "job": "C"}]
    found = problems(json.dumps({"jobs": jobs, "losses": losses}))

    assert found == {
        "jobs.0.min_tasks": "3 is above max_tasks 2; lower the one or raise the other",
        "jobs.1.name": "'A' is there twice; rename one",
        "jobs.2.min_tasks": "1 tasks of 9 slots never fit on 1 nodes of 8 slots; lower the minimum or enlarge the pool",
        "jobs.3.min_tasks": "1 is below max_tasks 2 of a fixed job; give it the same",
        "losses.0.job": "no job is named 'X'; there are A, C, D",
        "losses.1.at_s": "49 is before 'C' arrives at 50; give a later instant",
    }


def test_queues_and_groups_are_checked_with_the_rest() -> None:
    trace = {
        "groups": [{"name": "all", "hosts": {"all": True}}, {"name": "half", "hosts": {"all": True}}],
        "queues": [{"name": "default"}, {"name": "night", "resource_group": "full", "run_as": "ann"}],
        "jobs": [{"name": "A", "at_s": 0, "slot_hours": 1, "queue": "day"}],
    }

    assert problems(json.dumps(trace)) == {
        "groups.0.name": "'all' is there already; choose another name",
        "queues.0.name": "'default' is there already; choose another name",
        "queues.1.resource_group": "there is no resource group 'full'; there are all, all, half",
        "queues.1.run_as": "means nothing here, where no process runs; leave it out",
        "jobs.0.queue": "there is no queue 'day'; there are default, default, night",
    }


def test_text_that_is_no_json_is_refused() -> None:
    assert "Invalid JSON" in problems("{jobs}")[""]


def test_a_trace_without_jobs_is_refused() -> None:
    assert problems('{"jobs": []}') == {"jobs": "there are none; give one at least"}


def test_a_pool_of_another_size_is_checked_too() -> None:
    assert on_pool(story(), 2, 4).num_slots == 8
    wide = day(1).model_copy(update={"jobs": tuple(job for job in day(1).jobs if job.slots_per_task == 2)})
    with pytest.raises(InvalidInput, match="never fit on 2 nodes of 1 slots"):
        on_pool(wide.model_copy(update={"changes": (), "losses": ()}), None, 1)


def test_the_same_seed_makes_the_same_day_and_another_makes_another() -> None:
    assert day(5) == day(5)
    assert day(5) != day(6)
    assert on_pool(day(5), None, None) == day(5)
