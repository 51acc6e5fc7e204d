"""No answer to people tells where on its disk the server keeps things."""

import errno
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute
from tests.server.played import Played
from tests.server.world import NAME, code, makes

from pliant.core.access import Role
from pliant.core.errors import Unavailable
from pliant.files.space import disk_error
from pliant.ibm.rest.api import IBM

EXEC = "/platform/rest/deeplearning/v1/execs"
ENDLESS = ("/v1/events/stream",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A server with one of each noun, and who asks."""

    pool: Played
    exec_id: str
    ada: httpx.Client
    """Whose everything is."""
    vic: httpx.Client
    """A viewer, with whom everything is shared."""

    @property
    def places(self) -> list[str]:
        """Return how the server's folder can be written."""
        return [str(self.pool.home), json.dumps(str(self.pool.home))[1:-1]]

    def told(self, answer: httpx.Response) -> list[str]:
        """Return what an answer tells of the server's folder."""
        return [
            answer.text[max(0, found.start() - 60) : found.end() + 60]
            for place in self.places
            for found in re.finditer(re.escape(place), answer.text)
        ]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("told") / "server-home"
    home.mkdir()
    pool = Played(home)
    every = makes(pool)
    every[0].send(pool.http)
    ada, vic = pool.client_of("ada"), pool.client_of("vic", Role.VIEWER)
    for make in every[1:3]:
        assert make.send(pool.http).is_success
    for make in every[3:]:
        made = make.send(ada)
        assert made.is_success, (make.kind, made.text)
    body = {"script": "train.py", "name": "digits"}
    for _ in range(2):
        made = ada.post("/jobs", files={"job": (None, json.dumps(body)), "code": ("c.tar.gz", code())})
        assert made.is_success, made.text
        pool.tick(1.0)
    args, file = "--exec-start PyTorch --model-main main.py", ("main.py", b"print()")
    made = ada.post(f"{pool.url}{EXEC}", params={"args": args}, files={"file": file})
    assert made.is_success, made.text
    exec_id = made.json()["id"]
    pool.report("job-1")
    pool.print("job-1.1", "stdout", b"one\n")
    pool.print("job-1.1", "stderr", b"ValueError: x\n")
    pool.save("job-1", "model/model.pt", b"weights")
    pool.fail("job-2")
    for path in (
        f"/datasets/{NAME}",
        f"/environments/{NAME}",
        f"/templates/{NAME}",
        f"/models/{NAME}",
        "/jobs/job-1",
        "/jobs/job-2",
        "/jobs/job-3",
    ):
        shared = ada.put(f"{path}/shares", json={"shared_with": ["*"]})
        print(path, shared.status_code, shared.text[:200])
    yield Scene(pool=pool, exec_id=exec_id, ada=ada, vic=vic)
    for client in (ada, vic):
        client.close()
    pool.close()


def reading_paths(scene: Scene) -> Iterator[str]:
    """Yield the path of every route that reads and ends, with names for which something is there."""
    description = httpx.get(f"{scene.pool.url}/openapi.json", timeout=30).json()
    own = [path for path, operations in description["paths"].items() if "get" in operations and path not in ENDLESS]
    ibm = [
        route.path
        for routes in IBM.routes
        for route in routes.router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not route.path.endswith("/logon")
    ]
    for path in dict.fromkeys((*own, *ibm)):
        for job in ("job-1", "job-2", "job-3"):
            names = {
                **dict.fromkeys(("name", "model", "template", "dataset", "training", "label", "user", "title"), NAME),
                **dict.fromkeys(("exec_id", "application_id"), scene.exec_id),
                "job_id": job,
                "task_id": f"{job}.1",
                "stream": "stderr",
                "kind": "stdout",
                "executor": "0",
                "sig_id": "default",
            }
            if path.startswith("/v1/users"):
                names["name"] = "ada"
            yield re.sub(r"\{(\w+)(:path)?\}", lambda found, names=names: names.get(found[1], NAME), path)  # type: ignore[misc]


def test_no_route_tells_it_to_people_and_their_answers_stay_whole(scene: Scene) -> None:
    told, num_answered = [], 0
    for path in dict.fromkeys(reading_paths(scene)):
        for client in (scene.ada, scene.vic):
            answer = client.get(f"{scene.pool.url}{path}")
            told += [(path, text) for text in scene.told(answer)]
            num_answered += answer.is_success
            if answer.headers.get("content-type") == "application/json":
                answer.json()
    assert told == []
    assert num_answered > 80


def test_who_runs_the_server_is_told(scene: Scene) -> None:
    answer = scene.pool.http.get(f"/datasets/{NAME}")
    assert answer.json()["folder"] == str(scene.pool.home / "data" / "digits")
    assert scene.pool.http.get(f"{scene.pool.url}/platform/rest/deeplearning/v1/conf").json()["DLI_RESULT_FS"] == str(
        scene.pool.home / "jobs"
    )


def test_what_is_in_its_folder_is_told_by_its_place_there(scene: Scene) -> None:
    assert scene.ada.get(f"/datasets/{NAME}").json()["folder"] == "data/digits"
    answer = scene.vic.get(f"{scene.pool.url}/platform/rest/deeplearning/v1/conf")
    assert (answer.json()["DLI_RESULT_FS"], answer.json()["DLI_DATA_FS"]) == ("jobs", "data")


ODD = ("/etc/passwd", "../../token", "x" * 300, "a b", "%2e%2e", "token")
BODIES: tuple[Any, ...] = (
    {},
    [],
    {"name": "odd", "source": {"path": "x" * 300}, "kind": "any"},
    {"name": "odd", "source": {"path": "a/../../token"}, "kind": "any"},
    {"name": "odd", "venv": "/nowhere/at/all"},
    {"name": "odd", "template": "odd"},
    {"path": "/etc"},
)


def test_no_error_tells_it(scene: Scene) -> None:
    told, statuses = [], set()
    description = httpx.get(f"{scene.pool.url}/openapi.json", timeout=30).json()
    for path, operations in description["paths"].items():
        for method in operations.keys() - {"get"}:
            for number, body in enumerate(BODIES):
                filled = re.sub(r"\{\w+\}", quote(ODD[number % len(ODD)], safe=""), path)
                answer = scene.ada.request(method, f"{scene.pool.url}{filled}", json=body)
                told += [(method, filled, text) for text in scene.told(answer)]
                statuses.add(answer.status_code)
    for field in ("weights", "environment", "dataset", "resume_from", "script", "python"):
        for value in (*ODD, str(scene.pool.home.parent)):
            body = {"script": "train.py", field: value}
            form: Any = {"job": (None, json.dumps(body)), "code": ("c.tar.gz", code())}
            told += [(field, value, text) for text in scene.told(scene.ada.post("/jobs", files=form))]
    assert told == []
    assert statuses >= {403, 404, 422}


@pytest.mark.parametrize("path", ["/v1/cluster", "/platform/rest/deeplearning/v1/status"])
def test_what_fails_at_the_servers_side_names_no_place_and_the_log_does(
    scene: Scene, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = "postgresql://pliant@db.internal:5432/pliant"

    def fail(*_: object) -> None:
        home = scene.pool.home
        raise Unavailable(f"the database sqlite:///{home}/pliant.db or {elsewhere} or {home / 'x y'} does not answer")

    monkeypatch.setattr(scene.pool.control.queries, "cluster", fail)
    answer = scene.ada.get(f"{scene.pool.url}{path}")
    assert answer.status_code in (500, 503)
    assert "the database [left out] or [left out] or x y does not" in answer.text
    assert "internal" not in answer.text
    assert elsewhere in caplog.text


def test_a_full_disk_names_no_place(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise disk_error(Path("/srv/pliant data"), OSError(errno.ENOSPC, "full"))

    monkeypatch.setattr(scene.pool.control.queries, "cluster", fail)
    answer = scene.ada.get("/cluster")
    assert answer.status_code == 507
    assert "/srv" not in answer.text
