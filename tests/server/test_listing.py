"""Jobs asked for over REST by state, owner, queue and tag; and tags themselves, from a submission to the answers."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served, packed

from pliant.core.access import Role


class Scene:
    """A server with jobs of two people in two queues, and a client of each."""

    def __init__(self, server: Served) -> None:
        self.server = server
        roles = {"ann": Role.USER, "bob": Role.USER, "eve": Role.VIEWER, "olga": Role.OPERATOR}
        self.clients = {name: server.client_of(name, role) for name, role in roles.items()}
        assert server.http.post("/queues", json={"name": "night"}).status_code == 201
        for number in range(6):
            owner, queue = ("ann", "bob")[number % 2], ("default", "night")[number // 2 % 2]
            self.submit(owner, queue=queue, tags={"lr": [0.1, 0.01][number // 3], **({"best": ""} if number else {})})
        server.tick()
        for job_id in ("job-2", "job-5"):
            assert server.http.post(f"/jobs/{job_id}/stop", params={"now": True}).is_success

    def submit(self, owner: str, **job: object) -> httpx.Response:
        files: Any = {"job": (None, json.dumps({"script": "train.py", **job})), "code": ("c.tar.gz", CODE)}
        return self.clients[owner].post("/jobs", files=files)

    def ids(self, query: str, who: str = "olga") -> list[str]:
        """Return the jobs of all pages."""
        found: list[str] = []
        after = ""
        while True:
            answer = self.clients[who].get(f"/jobs?limit=2&{query}{after}")
            assert answer.status_code == 200, answer.text
            found += [job["id"] for job in answer.json()["jobs"]]
            if answer.json()["next"] is None:
                return found
            after = f"&before={answer.json()['next']}"

    def refusals(self, query: str, who: str = "olga") -> dict[str, str]:
        answer = self.clients[who].get(f"/jobs?{query}")
        assert answer.status_code == 422, answer.text
        return {problem["field"]: problem["message"] for problem in answer.json()["problems"]}


CODE = packed({"train.py": "import pliant.train\n"})


@pytest.fixture(scope="module")
def scene(module_server: Served) -> Iterator[Scene]:
    made = Scene(module_server)
    yield made
    for client in made.clients.values():
        client.close()


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [6, 5, 4, 3, 2, 1]),
        ("owner=ann", [5, 3, 1]),
        ("owner=ann,bob&queue=night", [4, 3]),
        ("queue=night&queue=default", [6, 5, 4, 3, 2, 1]),
        ("tag=lr%3D0.1", [3, 2, 1]),
        ("tag=lr", [6, 5, 4, 3, 2, 1]),
        ("tag=lr%3D0.1,lr%3D0.01&tag=best", [6, 5, 4, 3, 2]),
        ("tag=best%3D", [6, 5, 4, 3, 2]),
        ("tag=nobody-has-it", []),
        ("tag=lr%3D0.01&owner=bob&queue=default", [6]),
        ("owner=olga", []),
    ],
)
def test_what_is_asked_for_narrows_the_list_page_by_page(scene: Scene, query: str, numbers: list[int]) -> None:
    assert scene.ids(query) == [f"job-{number}" for number in numbers]


def test_states_can_be_asked_for_one_by_one_and_together(scene: Scene) -> None:
    every = {job["id"]: job["state"] for job in scene.clients["olga"].get("/jobs").json()["jobs"]}
    states = set(every.values())
    assert len(states) > 1
    for state in states:
        assert scene.ids(f"state={state}") == [job_id for job_id, found in every.items() if found == state]
    assert scene.ids(f"state={','.join(states)}") == list(every)
    ended = [job_id for job_id, state in every.items() if state in ("completed", "failed", "stopped")]
    assert scene.ids("state=ended") == ended
    assert scene.ids("state=waiting,ended") == [
        job_id for job_id, state in every.items() if job_id in ended or state in ("pending", "paused")
    ]


def test_what_there_is_not_is_refused_with_what_there_is(scene: Scene) -> None:
    found = scene.refusals("state=runing,nothing-like-it&owner=anne&queue=nihgt&tag=%3D5")
    assert found["state"].startswith("'nothing-like-it' is no state; give pending, starting, running, paused,")
    assert scene.refusals("state=runing")["state"].endswith("waiting or ended; is 'running' meant?")
    assert found["tag"] == "'=5' is no tag; give NAME or NAME=VALUE"
    found = scene.refusals("owner=anne&queue=nihgt")
    assert found == {
        "owner": "there is no user 'anne'; is 'ann' meant?",
        "queue": "there is no queue 'nihgt'; there are default, night; is 'night' meant?",
    }


def test_what_somebody_may_not_see_stays_unseen(scene: Scene) -> None:
    assert scene.ids("tag=lr", "ann") == ["job-5", "job-3", "job-1"]
    assert scene.ids("owner=ann", "ann") == ["job-5", "job-3", "job-1"]
    words = "has no job that you see; yours, and those shared with you, are all that you can list"
    for somebody in ("bob", "olga", "nobody"):
        assert scene.refusals(f"owner={somebody}", "ann") == {"owner": f"{somebody!r} {words}"}
    assert scene.ids("owner=eve", "eve") == scene.ids("tag=lr", "eve") == []
    try:
        shared = scene.server.http.put("/jobs/job-4/shares", json={"shared_with": ["ann"]})
        assert shared.is_success
        assert scene.ids("owner=bob", "ann") == ["job-4"]
        assert scene.ids("queue=night", "ann") == ["job-4", "job-3"]
    finally:
        scene.server.http.put("/jobs/job-4/shares", json={"shared_with": []})


def test_tags_are_in_every_answer_and_change_one_by_one(scene: Scene) -> None:
    tags = {"lr": 0.5, "batch": 32, "note": "größer = besser", "done": ""}
    made = scene.submit("ann", tags=tags).json()
    kept = {"lr": "0.5", "batch": "32", "note": "größer = besser", "done": ""}
    assert made["tags"] == made["spec"]["tags"] == kept
    ann = scene.clients["ann"]
    assert ann.get(f"/jobs/{made['id']}").json()["job"]["tags"] == kept
    changed = ann.patch(f"/jobs/{made['id']}", json={"tags": {"lr": "0.6", "note": None, "best": 1}})
    assert changed.json()["tags"] == {"lr": "0.6", "batch": "32", "done": "", "best": "1"}
    assert changed.json()["spec"]["tags"] == kept, "what was asked for stays"
    stale = ann.patch(f"/jobs/{made['id']}", json={"tags": {"x": ""}}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    assert ann.post(f"/jobs/{made['id']}/stop").is_success
    assert ann.delete(f"/jobs/{made['id']}").status_code == 204


@pytest.mark.parametrize(
    ("tags", "field", "told"),
    [
        ({"a b": "1"}, "tags.a b", "a name of letters, digits"),
        ({"": "1"}, "tags.", "it is empty"),
        ({"x" * 61: "1"}, f"tags.{'x' * 61}", "it has too many characters; give 60 at most"),
        ({"pliant.run": "1"}, "tags.pliant.run", "are Pliant's own"),
        ({"a": "1,2"}, "tags.a", "a text without ','"),
        ({"a": "x" * 201}, "tags.a", "give 200 at most"),
        ({"a": "one\ntwo"}, "tags.a", "which nobody sees"),
        ({"a": "\u202eevil"}, "tags.a", "RIGHT-TO-LEFT OVERRIDE"),
        ({"a": True}, "tags.a", "true is no text"),
        ({"a": [1]}, "tags.a", "a list is no text"),
        ({"a": 10**400}, "tags.a", ""),
        ({f"t{n}": "" for n in range(51)}, "tags", "50 at most"),
        (["a"], "tags", "a list is no object"),
    ],
)
def test_tags_that_cannot_be_kept_are_refused(scene: Scene, tags: object, field: str, told: str) -> None:
    refused = scene.submit("ann", tags=tags)
    assert refused.status_code == 422, refused.text
    found = {problem["field"]: problem["message"] for problem in refused.json()["problems"]}
    assert field in found, found
    assert told in found[field], found
