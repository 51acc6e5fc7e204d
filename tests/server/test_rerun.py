"""Jobs that are run again, by REST and by the client: of what code, with what settings, as whom."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Served, packed
from tests.server.played import Played

from pliant.client import Client, Conflict, InvalidInput

FILES = {"train.py": "import pliant.train\n", "data/a.txt": "one\n"}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server for all tests of this file, which look only at jobs of their own."""
    home = tmp_path_factory.mktemp("served") / "home"
    home.mkdir()
    pool = Played(home)
    yield pool
    pool.close()


@pytest.fixture
def client(pool: Played) -> Iterator[Client]:
    with Client(pool.url, pool.token) as client:
        yield client


def submit(pool: Served, **job: object) -> str:
    made = pool.submit(FILES, **job)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def rerun(pool: Served, job_id: str, **changes: object) -> dict[str, Any]:
    made = pool.http.post(f"/jobs/{job_id}/rerun", json=changes)
    assert made.status_code == 201, made.text
    answer = made.json()
    assert isinstance(answer, dict)
    return answer


def differences(answer: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    return {one["field"]: (one["before"], one["after"]) for one in answer["differences"]}


def test_a_job_is_run_again_as_it_was_submitted(pool: Played) -> None:
    asked = {
        "name": "digits",
        "args": ["--lr", "0.1"],
        "max_tasks": 4,
        "virtual_workers": 16,
        "env": {"SEED": "7", "WANDB_API_KEY": "geheim"},
        "priority": 700,
        "mode": "fast",
        "tags": {"lr": 0.1, "candidate": ""},
        "checkpoint_every_s": 30.0,
        "memory_bytes": 1 << 30,
    }
    first = submit(pool, **asked)
    assert pool.http.patch(f"/jobs/{first}", json={"priority": 900}).is_success
    code = pool.home / "jobs" / first / "code"
    (code / "train.py").write_text("overwritten by the job\n")
    (code / "model.pt").write_text("written by the job\n")

    again = rerun(pool, first)

    assert (again["rerun_of"], again["differences"], again["notes"]) == (first, [], [])
    assert pool.job(again["id"]).spec == pool.job(first).spec
    assert pool.job(again["id"]).spec.env["WANDB_API_KEY"] == "geheim"
    assert again["spec"]["env"]["WANDB_API_KEY"] == "(hidden)"
    assert pool.code(again["id"]) == FILES
    shown = pool.http.get(f"/jobs/{again['id']}").json()["job"]
    assert (shown["rerun_of"], pool.job(first).rerun_of) == (first, None)
    events = pool.http.get("/events", params={"job_id": again["id"]}).json()["events"]
    assert f"was submitted by admin to run {first} again: " in events[0]["message"]


def test_what_is_changed_is_said(pool: Played) -> None:
    first = submit(pool, max_tasks=2, args=["--lr", "0.1"], env={"A": "1", "KEY": "secret"}, time_limit_s=60)

    again = rerun(
        pool, first, max_tasks=4, args=["--lr", "a b"], env={"A": "2", "KEY": "other", "B": ""}, time_limit_s=None
    )

    assert differences(again) == {
        "args": ("--lr 0.1", "--lr 'a b'"),
        "max_tasks": ("2", "4"),
        "time_limit_s": ("60", None),
        "env.A": ("1", "2"),
        "env.B": (None, ""),
        "env.KEY": ("(hidden)", "(hidden)"),
    }
    spec = pool.job(again["id"]).spec
    assert (spec.max_tasks, spec.args, spec.time_limit_s) == (4, ("--lr", "a b"), None)
    assert spec.env == {"A": "2", "KEY": "other", "B": ""}


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"max_tasks": 0}, "max_tasks", "0 is too small"),
        ({"colour": "red"}, "colour", "no field of this name"),
        ({"max_tasks": 9}, "", "above virtual_workers 8"),
        ({"script": "other.py"}, "script", "other.py"),
        ({"dataset": "nothing"}, "dataset", "nothing"),
        ({"env": {"PLIANT_X": "1"}}, "env.PLIANT_X", "Pliant's own"),
        ({"queue": "nowhere"}, "queue", "there is no queue"),
        ({"webhook_secret": "x" * 8}, "", "give webhook as well"),
    ],
)
def test_a_change_is_held_to_what_a_submission_is(
    pool: Played, changes: dict[str, object], field: str, said: str
) -> None:
    first = submit(pool, max_tasks=2, virtual_workers=8)
    refused = pool.http.post(f"/jobs/{first}/rerun", json=changes)

    assert refused.status_code == 422
    (problem,) = refused.json()["problems"]
    assert (problem["field"], said in problem["message"]) == (field, True), problem


def test_one_kind_of_job_can_be_run_again_as_the_other(pool: Played) -> None:
    fixed = submit(pool, fixed=True, min_tasks=2, max_tasks=2, max_restarts=1)
    same = rerun(pool, fixed)
    assert (same["differences"], pool.job(same["id"]).spec) == ([], pool.job(fixed).spec)

    elastic = rerun(pool, fixed, fixed=False, min_tasks=1)
    assert differences(elastic) == {"fixed": ("true", "false"), "min_tasks": ("2", "1"), "max_restarts": ("1", "3")}
    stalling = submit(pool, virtual_workers=4, on_stall="end", max_tasks=2)
    assert pool.job(rerun(pool, stalling, fixed=True, min_tasks=2)["id"]).spec.on_stall == "warn"


def test_the_name_follows_the_script_if_it_was_called_after_it(pool: Played) -> None:
    made = pool.submit({**FILES, "other.py": "import pliant.train\n"})
    again = rerun(pool, made.json()["id"], script="other.py")
    assert again["spec"]["name"] == "other.py"


def test_where_a_training_starts_is_given_in_one_way(pool: Played) -> None:
    origin = pool.add(name="origin")
    pool.save(origin, "model/model.pt", b"weights")
    pool.save(origin, "checkpoint/step-3.ckpt", b"checkpoint")
    first = submit(pool, weights=origin)

    assert pool.job(rerun(pool, first)["id"]).spec.weights == pool.job(first).spec.weights
    resumed = pool.job(rerun(pool, first, resume_from=origin)["id"]).spec
    assert (resumed.weights, Path(str(resumed.resume_from)).name) == (None, "checkpoint")


def test_what_is_over_is_not_waited_for_again(pool: Played) -> None:
    awaited = submit(pool, name="awaited")
    waiting = submit(pool, after=[awaited], name="waiting")

    again = rerun(pool, waiting)
    assert (again["after"], again["differences"]) == ([awaited], [])

    assert pool.http.post(f"/jobs/{awaited}/stop", params={"now": True}).is_success
    pool.until_ended(waiting)
    later = rerun(pool, waiting)
    assert (later["after"], differences(later)) == ([], {"after": (awaited, None)})


def test_a_job_of_an_array_is_run_again_with_its_value_alone(pool: Played) -> None:
    values = {"lr": [0.1, 0.01], "batch": [32]}
    body = {"script": "train.py", "name": "sweep", "args": ["--epochs", "3"], "array": values, "array_max": 1}
    archive = ("c.tar.gz", packed(FILES))
    made = pool.http.post("/arrays", files={"job": (None, json.dumps(body)), "code": archive})
    assert made.status_code == 201, made.text
    first = made.json()["jobs"][1]

    again = rerun(pool, first["id"], priority=9)
    array = again["spec"]["array"]
    assert array["id"] != first["spec"]["array"]["id"]
    assert (array["values"], array["num_jobs"], array["max_running"]) == ({"lr": "0.01", "batch": "32"}, 1, None)
    assert (again["spec"]["args"], again["spec"]["name"]) == (first["spec"]["args"], first["spec"]["name"])
    assert (differences(again), pool.code(again["id"])) == ({"priority": ("5000", "9")}, FILES)

    other = rerun(pool, first["id"], args=["--lr", "1"])
    assert (other["spec"]["array"], other["spec"]["args"]) == (None, ["--lr", "1"])
    assert differences(other) == {
        "args": ("--epochs 3 --lr=0.01 --batch=32", "--lr 1"),
        "array": ("lr=0.01 batch=32", None),
    }


def test_somebody_elses_secrets_are_left_out_and_named(pool: Played) -> None:
    ann, bob, eve = (pool.client_of(name) for name in ("ann", "bob", "eve"))
    body = {
        "script": "train.py",
        "env": {"WANDB_API_KEY": "geheim", "URL": "http://ann:pw@host/", "SEED": "1", "EMPTY_TOKEN": ""},
    }
    made = ann.post("/jobs", files={"job": (None, json.dumps(body)), "code": ("c.tar.gz", packed(FILES))})
    job_id = made.json()["id"]

    assert bob.post(f"/jobs/{job_id}/rerun", json={}).status_code == 404
    assert pool.http.put(f"/jobs/{job_id}/shares", json={"shared_with": ["bob"]}).is_success
    again = bob.post(f"/jobs/{job_id}/rerun", json={"env": {"MINE": "2"}})
    assert again.status_code == 201, again.text
    assert again.json()["owner"] == "bob"
    (note,) = again.json()["notes"]
    assert note.startswith(f"WANDB_API_KEY, URL of {job_id} are secrets of ann and not taken over; ")
    assert "geheim" not in again.text
    assert "pw" not in again.text
    spec = pool.job(again.json()["id"]).spec
    assert spec.env == {"SEED": "1", "EMPTY_TOKEN": "", "MINE": "2"}
    assert pool.code(again.json()["id"]) == FILES
    own = bob.post(f"/jobs/{job_id}/rerun", json={"env": {"WANDB_API_KEY": "bobs"}}).json()
    assert own["notes"][0].startswith(f"URL of {job_id} is a secret of ann and not taken over")
    assert eve.post(f"/jobs/{again.json()['id']}/rerun", json={}).status_code == 404
    for who in (ann, bob, eve):
        who.close()


def test_a_job_whose_code_is_gone_says_so(pool: Played) -> None:
    first = submit(pool)
    (pool.home / "jobs" / first / "submitted" / "archive").unlink()
    refused = pool.http.post(f"/jobs/{first}/rerun", json={})
    assert refused.status_code == 409
    assert f"the code that {first} was submitted with is not kept here" in refused.json()["detail"]
    assert not list((pool.home / "jobs").glob(".new-*"))


def test_nothing_but_the_archive_itself_is_read(pool: Played, tmp_path: Path) -> None:
    first = submit(pool)
    archive = pool.home / "jobs" / first / "submitted" / "archive"
    archive.rename(tmp_path / "elsewhere")
    archive.symlink_to(tmp_path / "elsewhere")
    assert pool.http.post(f"/jobs/{first}/rerun", json={}).status_code == 409


def test_the_client_runs_jobs_again(pool: Played, client: Client) -> None:
    first = client.handle(submit(pool, max_tasks=2, time_limit_s=60))
    again = first.rerun(max_tasks=4, time_limit_s=None, env={"A": "1"})

    assert [(one.field, one.before, one.after) for one in again.differences] == [
        ("max_tasks", "2", "4"),
        ("time_limit_s", "60", None),
        ("env.A", None, "1"),
    ]
    assert (first.differences, again.spec.max_tasks) == ((), 4)
    with pytest.raises(InvalidInput, match="is 'max_tasks' meant"):
        client.rerun(first.id, max_task=3)
    (pool.home / "jobs" / first.id / "submitted" / "archive").unlink()
    with pytest.raises(Conflict, match="is not kept here"):
        client.rerun(first.id)
