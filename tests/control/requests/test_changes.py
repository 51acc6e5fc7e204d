"""A submission is checked whole before anything of it is kept."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.link_proofs import new_proof

from pliant.core.errors import InvalidInput
from pliant.core.job import JobSpec
from pliant.core.link_proof import LinkAnswer

World = Any


def spec(**changes: Any) -> JobSpec:
    fields: dict[str, Any] = {"name": "n", "script": "train.py", "virtual_workers": 8}
    return JobSpec(**(fields | changes))


def submit(world: World, files: dict[str, str], **changes: Any) -> Any:
    archive = world.home / "upload.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return world.control.requests.submit(spec(**changes), archive, "ann")


def refused(world: World, files: dict[str, str], **changes: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as error:
        submit(world, files, **changes)
    assert list((world.home / "jobs").iterdir()) == []
    assert world.store.jobs() == ()
    return {problem.field: problem.message for problem in error.value.problems}


def test_the_code_is_kept_and_the_job_waits(world: World) -> None:
    job = submit(world, {"train.py": "print()", "lib/a.py": ""})
    folders = world.control.settings.folders(job.id)
    assert job.id == "job-1"
    assert (folders.root / "code" / "lib" / "a.py").is_file()
    assert (folders.root / "result" / "model").is_dir()
    assert [p.name for p in (world.home / "jobs").iterdir()] == ["job-1"]


def test_a_script_that_is_not_there_is_named(world: World) -> None:
    assert "there are other.py" in refused(world, {"other.py": ""})["script"]
    assert "is a folder" in refused(world, {"train.py/x.py": ""})["script"]
    assert "points outside" in refused(world, {"train.py": ""}, script="../train.py")["script"]


def test_a_script_that_does_not_parse_is_shown(world: World) -> None:
    message = refused(world, {"train.py": "x = 1\nfor in x:\n    pass\n"})["script"]
    assert "line 2" in message
    assert "for in x:" in message
    assert "does not parse" in refused(world, {"train.py": "x = '\0'"})["script"]


def test_everything_that_is_wrong_is_told_at_once(world: World, tmp_path: Path) -> None:
    found = refused(
        world,
        {"train.py": "if"},
        min_tasks=9,
        max_tasks=8,
        virtual_workers=4,
        data_dir=str(tmp_path / "nowhere"),
        python="python3",
        env={"PLIANT_URL": "x", "A": "\0"},
        args=("ok", "\0"),
    )
    assert set(found) == {
        "min_tasks",
        "max_tasks",
        "data_dir",
        "python",
        "env.PLIANT_URL",
        "env.A",
        "args.1",
        "script",
    }


def opens(world: World, task_id: str, token: str) -> bool:
    """Tell whether the token is that of this task's job, and the task lives."""
    answer: LinkAnswer = world.control.answer_task(task_id, new_proof(task_id).authorization(token))
    return answer.is_open


def test_a_task_gets_the_documented_environment(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("data")
    submit(world, {"train.py": ""}, data_dir=str(data), env={"MINE": "1", "TASK_JOB_ID": "no"}, audit=True)
    world.settle(0.1)
    order = world.cluster.orders[0]
    root = world.home / "jobs" / "job-1"
    token = order.env["PLIANT_TASK_TOKEN"]
    assert order.argv == ("train.py",)
    assert order.cwd == str(root / "code")
    assert order.env["LOG_DIR"] == order.log_dir == str(root / "result/log/job-1.1.local")
    assert order.env["SAVED_MODEL_DIR"] == str(root / "result/model")
    assert order.env["DATA_DIR"] == str(data)
    assert order.env["PLIANT_AUDIT"] == "1"
    assert (order.env["MINE"], order.env["TASK_JOB_ID"]) == ("1", "job-1")
    assert opens(world, "job-1.1", token)
    assert not opens(world, "job-1.2", token), "there is no such task"
    assert not opens(world, "job-2.1", token)
    assert not opens(world, "job-1.1", token[:-1])
    assert not world.control.answer_task("", "").is_open


def test_modes_and_origins_are_in_the_environment(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    submit(world, {"train.py": ""}, mode="fast", checkpoint_every_s=1.5)
    world.settle(0.1)
    plain = world.cluster.orders[0].env
    assert (plain["PLIANT_MODE"], plain["PLIANT_CHECKPOINT_EVERY_S"]) == ("fast", "1.5")
    assert not {"PLIANT_WEIGHTS", "PLIANT_RESUME_FROM"} & plain.keys()

    first = world.control.settings.folders("job-1")
    Path(str(first.weights)).write_bytes(b"w")
    checkpoints = Path(str(first.checkpoints))
    checkpoints.mkdir()
    (checkpoints / "step-000000000010.ckpt").write_bytes(b"c")
    mine = tmp_path_factory.mktemp("weights") / "mine.pt"
    mine.write_bytes(b"w")
    for wanted, path in (("job-1", first.weights), (str(mine), mine)):
        job = submit(world, {"train.py": ""}, weights=wanted)
        assert job.spec.weights == str(path)
        world.settle(0.1)
        assert world.cluster.orders[-1].env["PLIANT_WEIGHTS"] == str(path)
    submit(world, {"train.py": ""}, resume_from="job-1")
    world.settle(0.1)
    assert world.cluster.orders[-1].env["PLIANT_RESUME_FROM"] == str(first.checkpoints)
    assert first.root.is_absolute()


def test_an_origin_that_is_not_there_is_refused(world: World, tmp_path: Path) -> None:
    found = refused(world, {"train.py": ""}, weights="job-7", resume_from="job-7")
    assert "no file 'job-7' here that you may name; give the whole path of a state_dict" in found["weights"]
    assert "no checkpoint in 'job-7'; give a job that has saved one" in found["resume_from"]
    relative = refused(world, {"train.py": ""}, weights="mine.pt", resume_from=str(tmp_path))
    assert set(relative) == {"weights", "resume_from"}
