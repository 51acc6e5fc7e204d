"""A version of an endpoint: as many kernels as the load needs, out of what trainings have to spare, and back again."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.control.conftest import World, packed

from pliant.control.kinds.endpoint.history import LoadHistory
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec, NodeId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.plan import NodeView
from pliant.core.serving import KernelHung, KernelReady, Load, VersionLoad
from pliant.core.serving_profile import EndpointPart, KernelBounds, ServingProfile

PROFILE = ServingProfile(kernel_max=4, batch_size=1, pipe_size=2, release_delay_s=5.0, execution_timeout_s=10.0)


def deploy(world: World, profile: ServingProfile = PROFILE, **changes: object) -> JobId:
    archive = world.home / "model.tar.gz"
    archive.write_bytes(packed({"serve.py": "class Model: ...\n", "model.onnx": "not Python (\n"}))
    values = {
        "name": "digits-v1",
        "script": "serve.py",
        "min_tasks": max(1, profile.kernel_min),
        "max_tasks": profile.kernel_max,
        "virtual_workers": profile.kernel_max,
        "endpoint": EndpointPart(name="digits", version=1, runner="python", profile=profile),
    }
    job = world.control.requests.submit(JobSpec(**(values | changes)), archive, "admin")  # type: ignore[arg-type]
    world.settle()
    return job.id


def kernels(world: World, job_id: JobId) -> list[Task]:
    return [task for task in world.tasks(job_id) if task.state is not TaskState.LEAVING]


def get_ready(world: World, job_id: JobId) -> None:
    """Let all kernels load their models, also those that start meanwhile."""
    while starting := [task for task in kernels(world, job_id) if task.state is TaskState.STARTING]:
        for task in starting:
            world.control.kernels.kernel_ready(KernelReady(task_id=task.id, metadata={"platform": "played"}))
        world.settle()


def load(world: World, job_id: JobId, in_system: int, seconds: float, *, completed: int = 5) -> None:
    """Report a steady load for so long; kernels that leave have answered what they held."""
    for _ in range(int(seconds * 4)):
        ready = world.control.kernels.statuses()[job_id].num_ready
        in_flight = min(in_system, 2 * ready)
        world.control.kernels.take_load(
            Load(
                versions=(
                    VersionLoad(
                        job_id=job_id,
                        seconds=0.25,
                        in_flight=in_flight,
                        queued=in_system - in_flight,
                        mean_load=float(in_system),
                        oldest_wait_s=2.0 if in_system > in_flight else 0.0,
                        num_ready=ready,
                        completed=completed if ready and in_system else 0,
                        num_batches=completed if ready and in_system else 0,
                        busy_s=0.25 * ready if in_system else 0.0,
                        service_p95_s=0.05,
                    ),
                )
            )
        )
        world.settle(0.25)
        for task in world.tasks(job_id):
            if task.state is TaskState.LEAVING:
                world.cluster.exit(task.id, 0)
        get_ready(world, job_id)


def version(world: World, job_id: JobId) -> EndpointJob:
    live = world.control.jobs()[job_id]
    assert isinstance(live, EndpointJob)
    return live


def test_one_kernel_loads_the_model_whatever_the_minimum_of_the_load_is(world: World) -> None:
    job_id = deploy(world)

    (task,) = kernels(world, job_id)
    (order,) = world.cluster.orders
    assert (world.job(job_id).state, task.state) == (JobState.STARTING, TaskState.STARTING)
    assert (order.env["PLIANT_RUNNER"], order.env["MSD_POD_NAME"], order.env["REDHARE_MODEL_NAME"]) == (
        ("python", task.id, "digits")
    )

    get_ready(world, job_id)

    status = world.control.kernels.statuses()[job_id]
    assert (world.job(job_id).state, status.num_ready, status.metadata) == (
        (JobState.RUNNING, 1, {"platform": "played"})
    )


def test_under_load_it_takes_what_trainings_have_to_spare_and_gives_it_back(world: World) -> None:
    trainings = [world.submit(max_tasks=4), world.submit(max_tasks=4)]
    for job_id in trainings:
        world.train(job_id)
    world.settle(2)
    before = [len(world.tasks(job_id)) for job_id in trainings]
    job_id = deploy(world)
    get_ready(world, job_id)

    load(world, job_id, in_system=40, seconds=12)
    under_load = (len(kernels(world, job_id)), [len(world.tasks(job_id)) for job_id in trainings])
    load(world, job_id, in_system=0, seconds=60)

    assert (sum(before), max(before)) == (8, 4)
    assert under_load[0] >= 2
    assert under_load[0] + sum(under_load[1]) == 8
    assert all(world.job(job_id).state is JobState.RUNNING for job_id in trainings)
    assert (kernels(world, job_id), sum(len(world.tasks(job_id)) for job_id in trainings)) == ([], 8)
    assert world.job(job_id).state is JobState.PAUSED


def test_it_is_known_which_slots_a_training_gave_up_and_said_when_it_has_them_back(world: World) -> None:
    training = world.submit(max_tasks=8)
    world.train(training)
    world.settle(2)
    job_id = deploy(world)
    get_ready(world, job_id)
    load(world, job_id, in_system=40, seconds=12)
    taken = {slot for task in kernels(world, job_id) for slot in task.slots}

    assert len(taken) >= 2
    assert taken <= {slot for _, slot in world.control.jobs()[training].given_up}

    load(world, job_id, in_system=0, seconds=60)

    back = [said for said in world.said(EventKind.TASK_STARTED) if said.endswith(" (given back)")]
    assert all(any(f" starts on slot {slot} of " in said for said in back) for slot in taken)
    assert {slot for task in world.tasks(training) for slot in task.slots} == {*range(8)}


def test_a_server_that_is_new_knows_which_slots_a_training_gave_up(world: World) -> None:
    training = world.submit(max_tasks=8)
    world.train(training)
    world.settle(2)
    get_ready(world, deploy(world, replace(PROFILE, kernel_min=2)))
    before = world.control.jobs()[training].given_up

    world.restart()

    assert len(before) == 2
    assert {*world.control.jobs()[training].given_up} == {*before}


def test_the_guaranteed_minimum_is_held_without_load(world: World) -> None:
    job_id = deploy(world, replace(PROFILE, kernel_min=2))
    get_ready(world, job_id)

    load(world, job_id, in_system=0, seconds=30)

    assert len(kernels(world, job_id)) == 2


def test_the_first_request_of_an_idle_endpoint_brings_a_kernel_at_once(world: World) -> None:
    job_id = deploy(world)
    get_ready(world, job_id)
    load(world, job_id, in_system=0, seconds=60)
    assert kernels(world, job_id) == []

    world.control.kernels.take_load(Load(versions=(VersionLoad(job_id=job_id, seconds=0.01, queued=1, mean_load=1.0),)))
    world.settle(0.1)

    assert len(kernels(world, job_id)) == 1


def test_a_kernel_that_leaves_drains_and_is_killed_if_it_does_not(world: World) -> None:
    job_id = deploy(world, replace(PROFILE, kernel_min=1))
    get_ready(world, job_id)
    (task,) = kernels(world, job_id)

    world.control.kernels.stop(job_id, "ann")
    world.settle()
    drained = list(world.cluster.drained)
    world.settle(16)

    assert drained == [task.id]
    assert world.job(job_id).state is JobState.STOPPED


def test_a_model_that_does_not_load_fails_its_version_after_three_kernels(world: World) -> None:
    job_id = deploy(world)
    for _ in range(3):
        (task,) = kernels(world, job_id)
        world.leave_behind(task.id, stderr="ModuleNotFoundError: no module named 'foo'\n", stderr_at=1.0)
        world.cluster.exit(task.id, 1)
        world.settle(5)

    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert "its model did not load, 3 times in a row" in job.reason
    assert "no module named 'foo'" in job.reason


def test_a_lost_kernel_is_replaced_and_one_that_is_lost_again_and_again_with_pauses(world: World) -> None:
    job_id = deploy(world, replace(PROFILE, kernel_min=1))
    get_ready(world, job_id)
    starts = []
    for _ in range(5):
        (task,) = kernels(world, job_id)
        world.cluster.exit(task.id, -9)
        lost_at = world.clock.now()
        world.settle(0.05)
        while not kernels(world, job_id):
            world.settle(0.25)
        starts.append(world.clock.now() - lost_at)
        get_ready(world, job_id)

    assert starts[0] < 1.0
    assert starts == sorted(starts)
    assert starts[-1] >= 8.0
    assert world.job(job_id).state is JobState.RUNNING


def test_kernels_on_a_machine_that_is_away_are_replaced_at_once_and_leave_again_when_they_are_too_many(
    make_world: Callable[[int], World],
) -> None:
    world = make_world(2)
    other = NodeView(id=NodeId("gpu1"), slots=(0, 1))
    job_id = deploy(world, replace(PROFILE, kernel_min=2))
    get_ready(world, job_id)
    world.cluster.add_node(other)
    local = world.cluster.observe().nodes[0]
    world.cluster.add_node(replace(local, away=True))
    world.settle()

    assert [task.node_id for task in kernels(world, job_id)] == ["local", "local", "gpu1", "gpu1"]
    assert version(world, job_id).num_failures == 0
    world.cluster.add_node(local)
    world.settle()
    assert len(kernels(world, job_id)) == 2


def test_kernels_that_went_with_their_machine_are_no_fault_of_the_model(make_world: Callable[[int], World]) -> None:
    world = make_world(4)
    job_id = deploy(world, replace(PROFILE, kernel_min=4))
    for task in kernels(world, job_id):
        world.cluster.lose(task.id, "was on a machine of which nothing was heard")
    world.settle()

    assert version(world, job_id).num_failures == 0
    assert (world.job(job_id).state, len(kernels(world, job_id))) == (JobState.STARTING, 4)


def test_a_kernel_that_hangs_is_killed_because_the_gateway_says_so(world: World) -> None:
    job_id = deploy(world, replace(PROFILE, kernel_min=1))
    get_ready(world, job_id)
    (task,) = kernels(world, job_id)

    world.control.kernels.kernel_hung(KernelHung(task_id=task.id, why="has computed for more than 10 s"))
    world.settle(2)

    (other,) = kernels(world, job_id)
    assert other.id != task.id
    assert any(
        "has computed for more than 10 s, was killed by Pliant" in text for text in world.said(EventKind.TASK_LOST)
    )


def test_a_load_that_never_ends_is_ended(world: World) -> None:
    job_id = deploy(world, start_timeout_s=20.0)
    (task,) = kernels(world, job_id)

    world.settle(25)

    assert task.id not in {other.id for other in kernels(world, job_id)}
    assert any("had not loaded its model after 20 s" in text for text in world.said(EventKind.TASK_LOST))


def test_a_server_that_dies_changes_nothing_for_what_serves(world: World) -> None:
    job_id = deploy(world)
    get_ready(world, job_id)
    load(world, job_id, in_system=40, seconds=10)
    before = kernels(world, job_id)

    world.restart()
    world.settle(3)
    load(world, job_id, in_system=40, seconds=3)

    assert len(before) >= 2
    assert [task.id for task in kernels(world, job_id)] == [task.id for task in before]
    assert version(world, job_id).has_served


def test_a_kernel_that_cannot_be_started_ends_a_version_that_never_served_and_no_other(world: World) -> None:
    world.cluster.refuse(TaskId("job-1.2"), "No space left on device")
    world.cluster.refuse(TaskId("job-2.1"), "No space left on device")
    job_id = deploy(world)
    get_ready(world, job_id)
    load(world, job_id, in_system=40, seconds=10)
    get_ready(world, job_id)
    other = deploy(
        world, name="digits-v2", endpoint=EndpointPart(name="letters", version=1, runner="python", profile=PROFILE)
    )

    assert world.job(job_id).state is JobState.RUNNING
    assert "was not started: No space left on device" in world.said(EventKind.TASK_LOST)[0]
    assert len(kernels(world, job_id)) > 1, "it is tried again"
    assert world.job(other).state is JobState.FAILED
    assert world.job(other).reason.startswith("job-2.1 could not be started: No space left on device")


def test_a_kernel_that_a_machine_cannot_run_starts_elsewhere_and_says_nothing_of_its_model(world: World) -> None:
    world.cluster.add_node(NodeView(id=NodeId("other"), slots=tuple(range(8))))
    world.cluster.refuse(TaskId("job-1.1"), "its environment was built for aarch64", is_unfit=True)
    job_id = deploy(world)
    get_ready(world, job_id)

    (first, second) = [order for order in world.cluster.orders if order.task_id.startswith(f"{job_id}.")]
    assert first.node_id != second.node_id
    assert (world.job(job_id).state, version(world, job_id).num_failures) == (JobState.RUNNING, 0)
    assert f"could not be started on {first.node_id}" in world.said(EventKind.TASK_LOST)[0]


def test_a_change_of_the_profile_acts_at_once(world: World) -> None:
    job_id = deploy(world)
    get_ready(world, job_id)

    world.control.kernels.adjust(
        job_id, replace(PROFILE, kernel_min=3), KernelBounds(promised=3, at_most=4), 9000, "default"
    )
    world.settle()
    get_ready(world, job_id)

    assert (len(kernels(world, job_id)), world.job(job_id).priority) == (3, 9000)


def test_a_version_that_takes_over_has_the_kernels_that_it_needs_before_it_has_any_load(world: World) -> None:
    job_id = deploy(world)
    get_ready(world, job_id)
    bounds = KernelBounds(promised=0, at_least=3, at_most=3, why="it takes over from version 1")

    world.control.kernels.adjust(job_id, PROFILE, bounds, 5000, "default")
    world.settle()
    get_ready(world, job_id)
    taking = (len(kernels(world, job_id)), world.control.kernels.statuses()[job_id])
    world.control.kernels.adjust(job_id, PROFILE, KernelBounds(promised=0, at_most=1), 5000, "default")
    world.settle()

    assert (taking[0], taking[1].wanted, taking[1].needed) == (3, 3, 1)
    assert taking[1].demand.endswith("; it takes over from version 1")
    assert len(kernels(world, job_id)) == 1


def test_people_change_the_endpoint_and_not_its_job(world: World) -> None:
    job_id = deploy(world)

    with pytest.raises(Conflict, match="job-1 serves the endpoint digits"):
        world.control.requests.stop(job_id)


def test_news_of_what_is_gone_is_ignored(world: World) -> None:
    gone = TaskId("job-99.1")

    world.control.kernels.kernel_ready(KernelReady(task_id=gone))
    world.control.kernels.kernel_hung(KernelHung(task_id=gone, why="is gone"))
    world.control.kernels.take_load(Load(versions=(VersionLoad(job_id=JobId("job-99"), seconds=1.0),)))

    assert world.control.jobs() == {}


def test_its_load_over_time_is_kept_as_series_of_its_job(world: World) -> None:
    job_id = deploy(world)
    get_ready(world, job_id)
    load(world, job_id, in_system=2, seconds=30)
    load(world, job_id, in_system=0, seconds=60)

    points = world.store.metrics(job_id)
    by_name = {name: [one for one in points if one.name == name] for name in {one.name for one in points}}
    rates = [one.value for one in by_name["requests_per_s"]]
    steps = [one.step for one in by_name["requests_per_s"]]

    assert by_name.keys() == {
        *("requests_per_s", "errors_per_s", "refused_per_s", "queued", "kernels_ready", "kernels_wanted", "batch_size")
    }
    assert max(rates) == pytest.approx(20.0)  # 5 answers every 0.25 s
    assert rates[-1] == 0.0
    assert min(after - before for before, after in pairwise(steps)) >= 9
    assert {one.value for one in by_name["batch_size"]} == {1.0}

    load(world, job_id, in_system=0, seconds=60)
    assert world.store.metrics(job_id) == points, "an idle version makes no points"


def test_a_version_that_runs_for_long_is_sampled_less_often() -> None:
    history = LoadHistory(sampled_at=0.0)

    day = 86_400.0
    assert [history.is_due(10.0, 60.0), history.is_due(9.9, 60.0)] == [True, False]
    assert [history.is_due(299.0, 30 * day), history.is_due(300.0, 30 * day)] == [False, True]
