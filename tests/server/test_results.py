"""What a job has written, listed and fetched: RESULT_DIR, and what is new or changed in its code folder."""

import io
import os
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.conftest import Served

from pliant.control.upkeep import results
from pliant.core.access import Role
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState
from pliant.core.ports import Writes
from pliant.entry.server.restore import restore_backup

FILES = {"train.py": "import pliant.train\n", "lib/data.csv": "1,2\n", ".pliantignore": "# large\ncache/\n*.tmp\n"}


@pytest.fixture
def job(server: Served) -> Path:
    """The folder of a job that has begun to write, with files that are its results and others."""
    made = server.submit(FILES)
    assert made.status_code == 201, made.text
    return written(server.home / "jobs" / "job-1")


def written(folder: Path) -> Path:
    """Write what a script writes."""
    for name, text in {
        "code/best.pt": "weights",
        "code/lib/data.csv": "3,4\n",
        "code/runs/7/out.txt": "out",
        "code/cache/x": "cached",
        "code/deep/cache/y": "cached",
        "code/a.tmp": "temporary",
        "code/__pycache__/train.pyc": "compiled",
        "result/model/model.pt": "model",
        "result/keep.tmp": "kept: RESULT_DIR keeps everything",
        "result/checkpoint/1": "checkpoint",
        "result/log/job-1.1.local/stdout": "printed",
        "result/log/job-1.1.local/.step": "12345678",
        "result/log/job-1.1.local/.unsent": "what the server was away for",
        "result/log/job-1.1.local/..unsent.7": "half of it",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


RESULTS = {
    "keep.tmp": 33,
    "log/job-1.1.local/stdout": 7,
    "model/model.pt": 5,
    "work/best.pt": 7,
    "work/lib/data.csv": 4,
    "work/runs/7/out.txt": 3,
}


def listed(server: Served, job_id: str = "job-1") -> dict[str, int]:
    answer = server.http.get(f"/jobs/{job_id}/files")
    assert answer.status_code == 200, answer.text
    return {file["path"]: file["num_bytes"] for file in answer.json()["files"]}


def packed(server: Served, *only: str, job_id: str = "job-1") -> dict[str, int]:
    answer = server.http.get(f"/jobs/{job_id}/result", params={"only": list(only)})
    assert answer.status_code == 200, answer.text
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        return {member.name: member.size for member in tar}


@pytest.mark.usefixtures("job")
def test_new_and_changed_files_of_the_code_folder_are_results(server: Served) -> None:
    assert listed(server) == RESULTS
    assert packed(server) == RESULTS
    assert server.http.get("/jobs/job-1/files").json()["left_out"] == []


def test_so_are_those_of_a_fixed_job(server: Served) -> None:
    assert server.submit({"train.py": ""}, fixed=True).status_code == 201
    assert listed(server) == {}
    (server.home / "jobs/job-1/code/model.pt").write_bytes(b"weights")
    assert listed(server) == packed(server) == {"work/model.pt": 7}


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("only", "found"),
    [
        (["*.pt"], {"model/model.pt", "work/best.pt"}),
        (["model/", "work/runs/"], {"model/model.pt", "work/runs/7/out.txt"}),
        (["/keep.tmp"], {"keep.tmp"}),
        (["nothing"], set()),
    ],
)
def test_only_what_a_pattern_fits_is_sent(server: Served, only: list[str], found: set[str]) -> None:
    assert set(packed(server, *only)) == found


def test_what_the_ignore_file_named_at_submission_counts_and_is_said_then(server: Served) -> None:
    (note,) = server.submit(FILES).json()["notes"]
    assert note.startswith("what .pliantignore names (cache/, *.tmp) is not among the results either")
    folder = written(server.home / "jobs" / "job-1")
    (folder / "code" / ".pliantignore").write_text("*.pt\n")
    assert listed(server) == RESULTS | {"work/.pliantignore": 5}


def test_a_log_without_its_middle_has_the_length_that_people_read(server: Served, job: Path) -> None:
    log = job / "result/log/job-1.1.local/stdout"
    with log.open("ab") as file:
        file.truncate(64 << 30)
        file.seek(64 << 30)
        file.write(b"the end\n")
    found = listed(server)
    assert found["log/job-1.1.local/stdout"] < 1 << 20
    assert found == packed(server)
    assert server.http.get("/jobs/job-1/files").json()["left_out"] == []
    with tarfile.open(fileobj=io.BytesIO(server.http.get("/jobs/job-1/result").content)) as tar:
        packed_log = tar.extractfile("log/job-1.1.local/stdout")
        assert packed_log is not None
        text = packed_log.read()
    assert text.startswith(b"printed")
    assert text.endswith(b"are left out here: the log is too long]\nthe end\n")


def test_a_folder_of_the_script_s_own_that_is_called_work_is_no_trouble(server: Served, job: Path) -> None:
    (job / "result" / "work").mkdir()
    (job / "result" / "work" / "best.pt").write_text("mine")
    assert set(listed(server)) >= {"work/best.pt", "work~/best.pt"}
    assert packed(server) == listed(server)


def test_what_is_something_else_is_left_out_and_said(server: Served, job: Path) -> None:
    (job / "code" / "link").symlink_to("/etc/passwd")
    os.mkfifo(job / "code" / "pipe")
    os.link(job / "code" / "train.py", job / "code" / "second")
    (job / "code" / "turned \u202e round").write_text("text")
    left_out = server.http.get("/jobs/job-1/files").json()["left_out"]
    # a submitted file with a second name cannot be told from a new one that is somebody else's
    assert [line.partition(":")[0] for line in left_out] == ["work/link", "work/pipe", "work/second"]
    assert set(listed(server)) == {*RESULTS, "work/turned \\u202e round"}
    assert set(packed(server)) == {*listed(server), "left-out.txt"}


def test_what_is_too_much_is_left_out_unless_it_is_asked_for(
    server: Served, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MAX_WORK_BYTES", 12)
    (job / "code" / "z.pt").write_text("last")
    answer = server.http.get("/jobs/job-1/files").json()
    assert [line.partition(":")[0] for line in answer["left_out"]] == ["work/lib/data.csv", "work/runs/7/out.txt"]
    assert "code folder; fetch it with --only" in answer["left_out"][0]
    assert packed(server, "out.txt") == {"work/runs/7/out.txt": 3}
    monkeypatch.setattr(results, "MAX_WORK_FILES", 1)
    assert [name for name in listed(server) if name.startswith("work/")] == ["work/best.pt"]


def test_nothing_is_known_of_the_code_of_a_job_without_notes(server: Served, job: Path) -> None:
    (job / "submitted" / "files").write_text("?")
    assert set(listed(server)) == {name for name in RESULTS if not name.startswith("work/")}


@pytest.mark.usefixtures("job")
def test_only_those_who_see_a_job_see_its_files(server: Served) -> None:
    with server.client() as nobody, server.client_of("ben", Role.USER) as ben:
        assert nobody.get("/jobs/job-1/files").status_code == 401
        assert ben.get("/jobs/job-1/files").status_code == 404
        assert server.http.put("/jobs/job-1/shares", json={"shared_with": ["ben"]}).is_success
        assert ben.get("/jobs/job-1/files").status_code == 200


def test_a_clean_up_of_results_removes_what_the_job_wrote_and_no_more(server: Served, job: Path) -> None:
    ended = replace(server.control.queries.job("job-1"), state=JobState.STOPPED, ended_at=1.0)
    server.store.write(Writes(jobs=(ended,)))
    server.http.put("/retention", json={"rules": [{"material": "results", "max_bytes": 0}]})
    (removed,) = server.http.post("/cleanup").json()["removals"]
    assert removed["num_bytes"] == 5 + 33 + 7 + 3, "the model, keep.tmp, best.pt and out.txt"
    assert set(listed(server)) == {"log/job-1.1.local/stdout", "work/lib/data.csv"}
    assert (job / "code" / "train.py").is_file()
    assert server.http.post("/cleanup").json()["removals"] == []


@pytest.mark.usefixtures("job")
def test_results_are_the_same_after_a_backup_was_restored(server: Served, tmp_path: Path) -> None:
    backup = server.http.get("/backup")
    (tmp_path / "backup.tar.gz").write_bytes(backup.content)
    restore_backup(tmp_path / "backup.tar.gz", tmp_path / "new", None)
    folders = replace(server.control.settings, home=tmp_path / "new").folders(JobId("job-1"))

    found = results.list_results(folders, lambda name, why: pytest.fail(f"{name}: {why}"))

    assert {name: facts.st_size for name, facts in found} == RESULTS


def test_ibm_s_zip_has_no_optimizer_states_unless_they_are_asked_for(server: Served) -> None:
    url = f"http://{server.address}/platform/rest/deeplearning/v1/execs"
    made = server.http.post(
        url,
        params={"args": "--exec-start edtPyTorch --model-main main.py"},
        files={"file": ("main.py", b"import fabric_model")},
    ).json()
    for name in ("model_epoch_1.pth", "model_epoch_1_optimizer_state.pth"):
        path = server.home / "jobs/job-1/result/model/train" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")

    def names(**params: object) -> set[str]:
        answer = server.http.get(f"{url}/{made['id']}/result", params=params)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return {Path(name).name for name in archive.namelist()}

    assert names() == {"model_epoch_1.pth"}
    assert names(optimizerStates=True) == {"model_epoch_1.pth", "model_epoch_1_optimizer_state.pth"}
