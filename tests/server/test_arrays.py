"""Arrays and jobs that run after others, by REST: what is asked and answered, and who may ask it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served, packed
from tests.server.played import Played

from pliant.api.arrays import ArrayRequest
from pliant.client import Client

VALUES = {"lr": [0.1, 0.01], "batch": [32, 64]}


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Played]:
    pool = Played(tmp_path)
    yield pool
    pool.close()


def submit(client: httpx.Client, route: str = "/arrays", **job: object) -> httpx.Response:
    body = {"script": "train.py", "name": "sweep"} | job
    files: dict[str, Any] = {
        "job": (None, json.dumps(body)),
        "code": ("c.tar.gz", packed({"train.py": "import pliant.train\n"})),
    }
    return client.post(route, files=files)


def test_an_array_is_submitted_shown_and_stopped(pool: Played) -> None:
    made = submit(pool.http, array=VALUES, array_max=2, args=["--epochs", "3"])

    assert made.status_code == 201, made.text
    array = made.json()
    assert (array["id"], array["num_jobs"], array["max_running"], array["states"]) == ("array-1", 4, 2, {"pending": 4})
    assert array["jobs"][3]["spec"]["array"] == {
        "id": "array-1",
        "name": "sweep",
        "index": 3,
        "num_jobs": 4,
        "values": {"lr": "0.01", "batch": "64"},
        "max_running": 2,
    }
    assert array["jobs"][3]["spec"]["args"] == ["--epochs", "3", "--lr=0.01", "--batch=64"]
    pool.tick(2.0)
    assert pool.http.get("/arrays/array-1").json()["states"] == {"running": 2, "pending": 2}
    assert pool.http.get("/jobs/job-4").json()["job"]["why"].startswith("waits: no more than 2 jobs of array-1")
    stopped = pool.http.post("/arrays/array-1/stop", params={"now": True})
    assert stopped.json()["states"] == {"stopping": 2, "stopped": 2}
    assert pool.http.post("/arrays/array-9/stop").status_code == 404


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "it is missing"),
        ({"array": {}}, "too few entries"),
        ({"array": {"lr": []}}, "'lr' has no value"),
        ({"array": {"lr": [1, "1"]}}, "'lr' has the value '1' twice"),
        ({"array": {"l r": [1]}}, "'l r' cannot be taken; give a name of letters"),
        ({"array": {"lr": [True]}}, "lr"),
        ({"array": {"lr": ["a\x1b[2J"]}}, "it holds U+001B"),
        ({"array": {"lr": 1}}, "no list"),
        ({"array": {"a": list(range(40)), "b": list(range(40))}}, "40 × 40 combinations are 1,600 jobs"),
        ({"array": VALUES, "array_max": 0}, "0 is too small"),
        ({"array": VALUES, "after": ["job-1 "]}, "the id of a job or of an array"),
        ({"array": VALUES, "after": ["job-1"]}, "no job is named 'job-1'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_made(module_server: Served, wrong: dict[str, object], said: str) -> None:
    answer = submit(module_server.http, "/arrays", **wrong)

    assert answer.status_code == 422, answer.text
    assert said in "; ".join(f"{problem['field']}: {problem['message']}" for problem in answer.json()["problems"])
    assert module_server.http.get("/jobs").json()["jobs"] == []


def test_it_is_no_field_of_a_single_job(module_server: Served) -> None:
    answer = submit(module_server.http, "/jobs", array=VALUES)
    assert answer.status_code == 422
    assert "there is no field of this name" in answer.text


def test_others_see_and_stop_nothing_of_it(pool: Played) -> None:
    with pool.client_of("ann") as ann, pool.client_of("bob") as bob:
        assert submit(ann, array={"lr": [1, 2]}).status_code == 201

        assert bob.get("/arrays/array-1").status_code == 404
        assert bob.post("/arrays/array-1/stop").status_code == 404
        for name in ("array-1", "job-1"):
            refused = submit(bob, "/jobs", after=[name])
            assert refused.status_code == 422
            assert f"is named '{name}'" in refused.text
        for job in ("job-1", "job-2"):
            assert bob.get("/arrays/array-1").status_code == 404
            assert ann.put(f"/jobs/{job}/shares", json={"shared_with": ["bob"]}).status_code == 200
        assert bob.get("/arrays/array-1").status_code == 200
        assert bob.post("/arrays/array-1/stop").status_code == 403
        assert submit(bob, "/jobs", after_any=["array-1"]).status_code == 201
        assert ann.get("/jobs/job-3").status_code == 404
        assert ann.post("/arrays/array-1/stop").status_code == 200


def test_a_change_names_only_what_its_maker_sees(pool: Played) -> None:
    with pool.client_of("ann") as ann, pool.client_of("bob") as bob:
        for client in (ann, bob):
            assert submit(client, "/jobs", min_tasks=4, max_tasks=4).status_code == 201
        mine = submit(bob, "/jobs", after=["job-2"]).json()
        assert (mine["after"], mine["why"]) == (["job-2"], "waits for job-2 to complete")

        refused = bob.patch(f"/jobs/{mine['id']}", json={"after": ["job-1"]})
        changed = bob.patch(f"/jobs/{mine['id']}", json={"after": [], "after_any": ["job-2"]})

        assert (refused.status_code, changed.status_code) == (422, 200)
        assert (changed.json()["after"], changed.json()["after_any"]) == ([], ["job-2"])
        assert bob.patch(f"/jobs/{mine['id']}", json={"after": None}).json()["after_any"] == ["job-2"]


def test_the_client_submits_waits_and_stops(pool: Played, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import pliant.train\n")
    request = ArrayRequest(script="train.py", array={"lr": (0.1, "x")}, array_max=1)
    with Client(pool.url, pool.token) as client:
        array = client.arrays.submit(script, request)
        assert [job.spec.array.values["lr"] for job in array.jobs if job.spec.array] == ["0.1", "x"]
        pool.tick(2.0)
        with pytest.raises(TimeoutError, match="array-1 has jobs that have not ended"):
            client.arrays.wait(array.id, timeout_s=0.0)
        client.arrays.stop(array.id, now=True)
        pool.tick(10.0)
        assert client.arrays.wait(array.id, timeout_s=5.0).states == {"stopped": 2}
        assert client.arrays.get(array.id).id == array.id
