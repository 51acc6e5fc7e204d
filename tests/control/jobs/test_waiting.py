"""Whatever waits for what, and however things end: every job comes to the end that its predecessors leave it."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import follow
from pliant.control.settings import ControlSettings
from pliant.core.array import JobArray
from pliant.core.job import Job, JobId, JobSpec, NodeId
from pliant.core.lifecycle import JobState
from pliant.core.ports import Address

COMPLETED, FAILED, STOPPED, PENDING = JobState.COMPLETED, JobState.FAILED, JobState.STOPPED, JobState.PENDING
SETTINGS = ControlSettings(home=Path("/none"), url="", secret=b"")
ARRAY = "array-1"


def a_live(number: int, after: tuple[str, ...], after_any: tuple[str, ...], *, in_array: bool) -> LiveJob:
    array = JobArray(id=ARRAY, name="a", index=number, num_jobs=9, values={}) if in_array else None
    spec = JobSpec(name="n", script="s.py", virtual_workers=8, after=after, after_any=after_any, array=array)
    job = Job(
        id=JobId(f"job-{number}"),
        spec=spec,
        owner="ann",
        state=PENDING,
        priority=1,
        min_tasks=1,
        max_tasks=1,
        after=after,
        after_any=after_any,
        submitted_at=float(number),
    )
    return LiveJob(job=job)


def _no_address(_node: NodeId) -> Address:
    raise AssertionError("no process is started here")


def end(memory: dict[JobId, LiveJob], over: dict[JobId, Job], job_id: JobId, state: JobState) -> None:
    """Let a job end as control does it, and take over what follows."""
    draft = Draft(memory, now=1.0, settings=SETTINGS, next_id=int, free_address=_no_address)
    live = memory[job_id]
    draft.put(replace(live, job=replace(live.job, state=state, ended_at=1.0)))
    follow(draft)
    for changed, result in draft.results().items():
        found = draft.job(changed)
        assert found is not None
        if result is None:
            memory.pop(changed)
            over[changed] = found.job
        else:
            memory[changed] = result


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[LiveJob], list[JobState], list[int]]:
    """Return jobs of which each may wait for earlier ones, what becomes of those that run, and in which order."""
    number = draw(st.integers(1, 9))
    num_members = draw(st.integers(0, number))
    lives = []
    for i in range(number):
        known = [f"job-{j}" for j in range(i)] + [ARRAY] * (0 < num_members <= i)
        how = draw(st.lists(st.sampled_from(["", "after", "any"]), min_size=len(known), max_size=len(known)))
        chosen = [tuple(name for name, one in zip(known, how, strict=True) if one == kind) for kind in ("after", "any")]
        lives.append(a_live(i, chosen[0], chosen[1], in_array=i < num_members))
    ends = draw(st.lists(st.sampled_from([COMPLETED, FAILED, STOPPED]), min_size=number, max_size=number))
    return lives, ends, draw(st.permutations(range(number)))


def expected(lives: list[LiveJob], ends: list[JobState]) -> dict[JobId, JobState]:
    """Return how each job ends, worked out from the first to the last."""
    states: dict[JobId, JobState] = {}
    members = [live.id for live in lives if live.job.spec.array is not None]
    for live, end_state in zip(lives, ends, strict=True):
        named = [job for name in live.job.spec.after for job in (members if name == ARRAY else [JobId(name)])]
        states[live.id] = end_state if all(states[job] is COMPLETED for job in named) else STOPPED
    return states


@given(stories())
def test_every_job_ends_as_what_it_waited_for_lets_it(story: tuple[list[LiveJob], list[JobState], list[int]]) -> None:
    lives, ends, order = story
    memory, over = {live.id: live for live in lives}, dict[JobId, Job]()
    wanted = expected(lives, ends)

    while memory:
        free = [i for i in order if (job_id := JobId(f"job-{i}")) in memory and not memory[job_id].waits]
        assert free, "nothing can go on although nothing waits for itself"
        job_id = JobId(f"job-{free[0]}")
        named = [*lives[free[0]].job.spec.after, *lives[free[0]].job.spec.after_any]
        assert not [name for name in named if name in memory], "it may start although one before it is not over"
        if ARRAY in named:
            assert not [live for live in memory.values() if live.job.spec.array is not None]
        end(memory, over, job_id, ends[free[0]])

    assert {job_id: job.state for job_id, job in over.items()} == wanted
    for live, state in zip(lives, ends, strict=True):
        job = over[live.id]
        if job.state is not state:
            assert f"{job.id} was to run after" in job.reason
