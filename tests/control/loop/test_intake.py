"""Many exits at once are few transactions, and mean what they mean one by one."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.control.conftest import World

from pliant.control.loop import intake
from pliant.core.job import JobId, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.link import Failed

NUM_TASKS = 8


@contextmanager
def started(home: Path) -> Iterator[tuple[World, JobId]]:
    home.mkdir()
    world = World(home, NUM_TASKS)
    bounds = {"min_tasks": NUM_TASKS, "max_tasks": NUM_TASKS, "virtual_workers": NUM_TASKS}
    with closing(world.store):
        yield world, JobId(world.submit(fixed=True, max_restarts=0, **bounds))


def test_exits_that_come_together_are_written_together(tmp_path: Path) -> None:
    with started(tmp_path / "together") as (world, job_id):
        for task in world.tasks(job_id):
            world.exit(task.id, 0)
        world.clock.advance(0.0)
        writes: list[int] = []
        world.control.subscribe(lambda: writes.append(1))
        world.control.tick()
        assert world.job(job_id).state is JobState.COMPLETED
        assert len(writes) < NUM_TASKS / 2
        assert [task.exit_code for task in world.store.tasks(job_id)] == [0] * NUM_TASKS


@pytest.mark.parametrize("codes", [(0,) * NUM_TASKS, (0, 0, 3, 0, 1, 0, 0, 0)])
def test_exits_mean_the_same_together_and_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, ...]
) -> None:
    ends = []
    for most in (1, NUM_TASKS):
        monkeypatch.setattr(intake, "MAX_EXITS", most)
        with started(tmp_path / str(most)) as (world, job_id):
            for task, code in zip(world.tasks(job_id), codes, strict=True):
                world.exit(TaskId(task.id), code)
            world.clock.advance(0.0)
            world.settle()
            tasks = [(task.id, task.state, task.exit_code) for task in world.store.tasks(job_id)]
            job = world.job(job_id)
            ends.append((job.state, job.reason.replace(str(world.home), ""), job.num_slots, tasks))
    assert ends[0] == ends[1]


def test_what_comes_in_while_much_is_taken_in_counts_before_a_deadline_that_passes_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program has raised. Why is told while exits of another job are taken in, each of which takes two seconds."""
    monkeypatch.setattr(intake, "MAX_EXITS", 1)
    job_id = world.submit()
    (task_id,) = world.members(job_id)
    other = world.submit(fixed=True, min_tasks=2, max_tasks=2, virtual_workers=2)
    world.cluster.exit(task_id, 1)
    world.settle(0.2)
    for task in world.tasks(other):
        world.exit(task.id, 0)
    world.clock.advance(0.0)

    def take_long() -> None:
        end()
        world.say(task_id, Failed(error="ValueError: bad", traceback="ValueError: bad"))
        world.clock.advance(2.0)

    end = world.control.subscribe(take_long)
    world.control.tick()
    assert world.tasks(other), "the tick has ended before the rest"
    world.control.tick()
    world.settle(0.2)
    assert "raised ValueError: bad" in world.job(job_id).reason
