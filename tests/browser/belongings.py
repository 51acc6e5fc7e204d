"""Things of every kind that somebody owns and shares, on a server whose tasks are played: for pages that show them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from tests.server.conftest import PASSWORD, packed, wait_for
from tests.server.played import Played
from tests.server.test_endpoints import deploy
from tests.server.test_models import add_model, add_template, keep_dataset, torch_file, train
from tests.server.test_searches import create, settle

from pliant import __version__
from pliant.core.access import Role
from pliant.core.dataset import Content, DatasetState
from pliant.core.job import JobId

PEOPLE: Final = {
    "vera": Role.VIEWER,
    "ada": Role.USER,
    "bob": Role.USER,
    "eve": Role.USER,
    "olga": Role.OPERATOR,
    "root": Role.ADMIN,
}
"""All things are Ada's, and shared with Vera and Bob; Eve is shared nothing with."""
_SHARED: Final[dict[str, Any]] = {"shared_with": ("bob", "vera")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """What the things are called whose names the server chose."""

    running: str
    """A job."""
    completed: str
    """Another one."""
    upload: str
    """An upload that is not finished."""
    session: str
    token: str


def plant(server: Played) -> Belongings:
    """Make the people and Ada's things."""
    for name, role in PEOPLE.items():
        server.add_user(name, role)
    admin = server.http
    _made(admin.post("/resource-groups", json={"name": "half", "hosts": {"all": True}, "slots_per_host": "2"}))
    _made(admin.post("/queues", json={"name": "night", "resource_group": "half"}))
    with server.client() as ada:
        said = _made(ada.post("/logon", json={"name": "ada", "password": PASSWORD}))
        ada.headers["Authorization"] = f"Bearer {said['token']}"
        (session,) = _made(ada.get("/me/sessions"))["sessions"]
        token = _made(ada.post("/tokens", json={"label": "nightly", "scopes": ["jobs:read"]}))
        _catalog(server, ada)
        completed, running = _jobs(server, ada)
        _trainings(server, ada)
        _endpoints(server, ada, completed)
        _searches(server, ada)
        return Belongings(
            running=running,
            completed=completed,
            upload=_made(ada.post("/uploads", json={"num_bytes": 10}))["id"],
            session=session["id"],
            token=token["info"]["id"],
        )


def _made(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


def _jobs(server: Played, ada: httpx.Client) -> tuple[str, str]:
    """Return one that has ended and one that goes on."""
    ids = []
    for name in ("ended", "resnet"):
        job = json.dumps({"script": "train.py", "name": name, "max_tasks": 1})
        code = ("c.tar.gz", packed({"train.py": "import pliant.train\n"}))
        ids.append(_made(ada.post("/jobs", files={"job": (None, job), "code": code}))["id"])
        server.tick(1.0)
        server.report(ids[-1])
        server.print(f"{ids[-1]}.1", "stdout", b"epoch 1\n")
        server.save(ids[-1], "model/model.pt", b"weights")
        _made(ada.put(f"/jobs/{ids[-1]}/shares", json=_SHARED))
        if name == "ended":
            server.complete(ids[-1])
    return ids[0], ids[1]


def _catalog(server: Played, ada: httpx.Client) -> None:
    keep_dataset(server, "coming", owner="ada", **_SHARED)
    keep_dataset(server, owner="ada", state=DatasetState.READY, content=Content(num_files=3, num_bytes=7), **_SHARED)
    _made(ada.post("/environments", json={"name": "torch", "venv": str(_venv(server.home.parent)), **_SHARED}))
    wait_for(lambda: ada.get("/environments/torch").json()["state"] == "ready")
    _made(add_template(ada, engines=["single", "elastic"], **_SHARED))
    _made(add_model(ada, **_SHARED))


def _venv(folder: Path) -> Path:
    """Make a folder whose interpreter says that it has all that a task needs."""
    python = folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (folder / "venv" / "pyvenv.cfg").touch()
    python.write_text(f"""#!/bin/sh\necho '["{__version__}", "2"]'\n""")
    python.chmod(0o755)
    return python.parents[1]


def _trainings(server: Played, ada: httpx.Client) -> None:
    for name in ("first", "second"):
        job_id = JobId(_made(train(ada, name=name))["job_id"])
        server.tick(1.0)
    Path(str(server.control.settings.folders(job_id).weights)).write_bytes(torch_file())
    server.end_tasks(job_id, 0)
    server.until_ended(job_id)


def _endpoints(server: Played, ada: httpx.Client, job: str) -> None:
    for name in ("digits", "asleep"):
        for _ in range(2):
            _made(deploy(ada, name, source="digits/"))
            server.endpoints.load(name)
        _made(ada.patch(f"/endpoints/{name}", json=_SHARED))
    _made(ada.post("/endpoints/asleep/stop"))


def _searches(server: Played, ada: httpx.Client) -> None:
    for name in ("lr-search", "over"):
        _made(create(ada, name=name, **_SHARED))
        settle(server)
    _made(ada.post("/searches/over/stop"))
