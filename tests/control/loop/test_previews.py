"""What if: a preview writes nothing, and says what the next decision does if the change is made at that instant."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.control.conftest import World

from pliant.api.jobs import JobPatch
from pliant.api.previews import SharePreview
from pliant.core.access import VisibleJobs
from pliant.core.errors import NotFound, UserError
from pliant.core.job import JobId, JobSpec
from pliant.core.notice import NO_NOTICES
from pliant.core.plan import PolicyName
from pliant.core.queue import Queue, ResourceGroup
from pliant.sim.store import MemoryStore

QUEUES = ("default", "night", "few")


class QuickWorld(World):
    """A world whose store is in memory."""

    def new_store(self) -> Any:
        return MemoryStore()


@contextmanager
def world_of(num_slots: int, policy: PolicyName) -> Iterator[QuickWorld]:
    """Yield a world with three queues, one of them over a few slots."""
    with tempfile.TemporaryDirectory() as home:
        world = QuickWorld(Path(home), num_slots, policy)
        world.control.queues.add_group(ResourceGroup(name="g", slots_per_host=3), "ada")
        world.control.queues.add_queue(Queue(name="night", policy=PolicyName.PRIORITY, weight=2), "ada")
        world.control.queues.add_queue(Queue(name="few", resource_group="g", preemption=False), "ada")
        yield world


def rest(world: World) -> None:
    """Tick until nothing more comes of it."""
    before = -1
    while before != (before := world.store.last_seq()):
        world.control.tick()


def as_decided(world: World) -> Mapping[str, tuple[int, str]]:
    """Return the target of every job, in slots, and the sentence that goes with it."""
    return {
        live.id: (live.job.spec.num_slots_for(live.target), live.job.why)
        for live in world.control.jobs().values()
        if live.competes
    }


def as_foreseen(preview: SharePreview, new: str = "") -> Mapping[str, tuple[int, str]]:
    return {one.id or new: (one.would_get, one.reason) for one in preview.workloads}


def as_it_is(world: World) -> object:
    return world.store.last_seq(), dict(world.control.jobs()), world.control.queues.queues()


sizes = st.integers(1, 5)


def fitting(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job whose minimum goes with its maximum and its kind."""
    largest = int(job["max_tasks"])
    return job | {"min_tasks": largest if job["fixed"] else min(int(job["min_tasks"]), largest)}


jobs = st.fixed_dictionaries(
    {
        "min_tasks": sizes,
        "max_tasks": sizes,
        "slots_per_task": st.sampled_from([1, 1, 2]),
        "priority": st.integers(1, 10_000),
        "queue": st.sampled_from(QUEUES),
        "fixed": st.sampled_from([False, False, True]),
    }
).map(fitting)
patches = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(1, 10_000),
        "min_tasks": sizes,
        "max_tasks": sizes,
        "queue": st.sampled_from([*QUEUES, "nowhere"]),
    },
).filter(bool)
policies = st.sampled_from(PolicyName)


@settings(max_examples=15, deadline=None)
@given(num_slots=st.integers(1, 8), policy=policies, there=st.lists(jobs, min_size=1, max_size=6), data=st.data())
def test_what_a_change_is_said_to_bring_it_brings(
    num_slots: int, policy: PolicyName, there: list[dict[str, Any]], data: st.DataObject
) -> None:
    with world_of(num_slots, policy) as world:
        ids = [world.submit(**job) for job in there]
        world.settle(1.0)
        rest(world)
        job_id, patch = data.draw(st.sampled_from(ids)), JobPatch.model_validate(data.draw(patches))
        before = as_it_is(world)

        preview = world.control.previews.change(job_id, patch)

        assert as_it_is(world) == before
        assert {one.id: one.held for one in preview.workloads} == {one.id: one.num_slots for one in lives(world)}
        if preview.refused:
            with pytest.raises(UserError) as refusal:
                world.control.requests.change(job_id, patch)
            assert str(refusal.value) == preview.refused
            return
        world.control.requests.change(job_id, patch)
        world.control.tick()
        assert as_decided(world) == as_foreseen(preview)


def lives(world: World) -> list[Any]:
    return [live for live in world.control.jobs().values() if live.running or live.competes]


@settings(max_examples=15, deadline=None)
@given(num_slots=st.integers(1, 8), policy=policies, there=st.lists(jobs, max_size=5), new=jobs)
def test_what_a_submission_is_said_to_get_it_gets(
    num_slots: int, policy: PolicyName, there: list[dict[str, Any]], new: dict[str, Any]
) -> None:
    with world_of(num_slots, policy) as world:
        for job in there:
            world.submit(**job)
        world.settle(1.0)
        rest(world)
        before = as_it_is(world)
        spec = JobSpec(**{"name": "digits", "script": "train.py", "virtual_workers": 8, **new})

        preview = world.control.previews.submission(spec, "admin", None, NO_NOTICES)

        assert as_it_is(world) == before
        assert (preview.refused, preview.problems) == ("", ())
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(world, "settle", lambda: world.control.tick())
            job_id = world.submit(**new)
        foreseen = {
            one: (num, why.replace("(new)", f"({job_id})")) for one, (num, why) in as_foreseen(preview, job_id).items()
        }
        assert as_decided(world) == foreseen
        assert preview.starts_with == world.job(job_id).num_slots
        assert preview.starts == (preview.starts_with > 0)
        assert (preview.waiting is None) == (preview.would_get > 0)
        if preview.waiting is not None:
            assert world.control.standing.waiting(job_id) == preview.waiting


@settings(max_examples=10, deadline=None)
@given(
    there=st.lists(jobs, min_size=1, max_size=6),
    name=st.sampled_from(QUEUES),
    changes=st.fixed_dictionaries(
        {}, optional={"weight": st.integers(1, 5), "policy": policies, "preemption": st.booleans()}
    ),
)
def test_what_a_queue_is_said_to_bring_it_brings(
    there: list[dict[str, Any]], name: str, changes: dict[str, Any]
) -> None:
    with world_of(6, PolicyName.FAIRSHARE) as world:
        for job in there:
            world.submit(**job)
        world.settle(1.0)
        rest(world)
        before = as_it_is(world)

        preview = world.control.previews.queue(name, changes)

        assert as_it_is(world) == before
        world.control.queues.change_queue(name, changes, None, "ada")
        world.control.tick()
        assert as_decided(world) == as_foreseen(preview)
        assert world.control.queues.deserved == {one.name: one.would_deserve for one in preview.queues}


def test_who_does_not_see_a_job_sees_its_slots_only_in_a_sum(world: World) -> None:
    ids = [world.submit(max_tasks=8) for _ in range(2)]
    world.settle(2.0)
    sight = VisibleJobs(owner="ada", shared=frozenset({ids[1]}))

    preview = world.control.previews.change(ids[1], JobPatch(priority=10_000), sight)

    assert [(one.id, one.held, one.would_get) for one in preview.workloads] == [(ids[1], 4, 5)]
    assert (preview.others.num_workloads, preview.others.held, preview.others.would_get) == (1, 4, 3)
    assert (preview.num_slots, preview.num_free, preview.would_be_free) == (8, 0, 0)


def test_a_submission_says_whose_slots_it_takes_or_what_it_waits_for(world: World) -> None:
    first = world.submit(max_tasks=8)
    world.settle(2.0)
    spec = JobSpec(name="second", script="train.py", virtual_workers=8, max_tasks=8)

    taken = world.control.previews.submission(spec, "ada", None, NO_NOTICES)
    waits = world.control.previews.submission(replace(spec, min_tasks=8), "ada", None, NO_NOTICES)

    assert (taken.starts, taken.would_get) == (False, 4)
    assert [(one.id, one.num_slots) for one in taken.takes] == [(first, 4)]
    assert (waits.starts, waits.would_get, waits.takes) == (False, 0, ())
    assert waits.sentence.startswith("waits: its minimum needs 8 slots, and minimums of jobs ahead of it hold 1 of 8")
    assert waits.waiting is not None
    assert (waits.waiting.place, waits.waiting.num_waiting, waits.waiting.num_needed) == (1, 1, 8)


def test_everything_that_is_wrong_with_a_submission_is_said_at_once(world: World) -> None:
    spec = JobSpec(
        name="wrong",
        script="train.py",
        virtual_workers=8,
        queue="nowhere",
        after=("job-99",),
        dataset="none",
        environment="none",
        weights="job-98",
        env={"PLIANT_X": "1"},
    )

    preview = world.control.previews.submission(spec, "ada", VisibleJobs(owner="ada"), NO_NOTICES)

    fields = {one.field for one in preview.problems}
    assert fields == {"queue", "after.0", "dataset", "environment", "weights", "env.PLIANT_X"}
    assert preview.refused


def test_a_job_that_is_not_there_is_not_there_for_a_preview_either(world: World) -> None:
    with pytest.raises(NotFound, match="no job is named"):
        world.control.previews.change(JobId("job-7"), JobPatch(priority=1))
    with pytest.raises(NotFound, match="no queue"):
        world.control.previews.queue("nowhere", {"weight": 2})
