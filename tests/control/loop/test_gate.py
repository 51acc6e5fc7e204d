"""A job whose environment is not ready takes no slot, says what it waits for, and fails if it cannot be made."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.control.conftest import World

from pliant.control.jobs.inputs import JobInputs
from pliant.control.jobs.live import job_of
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput, Problem
from pliant.core.event import EventKind
from pliant.core.job import Job, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.ports import StartOrder
from pliant.core.preparation import Preparation, Prepared, Preparing, Unpreparable

PYTHON = "/made/bin/python"


class Scripted:
    """Preparations that answer what a test says."""

    def __init__(self) -> None:
        self.answer: Preparation = Preparing(why="building since 10:00:00 UTC")
        self.asked: list[tuple[str, str]] = []
        self.wrong: tuple[Problem, ...] = ()

    def problems(self, spec: JobSpec, code: str, *, visible: VisibleJobs | None = None) -> tuple[Problem, ...]:
        assert (Path(code) / "train.py").is_file()
        return self.wrong if spec.environment is not None else ()

    def status(self, job: Job, code: str) -> Preparation:
        self.asked.append((job.id, code))
        return self.answer


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
def prepared_world(tmp_path: Path, scripted: Scripted) -> Iterator[World]:
    made = type("PreparedWorld", (World,), {"inputs": JobInputs(preparations=scripted)})(tmp_path, 4)
    yield made
    made.store.close()


def test_a_job_waits_for_its_environment_without_a_slot(
    prepared_world: World, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = prepared_world
    orders: list[StartOrder] = []
    start = world.cluster.start

    def note(order: StartOrder) -> None:
        orders.append(order)
        start(order)

    monkeypatch.setattr(world.cluster, "start", note)
    job_id = world.submit(environment="nlp", max_tasks=2)
    waits = world.job(job_id)
    assert (waits.state, waits.num_slots) == (JobState.PENDING, 0)
    assert waits.why == "waits for its environment: building since 10:00:00 UTC"
    assert world.control.queries.why(job_id).sentence == waits.why
    assert scripted.asked[0] == (job_id, str(world.control.settings.folders(job_id).code))

    other = world.submit(max_tasks=4)
    assert world.job(other).num_slots == 4, "it holds nothing back from others"

    scripted.answer = Preparing(why="building since 10:00:00 UTC, pip says: Collecting x")
    world.settle()
    assert world.job(job_id).why.endswith("pip says: Collecting x")

    scripted.answer = Prepared(python=PYTHON)
    world.settle(5.0)
    assert world.job(job_id).state in (JobState.STARTING, JobState.RUNNING)
    assert {job_of(order.task_id): order.python for order in orders} == {job_id: PYTHON, other: None}
    assert world.said(EventKind.JOB_PREPARED) == [
        "job-1 (digits) waits for its environment: building since 10:00:00 UTC",
        "job-1 (digits): its environment is ready",
    ]
    asked = len(scripted.asked)
    world.settle()
    assert len(scripted.asked) == asked, "who is through is not asked for again"


def test_a_broken_one_fails_before_a_slot_is_taken(prepared_world: World, scripted: Scripted) -> None:
    scripted.answer = Unpreparable(why="its environment failed: no such package\nERROR: No matching distribution")
    job_id = prepared_world.submit(environment="nlp")
    job = prepared_world.job(job_id)
    assert (job.state, job.started_at) == (JobState.FAILED, None)
    assert job.reason.splitlines()[-1] == "ERROR: No matching distribution"
    assert prepared_world.store.tasks(job_id) == ()


def test_a_job_that_is_stopped_waits_no_more(prepared_world: World, scripted: Scripted) -> None:
    job_id = prepared_world.submit(environment="nlp")
    assert prepared_world.control.requests.stop(job_id).state is JobState.STOPPED
    asked = len(scripted.asked)
    scripted.answer = Prepared(python=PYTHON)
    prepared_world.settle()
    assert len(scripted.asked) == asked
    assert prepared_world.store.tasks(job_id) == ()


def test_after_a_restart_it_is_asked_for_again(prepared_world: World, scripted: Scripted) -> None:
    world = prepared_world
    waiting = world.submit(environment="nlp")
    world.restart()
    world.settle()
    assert world.job(waiting).why.startswith("waits for its environment")
    scripted.answer = Prepared(python=PYTHON)
    world.settle()
    world.train(waiting)
    assert world.job(waiting).state is JobState.RUNNING


@pytest.mark.parametrize("answer", [Preparing(why="building"), Unpreparable(why="no room")])
def test_a_job_that_trains_when_the_server_comes_back_trains_on(
    prepared_world: World, scripted: Scripted, answer: Preparation
) -> None:
    world = prepared_world
    scripted.answer = Prepared(python=PYTHON)
    job_id = world.submit(environment="nlp", max_tasks=2)
    world.train(job_id)
    before = [task.id for task in world.tasks(job_id)]
    scripted.answer = answer
    world.restart()
    world.settle(2.0)
    assert [task.id for task in world.tasks(job_id)] == before
    assert world.job(job_id).state is JobState.RUNNING
    world.exit(before[1], -9)
    world.settle(2.0)
    assert [task.id for task in world.tasks(job_id)] == before[:1], "no new task without its environment"
    scripted.answer = Prepared(python=PYTHON)
    world.settle(5.0)
    assert len(world.tasks(job_id)) == 2


def test_a_fixed_job_waits_too(prepared_world: World, scripted: Scripted) -> None:
    job_id = prepared_world.submit(environment="nlp", fixed=True, min_tasks=2, max_tasks=2, virtual_workers=2)
    assert prepared_world.tasks(job_id) == ()
    scripted.answer = Prepared(python=PYTHON)
    prepared_world.settle()
    assert len(prepared_world.tasks(job_id)) == 2


def test_what_is_wrong_with_it_is_told_with_everything_else(prepared_world: World, scripted: Scripted) -> None:
    scripted.wrong = (Problem(field="environment", message="there is no such thing"),)
    with pytest.raises(InvalidInput) as error:
        prepared_world.submit(environment="nlp", min_tasks=3, max_tasks=2)
    assert [problem.field for problem in error.value.problems] == ["min_tasks", "environment"]
    assert prepared_world.store.jobs() == ()


def test_a_server_that_makes_none_says_so(make_world: Callable[..., World]) -> None:
    with pytest.raises(InvalidInput, match="makes no environments"):
        make_world(2).submit(environment="nlp")


def test_of_a_job_that_waits_for_another_no_environment_is_made_yet(prepared_world: World, scripted: Scripted) -> None:
    world = prepared_world
    first = world.submit()
    then = world.submit(environment="own", after=(first,))
    assert scripted.asked == []
    assert world.job(then).why == "waits for job-1 to complete"

    world.finish(first)

    assert scripted.asked
    assert "waits for its environment" in world.job(then).why
