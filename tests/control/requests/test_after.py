"""A job that runs after others holds no slots before they are over, and ends in words if they do not end as needed."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from tests.control.conftest import World, packed

from pliant.api.jobs import JobPatch
from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, InvalidInput
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.link import Finished
from pliant.core.plan import PolicyName
from pliant.core.ports import Writes

MakeWorld = Callable[..., World]


def state(world: World, job_id: JobId) -> JobState:
    return world.job(job_id).state


def fail(world: World, job_id: JobId) -> None:
    """Let the script of a job raise wherever it runs, until the job has failed."""
    while not world.job(job_id).ended:
        for task in world.tasks(job_id):
            world.exit(task.id, 1)
        world.settle(5.0)


def problems(world: World, visible: VisibleJobs | None = None, **changes: object) -> dict[str, str]:
    archive = world.home / "code.tar.gz"
    archive.write_bytes(packed({"train.py": "import pliant.train\n"}))
    spec = JobSpec(**{"name": "n", "script": "train.py", "virtual_workers": 8, **changes})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refused:
        world.control.requests.submit(spec, archive, "ann", visible)
    return {problem.field: problem.message for problem in refused.value.problems}


def test_it_starts_when_what_it_was_to_run_after_has_completed(world: World) -> None:
    first = world.submit()
    then = world.submit(after=(first,))

    assert (state(world, then), world.tasks(then)) == (JobState.PENDING, ())
    assert world.control.queries.why(then).sentence == "waits for job-1 to complete"

    world.finish(first)

    assert state(world, then) is JobState.RUNNING
    assert world.job(then).after == ()
    assert world.job(then).spec.after == (first,)
    assert "job-2 (digits) waits for no other job any more: job-1 has completed" in world.said(EventKind.JOB_RELEASED)


def test_it_ends_in_words_when_that_fails_or_is_stopped(world: World) -> None:
    failing, stopped = world.submit(), world.submit()
    after_failing, after_stopped = world.submit(after=(failing,)), world.submit(after=(stopped,))

    fail(world, failing)
    world.control.requests.stop(stopped)
    world.settle(10.0)

    assert state(world, after_failing) is state(world, after_stopped) is JobState.STOPPED
    assert world.job(after_failing).reason == "job-1 failed, and job-3 was to run after it had completed"
    assert world.job(after_stopped).reason == "job-2 was stopped, and job-4 was to run after it had completed"
    assert world.job(after_failing).started_at is None


def test_after_any_takes_any_end(world: World) -> None:
    first = world.submit()
    then = world.submit(after_any=(first,))
    assert world.job(then).why == "waits for job-1 to end"

    fail(world, first)

    assert state(world, then) is JobState.RUNNING


def test_a_chain_ends_from_its_first_to_its_last_at_once(world: World) -> None:
    first = world.submit()
    chain = [first]
    for _ in range(60):
        chain.append(world.submit(after=(chain[-1],)))
    last = world.submit(after_any=(chain[-1],))

    world.control.requests.stop(first, now=True)
    world.settle(1.0)

    assert {state(world, job_id) for job_id in chain} == {JobState.STOPPED}
    assert world.job(chain[-1]).reason == "job-60 was stopped, and job-61 was to run after it had completed"
    assert state(world, last) is JobState.RUNNING


def test_a_diamond_joins_when_both_sides_have_completed(world: World) -> None:
    top = world.submit()
    sides = [world.submit(after=(top,)), world.submit(after=(top,))]
    bottom = world.submit(after=tuple(sides))
    assert world.job(bottom).why == "waits for job-2 and job-3 to complete"

    world.finish(top)
    world.finish(sides[1])
    assert (state(world, bottom), world.job(bottom).why) == (JobState.PENDING, "waits for job-2 to complete")
    world.finish(sides[0])

    assert state(world, bottom) is JobState.RUNNING


def test_it_starts_only_when_the_last_process_of_the_first_is_gone(world: World) -> None:
    first = world.submit(min_tasks=2, max_tasks=2)
    then = world.submit(after=(first,))
    members = world.members(first)
    for member in members:
        world.say(member, Finished(step=0))
    world.exit(members[0], 0)
    world.settle(0.1)
    assert state(world, first) is JobState.COMPLETED
    assert state(world, then) is JobState.PENDING

    world.exit(members[1], 0)
    world.settle()

    assert state(world, then) is JobState.RUNNING


@pytest.mark.parametrize("policy", [PolicyName.FIFO, PolicyName.PRIORITY, PolicyName.FAIRSHARE])
def test_while_it_waits_it_takes_nothing_from_others(make_world: MakeWorld, policy: PolicyName) -> None:
    world = make_world(4, policy)
    first = world.submit(min_tasks=1, max_tasks=1)
    waiter = world.submit(after=(first,), min_tasks=4, max_tasks=4, priority=10_000)
    fixed = world.submit(after=(first,), min_tasks=4, max_tasks=4, virtual_workers=4, fixed=True, priority=10_000)
    behind = world.submit(min_tasks=3, max_tasks=3)

    assert len(world.tasks(behind)) == 3
    assert world.tasks(waiter) == world.tasks(fixed) == ()
    assert world.control.queries.why(waiter).target_tasks == 0


def test_a_fixed_job_waits_and_is_waited_for(world: World) -> None:
    first = world.submit(fixed=True, min_tasks=2, max_tasks=2, virtual_workers=2)
    then = world.submit(fixed=True, min_tasks=2, max_tasks=2, virtual_workers=2, after=(first,))
    assert len(world.tasks(first)) == 2
    assert world.tasks(then) == ()

    for task in world.tasks(first):
        world.exit(task.id, 0)
    world.settle()

    assert state(world, first) is JobState.COMPLETED
    assert len(world.tasks(then)) == 2


def test_a_killed_server_forgets_nothing(world: World) -> None:
    first, other = world.submit(), world.submit()
    both, one, never = (
        world.submit(after=(first, other)),
        world.submit(after_any=(other,)),
        world.submit(after=(other,)),
    )
    world.finish(first)
    world.restart()
    assert world.job(both).why == "waits for job-2 to complete"

    fail(world, other)
    world.restart()
    world.settle()

    assert world.job(both).reason == "job-2 failed, and job-3 was to run after it had completed"
    assert state(world, never) is JobState.STOPPED
    assert state(world, one) is JobState.RUNNING


def test_the_end_of_a_job_and_what_follows_from_it_are_one_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.submit()
    then = world.submit(after=(first,))
    written: list[set[str]] = []
    write = world.store.write

    def note(writes: Writes) -> object:
        written.append({job.id for job in writes.jobs})
        return write(writes)

    monkeypatch.setattr(world.store, "write", note)
    world.control.requests.stop(first, now=True)
    world.settle()

    ended = [ids for ids in written if then in ids]
    assert ended
    assert state(world, then) is JobState.STOPPED
    assert sum(first in ids for ids in ended) == 1


def test_what_is_removed_of_a_job_that_was_waited_for_is_not_needed(world: World) -> None:
    first, other = world.submit(), world.submit()
    then = world.submit(after=(first, other))
    world.finish(first)
    shutil.rmtree(world.home / "jobs" / first)
    with closing(sqlite3.connect(world.home / "pliant.db")) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        for table, column in (("tasks", "job_id"), ("generations", "job_id"), ("usage", "job_id"), ("jobs", "id")):
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (first,))
    world.restart()
    assert world.store.job(first) is None

    world.finish(other)

    assert state(world, then) is JobState.RUNNING


def test_what_has_completed_already_is_not_waited_for(world: World) -> None:
    first = world.submit()
    world.finish(first)

    then = world.submit(after=(first,), after_any=(world.submit(),))

    assert world.job(then).after == ()
    assert world.job(then).why == "waits for job-2 to end"


def test_what_cannot_be_waited_for_is_refused_with_all_else(world: World) -> None:
    failed, own = world.submit(), world.submit()
    fail(world, failed)

    found = problems(world, after=(failed, "job-9", own), after_any=("array-3", own), script="other.py")

    assert found["after.0"] == (
        "job-1 failed; a job that is to run after it has completed would never start: leave it out, or give it in "
        "after_any, which takes any end"
    )
    assert "no job is named 'job-9'" in found["after.1"]
    assert "no array is named 'array-3'" in found["after_any.0"]
    assert found["after_any"] == "job-2 is in after, too; name it once"
    assert "other.py" in found["script"]


def test_jobs_of_others_cannot_be_named_and_look_like_none(world: World) -> None:
    theirs = world.submit()
    ann = VisibleJobs(owner="ann")

    assert problems(world, ann, after=(theirs,))["after.0"] == problems(world, ann, after=("job-77",))[
        "after.0"
    ].replace("job-77", theirs)


def test_a_job_may_start_from_files_that_the_one_before_it_has_yet_to_write(world: World) -> None:
    first = world.submit()
    assert "no file" in problems(world, weights=first)["weights"]

    tuned = world.submit(after=(first,), weights=first)
    resumed = world.submit(after_any=(first,), resume_from=first)

    folders = world.control.settings.folders(first)
    assert world.job(tuned).spec.weights == str(folders.weights)
    assert world.job(resumed).spec.resume_from == str(folders.checkpoints)


def test_what_it_waits_for_can_be_changed_until_it_starts(world: World) -> None:
    first, second = world.submit(), world.submit()
    then = world.submit(after=(first,))
    requests = world.control.requests

    requests.change(then, JobPatch(after=(second,)))
    assert (world.job(then).after, world.job(then).why) == ((second,), "waits for job-2 to complete")
    assert "after job-1 → job-2" in world.said(EventKind.JOB_CHANGED)[-1]
    requests.change(then, JobPatch(after=()))
    world.settle()

    assert state(world, then) is JobState.RUNNING
    with pytest.raises(Conflict, match="job-3 has started"):
        requests.change(then, JobPatch(after=(first,)))
    with pytest.raises(InvalidInput, match="no job is named 'job-9'"):
        requests.change(world.submit(after=(first,)), JobPatch(after=("job-9",)))


def test_no_ring_can_be_made(world: World) -> None:
    first = world.submit()
    a = world.submit(after=(first,))
    b = world.submit(after_any=(a,))
    c = world.submit(after=(b,))

    for names in ((c,), (b,), (a,)):
        with pytest.raises(InvalidInput, match="it would never start"):
            world.control.requests.change(a, JobPatch(after=names))
    with pytest.raises(InvalidInput, match="job-2 would wait for job-4, which waits for job-3, which waits for job-2"):
        world.control.requests.change(a, JobPatch(after=(c,)))

    assert world.job(a).after == (first,)


def test_a_change_by_somebody_who_sees_less_cannot_name_what_they_do_not_see(world: World) -> None:
    first = world.submit()
    then = world.submit(after=(first,))
    with pytest.raises(InvalidInput, match="no job is named"):
        world.control.requests.change(then, JobPatch(after_any=(first,)), visible=VisibleJobs(owner="ann"))


def test_names_stand_for_so_many_jobs_at_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(world.submit() for _ in range(4))
    monkeypatch.setattr("pliant.control.requests.predecessors.MAX_NAMED_JOBS", 3)
    assert "more than 3 jobs" in problems(world, after=names)["after"]
    assert world.job(world.submit(after=names[:3])).after == names[:3]
