"""A trial's job takes no slots while it is held, wherever it was in its life and however often the server dies."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.control.conftest import World, packed, result_names

from pliant.api.jobs import JobPatch
from pliant.api.rerun import RerunRequest, rerun_of
from pliant.core.errors import Conflict, InvalidInput, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec, Metric
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.plan import PolicyName
from pliant.core.ports import Writes
from pliant.core.queue import Queue
from pliant.core.trial_part import PassAs, TrialPart

MakeWorld = Callable[..., World]
WHY = "it waits at rung 1 of lr-search"
BOTH = pytest.mark.parametrize("restarts", [False, True], ids=["", "restarts"])


def trial(number: int = 4, pass_as: tuple[PassAs, ...] = ("arguments", "environment")) -> TrialPart:
    return TrialPart(search="lr-search", number=number, values={"lr": 1e-05, "layers": (64, 64)}, pass_as=pass_as)


def spec(number: int = 4, **changes: object) -> JobSpec:
    asked = {"name": f"lr-search#{number}", "script": "train.py", "virtual_workers": 8, "trial": trial(number)}
    return JobSpec(**(asked | changes))  # type: ignore[arg-type]


def archive(world: World, files: dict[str, str] | None = None) -> Path:
    path = world.home / "code.tar.gz"
    path.write_bytes(packed({"train.py": "import pliant.train\n"} | (files or {})))
    return path


def submit(world: World, **changes: object) -> JobId:
    job_id = world.control.trials.reserve()
    world.control.trials.submit(job_id, spec(**changes), archive(world), "ann", None)  # type: ignore[arg-type]
    world.settle()
    return job_id


def hold(world: World, job_id: JobId) -> None:
    world.control.trials.hold(job_id, WHY)


def release(world: World, job_id: JobId) -> None:
    world.control.trials.release(job_id, "it is among the best 3 of 9")


def state(world: World, job_id: JobId) -> JobState:
    return world.job(job_id).state


def is_at_rest(world: World, job_id: JobId) -> bool:
    job = world.job(job_id)
    return (job.hold, job.why, job.num_slots, world.tasks(job_id)) == (WHY, f"is held: {WHY}", 0, ())


def env_of(world: World, job_id: JobId) -> Mapping[str, str]:
    return next(order.env for order in world.cluster.orders if order.task_id.startswith(f"{job_id}."))


# submission


def test_a_trial_is_queued_under_the_id_that_was_reserved_and_only_once(world: World) -> None:
    job_id = world.control.trials.reserve()
    assert (job_id, world.control.trials.reserve(), world.submit()) == ("job-1", "job-2", "job-3")

    for _ in range(2):
        world.control.trials.submit(job_id, spec(), archive(world), "ann", None)
    world.settle()

    assert (world.job(job_id).owner, world.job(job_id).spec.trial) == ("ann", trial())
    assert len([one for one in world.said(EventKind.JOB_SUBMITTED) if "job-1 " in one]) == 1
    assert len(world.tasks(job_id)) == 1


def test_a_server_that_died_before_it_wrote_a_trial_leaves_a_folder_that_is_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = world.control.trials.reserve()
    left = world.control.settings.folders(job_id).root
    left.mkdir(parents=True)
    (left / "code").mkdir()
    (left / "code" / "old.py").write_text("")

    world.control.trials.submit(job_id, spec(), archive(world), "ann", None)

    assert sorted(os.listdir(left / "code")) == ["train.py"]


def test_a_trial_that_was_deleted_is_not_submitted_again(world: World) -> None:
    job_id = submit(world)
    world.control.trials.stop(job_id, "ann")
    world.settle(2.0)
    world.control.deletions.delete([job_id], "ann")

    world.control.trials.submit(job_id, spec(), archive(world), "ann", None)

    assert world.store.job(job_id) is None
    assert world.control.trials.facts([job_id]) == {}


def test_a_check_finds_what_is_wrong_and_queues_nothing(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.control.trials.check(spec(script="other.py", queue="none"), archive(world), "ann", None)
    assert {problem.field for problem in refused.value.problems} == {"script", "queue"}

    notes = world.control.trials.check(spec(), archive(world, {"train.py": "print()\n"}), "ann", None)

    assert "cannot train elastically" in notes[0]
    assert world.store.jobs() == ()
    assert world.said(EventKind.WARNING) == []


def test_what_a_check_has_noted_is_said_of_no_trial(world: World) -> None:
    job_id = world.control.trials.reserve()

    world.control.trials.submit(job_id, spec(), archive(world, {"train.py": "print()\n"}), "ann", None)

    assert world.said(EventKind.WARNING) == []


def test_a_server_that_goes_down_takes_no_trial(world: World) -> None:
    job_id = world.control.trials.reserve()
    world.control.ending.drain_all("SIGTERM")

    with pytest.raises(Unavailable):
        world.control.trials.submit(job_id, spec(), archive(world), "ann", None)


# values


def test_its_values_are_variables_of_its_tasks(world: World) -> None:
    job_id = submit(world, env={"PLIANT_PARAM_OTHER": "mine"})

    env = env_of(world, job_id)

    told = {name: value for name, value in env.items() if "PARAM" in name or name in ("PLIANT_SEARCH", "SUBID")}
    assert told == {
        "PLIANT_PARAM_LR": "1e-05",
        "PLIANT_PARAM_LAYERS": "[64,64]",
        "PLIANT_PARAM_OTHER": "mine",
        "PLIANT_SEARCH": "lr-search",
        "SUBID": "4",
    }
    assert env["PLIANT_TRIAL"] == "4"


def test_its_values_are_in_a_file_that_is_no_result(world: World) -> None:
    path = archive(world, {"config.json": "{}"})
    job_id = world.control.trials.reserve()
    world.control.trials.submit(job_id, spec(trial=trial(pass_as=("config",))), path, "ann", None)
    world.settle()

    config = world.control.settings.folders(job_id).root / "code" / "config.json"
    script = config.with_name("train.py")

    assert json.loads(config.read_text()) == {"lr": 1e-05, "layers": [64, 64]}
    assert config.stat().st_mode == script.stat().st_mode
    assert not any(name.startswith("PLIANT_PARAM") for name in env_of(world, job_id))
    assert result_names(world, job_id) == []


def test_a_folder_where_the_values_would_be_is_refused(world: World) -> None:
    path = archive(world, {"config.json/inside": ""})

    with pytest.raises(InvalidInput) as refused:
        world.control.trials.check(spec(trial=trial(pass_as=("config",))), path, "ann", None)

    assert [problem.field for problem in refused.value.problems] == ["pass_as"]


def test_its_values_are_among_what_was_entered_for_a_model(world: World) -> None:
    entered = {"hyperparameters": {"epochs": 3}, "parameters": {"lr": 0.1, "layers": []}}
    path = archive(world, {"parameters.json": json.dumps(entered), "ps.conf": "epoch=3\n"})
    job_id = world.control.trials.reserve()
    world.control.trials.submit(job_id, spec(trial=trial(pass_as=("model",))), path, "ann", None)
    world.settle()

    code = world.control.settings.folders(job_id).root / "code"
    again = rerun_of(world.job(job_id), RerunRequest(), "ann")
    last = world.control.requests.rerun(world.job(job_id), again.spec, "ann")
    world.settle()

    for folder in (code, world.control.settings.folders(last.id).root / "code"):
        assert json.loads((folder / "parameters.json").read_text())["parameters"] == {"lr": 1e-05, "layers": [64, 64]}
        assert "epoch=3\n" in (folder / "ps.conf").read_text()
    assert result_names(world, job_id) == []


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"parameters.json": "[" * 100_000},
        {"parameters.json": '{"hyperparameters": {}, "parameters": {"lr": 1, "layers": "\\ud800"}, "a": "\\ud800"}'},
        {"parameters.json": '{"hyperparameters": {}, "parameters": []}'},
        {"parameters.json": '"' + "x" * (5 << 20) + '"'},
        {"parameters.json/inside": ""},
        {"parameters.json": '{"hyperparameters": {}, "parameters": {"lr": 1, "layers": 1}}', "ps.conf/inside": ""},
    ],
)
def test_code_that_no_model_has_run_has_no_entries_to_replace(world: World, files: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.control.trials.check(spec(trial=trial(pass_as=("model",))), archive(world, files), "ann", None)
    assert [problem.field for problem in refused.value.problems] == ["pass_as"]


def test_it_is_run_again_as_an_ordinary_job_with_the_same_values(world: World) -> None:
    part = trial(pass_as=("arguments", "environment", "config"))
    job_id = submit(world, trial=part, args=("--epochs=9", "--lr=1e-05"))

    again = rerun_of(world.job(job_id), RerunRequest(), "ann")
    made = world.control.requests.rerun(world.job(job_id), again.spec, "ann")
    twice = rerun_of(world.job(made.id), RerunRequest(), "ann")
    last = world.control.requests.rerun(world.job(made.id), twice.spec, "ann")
    world.settle()

    for job in (made, last):
        assert (job.spec.trial, job.spec.args) == (None, ("--epochs=9", "--lr=1e-05"))
        env = env_of(world, job.id)
        assert (env["PLIANT_PARAM_LR"], env["PLIANT_PARAM_LAYERS"]) == ("1e-05", "[64,64]")
        assert not {"PLIANT_SEARCH", "PLIANT_TRIAL", "SUBID"} & env.keys()
        config = world.control.settings.folders(job.id).root / "code" / "config.json"
        assert json.loads(config.read_text())["lr"] == 1e-05
    assert (again.differences, twice.differences) == ((), ())


# beginning from another one's state


def child(parent: JobId, epoch: int = 6) -> TrialPart:
    return replace(trial(5), keep_every=3, parent_job=parent, parent_epoch=epoch)


def kept(world: World, job_id: JobId, epoch: int = 6) -> Path:
    """Write what a job keeps at the end of an epoch, as its task does."""
    folder = Path(str(world.control.settings.folders(job_id).checkpoints)) / f"epoch-{epoch}"
    folder.mkdir(parents=True)
    (folder / "step-000000000060.ckpt").write_bytes(b"state")
    return folder


def test_a_child_gets_a_copy_of_what_its_parent_kept(world: World) -> None:
    parent = submit(world, trial=replace(trial(), keep_every=3))
    folder = kept(world, parent)
    (folder / "more").mkdir()
    job_id = submit(world, trial=child(parent), resume_from="/elsewhere", weights="/elsewhere.pt")
    copy = world.control.settings.folders(job_id).root / "origin" / "checkpoint"
    (folder / "step-000000000060.ckpt").write_bytes(b"later")

    assert [(one.name, one.read_bytes()) for one in copy.iterdir()] == [("step-000000000060.ckpt", b"state")]
    env, first = env_of(world, job_id), env_of(world, parent)
    assert (env["PLIANT_RESUME_FROM"], env["PLIANT_OWN_NUMBERS"], env["PLIANT_KEEP_EVERY"]) == (str(copy), "1", "3")
    assert first["PLIANT_KEEP_EVERY"] == "3"
    assert not {"PLIANT_RESUME_FROM", "PLIANT_OWN_NUMBERS", "PLIANT_WEIGHTS"} & first.keys()
    assert "PLIANT_WEIGHTS" not in env

    again = rerun_of(world.job(job_id), RerunRequest(), "ann")
    other = rerun_of(world.job(job_id), RerunRequest.model_validate({"resume_from": parent}), "ann")
    made = world.control.requests.rerun(world.job(job_id), again.spec, "ann")
    world.settle()
    assert (made.spec.resume_from, made.spec.own_numbers, made.spec.trial) == (str(copy), True, None)
    assert not other.spec.own_numbers


@pytest.mark.parametrize("plant", [lambda path: os.symlink("/etc", path), os.mkfifo, os.mkdir, lambda _path: None])
def test_what_its_parent_did_not_keep_is_named(world: World, plant: Callable[[Path], object]) -> None:
    parent = submit(world)
    folder = Path(str(world.control.settings.folders(parent).checkpoints))
    folder.mkdir()
    plant(folder / "epoch-6")

    with pytest.raises(
        InvalidInput, match="the state that job-1 had at the end of epoch 6, from which it was to begin"
    ):
        submit(world, trial=child(parent))


# holding


@BOTH
def test_a_pending_job_that_is_held_stays_pending(make_world: MakeWorld, restarts: bool) -> None:
    world = make_world(1)
    first, job_id = world.submit(), submit(world)
    hold(world, job_id)
    if restarts:
        world.restart()
    world.finish(first)

    assert (state(world, job_id), is_at_rest(world, job_id)) == (JobState.PENDING, True)
    assert world.control.queries.why(job_id).sentence == f"is held: {WHY}"
    release(world, job_id)
    if restarts:
        world.restart()
    world.settle()

    assert state(world, job_id) is JobState.RUNNING
    assert world.job(job_id).hold == ""


@BOTH
def test_a_running_job_that_is_held_saves_its_state_and_is_paused(world: World, restarts: bool) -> None:
    job_id = submit(world, min_tasks=1, max_tasks=3)
    assert len(world.members(job_id)) == 3
    world.train(job_id, 40)

    hold(world, job_id)
    if restarts:
        world.restart()
    world.settle(10.0)

    assert (state(world, job_id), is_at_rest(world, job_id)) == (JobState.PAUSED, True)
    assert world.links.training(job_id).saved_step == 40
    assert world.job(job_id).reason == f"its state is saved; it goes on when it is released ({WHY})"
    if restarts:
        world.restart()
    world.settle(5.0)
    assert is_at_rest(world, job_id)

    release(world, job_id)
    assert world.job(job_id).reason == "it was released (it is among the best 3 of 9); it goes on when slots free up"
    if restarts:
        world.restart()
    world.settle()

    assert (state(world, job_id), len(world.members(job_id))) == (JobState.RUNNING, 3)
    assert int(world.links.training(job_id).step) == 40


def test_a_starting_job_that_is_held_is_pending_again(world: World) -> None:
    world.links.obedient = False
    job_id = submit(world)
    assert state(world, job_id) is JobState.STARTING

    hold(world, job_id)
    world.settle(0.1)
    for task in world.tasks(job_id):
        world.exit(task.id, 0)
    world.settle()

    assert (state(world, job_id), is_at_rest(world, job_id)) == (JobState.PENDING, True)


@BOTH
def test_a_job_that_forms_its_first_generation_leaves_too(world: World, restarts: bool) -> None:
    job_id = submit(world, min_tasks=3, max_tasks=3)
    for _ in range(4):
        hold(world, job_id)
        if restarts:
            world.restart()
        world.settle(0.05)
        release(world, job_id)
        world.settle(0.05)
    hold(world, job_id)
    world.settle(10.0)

    assert is_at_rest(world, job_id)
    release(world, job_id)
    world.settle(2.0)
    assert len(world.members(job_id)) == 3


def test_its_slots_are_given_to_others_in_the_same_tick(make_world: MakeWorld) -> None:
    world = make_world(4, PolicyName.FIFO)
    job_id, other = submit(world, min_tasks=4, max_tasks=4), world.submit(min_tasks=4, max_tasks=4)
    assert world.tasks(other) == ()

    hold(world, job_id)
    world.control.tick()

    assert world.control.jobs()[other].target == 4
    world.settle()
    assert (len(world.members(other)), is_at_rest(world, job_id)) == (4, True)


def test_a_queue_without_preemption_does_not_keep_its_slots(make_world: MakeWorld) -> None:
    world = make_world(2)
    world.control.queues.add_queue(Queue(name="slow", preemption=False), "ada")
    job_id = submit(world, queue="slow", max_tasks=2)

    hold(world, job_id)
    world.settle()

    assert is_at_rest(world, job_id)


def test_holding_again_says_nothing_and_another_reason_is_kept_up(world: World) -> None:
    job_id = submit(world)
    for _ in range(10):
        hold(world, job_id)
        world.settle(0.1)
    revision = world.job(job_id).revision
    hold(world, job_id)
    assert world.job(job_id).revision == revision

    world.control.trials.hold(job_id, "its search is stopped")

    assert world.job(job_id).why == "is held: its search is stopped"
    assert world.said(EventKind.JOB_HELD) == [f"job-1 (lr-search#4) is held: {WHY}"]
    for _ in range(3):
        release(world, job_id)
    assert world.said(EventKind.JOB_RELEASED) == [
        "job-1 (lr-search#4) is not held any more: it is among the best 3 of 9"
    ]


def test_a_held_job_writes_nothing_while_time_passes(world: World) -> None:
    job_id = submit(world)
    hold(world, job_id)
    world.settle()
    before = world.store.last_seq(), world.job(job_id).revision

    world.settle(3.0)
    world.clock.advance(3600.0)
    world.settle(3.0)

    assert (world.store.last_seq(), world.job(job_id).revision) == before
    assert world.control.jobs()[job_id].limit_at is None
    assert world.control.wake_at() is None


def test_an_ended_or_stopping_job_is_not_held(world: World) -> None:
    job_id = submit(world)
    world.links.obedient = False
    world.control.trials.stop(job_id, "lr-search")
    hold(world, job_id)
    world.control.trials.stop(job_id, "lr-search")
    assert (state(world, job_id), world.job(job_id).hold) == (JobState.STOPPING, "")

    for task in world.tasks(job_id):
        world.exit(task.id, 0)
    world.settle()
    hold(world, job_id)
    release(world, job_id)
    hold(world, JobId("job-99"))

    assert (state(world, job_id), world.job(job_id).hold) == (JobState.STOPPED, "")
    assert world.said(EventKind.JOB_HELD) == []


def test_a_person_may_stop_resize_and_delete_a_held_job(world: World) -> None:
    job_id = submit(world, max_tasks=4)
    hold(world, job_id)
    world.settle()
    with pytest.raises(Conflict, match="job-1 is paused; stop it first"):
        world.control.deletions.delete([job_id], "ann")

    world.control.requests.change(job_id, JobPatch(max_tasks=2))
    world.settle()
    assert is_at_rest(world, job_id)
    release(world, job_id)
    world.settle()
    assert len(world.members(job_id)) == 2

    hold(world, job_id)
    world.control.requests.stop(job_id, "ann")
    world.settle(10.0)
    assert (state(world, job_id), world.job(job_id).hold) == (JobState.STOPPED, "")
    world.control.deletions.delete([job_id], "ann")


def test_a_held_job_that_completes_or_fails_meanwhile_has_ended(world: World) -> None:
    done, failed = submit(world), submit(world, min_tasks=1)
    world.links.obedient = False
    for job_id in (done, failed):
        hold(world, job_id)
    world.finish(done)
    for task in world.tasks(failed):
        world.exit(task.id, 1)
    world.settle(5.0)

    facts = world.control.trials.facts([done, failed])
    assert facts[done].state is JobState.COMPLETED
    assert (facts[done].hold, facts[done].ended_at is None) == ("", False)
    assert facts[failed].state in (JobState.PAUSED, JobState.FAILED)


def test_a_running_fixed_job_cannot_be_held_and_a_pending_one_can(world: World) -> None:
    job_id = submit(world, fixed=True, virtual_workers=1)
    with pytest.raises(Conflict, match="job-1 is fixed and runs: its state cannot be saved"):
        hold(world, job_id)
    assert world.job(job_id).hold == ""

    waiting = submit(world, fixed=True, virtual_workers=1, after=(job_id,))
    hold(world, waiting)
    world.exit(world.tasks(job_id)[0].id, 0)
    world.settle()
    assert is_at_rest(world, waiting)
    release(world, waiting)
    world.settle()
    assert state(world, waiting) is JobState.RUNNING


def test_a_held_job_that_waits_for_others_says_so_when_it_is_released(world: World) -> None:
    first = world.submit()
    job_id = submit(world, after=(first,))
    hold(world, job_id)
    assert world.job(job_id).why == f"is held: {WHY}"

    release(world, job_id)

    assert world.job(job_id).why == "waits for job-1 to complete"


def test_a_held_job_stays_held_when_the_server_goes_down_in_order(world: World) -> None:
    job_id = submit(world, max_tasks=2)
    hold(world, job_id)
    world.control.ending.drain_all("SIGTERM")
    world.settle(5.0)
    world.restart()
    world.settle(5.0)

    assert (state(world, job_id), is_at_rest(world, job_id)) == (JobState.PAUSED, True)


def test_a_task_that_dies_while_it_leaves_brings_nothing_back(world: World) -> None:
    job_id = submit(world, min_tasks=2, max_tasks=2)
    world.links.obedient = False
    hold(world, job_id)
    for task in world.tasks(job_id):
        assert task.state is TaskState.LEAVING
        world.exit(task.id, -9)
    world.links.obedient = True
    world.settle(5.0)

    assert (state(world, job_id), is_at_rest(world, job_id)) == (JobState.PAUSED, True)


def test_no_queue_wants_slots_for_a_held_job(world: World) -> None:
    job_id = submit(world, max_tasks=4)
    assert world.control.measures.take().queues["default"].wanted == 4

    hold(world, job_id)

    assert world.control.measures.take().queues["default"].wanted == 0


# how it stands


def test_facts_are_those_of_the_job_and_of_what_is_saved(world: World) -> None:
    job_id = submit(world, max_tasks=2)
    world.train(job_id, 30)
    facts = world.control.trials.facts([job_id, JobId("job-7")])
    assert list(facts) == [job_id]
    seen = facts[job_id]
    assert (seen.state, seen.step, seen.num_slots, seen.rests) == (JobState.RUNNING, 30, 2, False)
    assert (seen.has_model, seen.ended_at) == (False, None)

    hold(world, job_id)
    assert not world.control.trials.facts([job_id])[job_id].rests
    world.settle()
    assert world.control.trials.facts([job_id])[job_id].rests

    release(world, job_id)
    world.settle()
    (world.control.settings.folders(job_id).root / "result" / "model" / "model.pt").write_bytes(b"x")
    world.finish(job_id)
    seen = world.control.trials.facts([job_id])[job_id]
    assert (seen.state, seen.has_model, seen.rests) == (JobState.COMPLETED, True, False)


def test_reports_come_whole_steps_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = submit(world)
    points = [
        Metric(job_id=job_id, name=name, step=step, epoch=0, at=0.0, value=step)
        for step in (1, 2, 3)
        for name in ("acc", "loss", "lr")
    ]
    world.store.write(Writes(metrics=tuple(points)))
    monkeypatch.setattr("pliant.control.requests.trials.MAX_POINTS", 3)

    found: list[Metric] = []
    after = -1
    while page := world.control.trials.reports(job_id, ["acc", "loss"], after):
        found += page
        after = page[-1].step

    assert found == [point for point in points if point.name != "lr"]
