"""Whose jobs somebody sees: their own and those shared with them, at every route and for as long as an answer lasts."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import PASSWORD, Served, packed

from pliant.control.requests.sharing import sharing_of
from pliant.core.access import Role
from pliant.core.event import FOR_PROGRAMS
from pliant.core.job import JobId
from pliant.core.ports import Writes
from pliant.core.tensor_histogram import JobHistograms, TensorHistogram
from pliant.server.app import make_routes
from pliant.server.middleware.authorisation import declared_access
from pliant.server.stream_access import RECHECK_S

JOB_ROUTES = sorted(route for route in declared_access(make_routes()) if route[1].startswith("/v1/jobs/{job_id}"))
CHANGES = [("PATCH", ""), ("DELETE", ""), ("POST", "/stop"), ("GET", "/shares"), ("PUT", "/shares")]
PATIENCE_S = RECHECK_S + 20.0
HISTOGRAM = TensorHistogram(name="weights/fc1", step=1, epoch=0, at=1.0, lowest=0.0, highest=1.0, counts=(3, 4))


class People:
    """Clients of four people, and a job of ann's that runs and one of bob's that waits."""

    def __init__(self, server: Served) -> None:
        self.server = server
        roles = {"ann": Role.USER, "bob": Role.USER, "eve": Role.VIEWER, "olga": Role.OPERATOR}
        self.clients = {name: server.client_of(name, role) for name, role in roles.items()}
        self.job = self.submit("ann", max_tasks=4, min_tasks=3)
        self.other = self.submit("bob", max_tasks=4, min_tasks=2)
        server.tick()
        (task, *_) = self.clients["ann"].get(f"/jobs/{self.job}").json()["tasks"]
        self.task = task["id"]
        folders = server.control.settings.folders(JobId(self.job))
        self.log = Path(str(folders.log(task["id"], task["node_id"]))) / "stdout"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("one\n")
        histograms = (JobHistograms(job_id=JobId(self.job), histograms=(HISTOGRAM,)),)
        server.store.write(Writes(histograms=histograms))

    def submit(self, name: str, **job: object) -> str:
        response = self.try_submit(name, **job)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def try_submit(self, name: str, **job: object) -> httpx.Response:
        body = json.dumps({"script": "train.py", **job})
        code = ("c.tar.gz", packed({"train.py": "print()"}))
        files: dict[str, Any] = {"job": (None, body), "code": code}
        return self.clients[name].post("/jobs", files=files)

    def share(self, job_id: str, *names: str) -> httpx.Response:
        response = self.server.http.put(f"/jobs/{job_id}/shares", json={"shared_with": list(names)})
        assert response.status_code == 200, response.text
        return response

    def url(self, path: str, job_id: str | None = None) -> str:
        file = self.log.relative_to(self.log.parents[2]).as_posix()
        names = {
            "job_id": job_id or self.job,
            "task_id": self.task,
            "stream": "stdout",
            "path": file,
            "name": HISTOGRAM.name,
        }
        asked = "?text=one" if path.endswith("/find") else ""
        return path.removeprefix("/v1").replace(":path}", "}").format(**names) + asked


@pytest.fixture(scope="module")
def of_module(module_server: Served) -> Iterator[People]:
    people = People(module_server)
    yield people
    for client in people.clients.values():
        client.close()


@pytest.fixture
def people(of_module: People) -> Iterator[People]:
    yield of_module
    for job_id in (of_module.job, of_module.other):
        of_module.share(job_id)


def problems(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 422, response.text
    return {problem["field"]: problem["message"] for problem in response.json()["problems"]}


@pytest.mark.parametrize(("method", "path"), JOB_ROUTES)
def test_a_job_of_somebody_else_is_one_that_does_not_exist(people: People, method: str, path: str) -> None:
    for name in ("bob", "eve"):
        client = people.clients[name]
        hidden = client.request(method, people.url(path), json={"nothing": 1})
        missing = client.request(method, people.url(path, "job-999"), json={"nothing": 1})
        if hidden.status_code == 403:  # a viewer changes no job at all
            assert (name, missing.status_code) == ("eve", 403)
            continue
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text == missing.text.replace("job-999", people.job)
    for client in (people.server.http, people.clients["ann"], people.clients["olga"]):
        seen = client.request(method, people.url(path), json={"nothing": 1})
        assert seen.status_code in ((200,) if method == "GET" else (200, 409, 422)), seen.text


@pytest.mark.parametrize(("method", "path"), [route for route in JOB_ROUTES if route[0] == "GET"])
def test_who_it_is_shared_with_reads_it(people: People, method: str, path: str) -> None:
    if path.endswith("/shares"):
        return
    people.share(people.job, "bob", "eve")
    for name in ("bob", "eve"):
        assert people.clients[name].get(people.url(path)).status_code == 200
    people.share(people.job, "*")
    assert people.clients["bob"].get(people.url(path)).status_code == 200
    people.share(people.job, "eve")
    assert people.clients["bob"].get(people.url(path)).status_code == 404


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_who_it_is_shared_with_changes_nothing(people: People, method: str, path: str) -> None:
    people.share(people.job, "bob")
    body = {"priority": 7} if method == "PATCH" else {"shared_with": ["bob", "eve"]}
    refused = people.clients["bob"].request(method, f"/jobs/{people.job}{path}", json=body)
    assert refused.status_code == 403
    assert "only shared with you; ask ann to change it" in refused.json()["detail"]
    assert people.clients["ann"].get(f"/jobs/{people.job}").json()["job"]["priority"] == 5000


def test_an_operator_changes_everybodys_jobs(people: People) -> None:
    for name in ("olga", "ann"):
        assert people.clients[name].patch(f"/jobs/{people.job}", json={"priority": 5000}).status_code == 200


def test_lists_hold_what_one_sees_in_pages(people: People) -> None:
    more = [people.submit(name, min_tasks=4, max_tasks=4) for name in ("bob", "ann", "bob", "ann", "ann")]
    people.share(more[1], "bob")
    people.share(more[4], "*")
    expected = [more[4], more[2], more[1], more[0], people.other]
    for limit in (1, 2, 3, 100):
        found: list[str] = []
        params: dict[str, Any] = {"limit": limit}
        while True:
            page = people.clients["bob"].get("/jobs", params=params).json()
            found += [job["id"] for job in page["jobs"]]
            if page["next"] is None:
                break
            params["before"] = page["next"]
        assert found == expected, limit
    pending = people.clients["bob"].get("/jobs", params={"state": ["completed", "failed"]}).json()
    assert pending == {"jobs": [], "next": None, "total": 0}
    assert people.clients["bob"].get("/jobs", params={"before": people.job}).status_code == 404
    assert [job["id"] for job in people.clients["eve"].get("/jobs").json()["jobs"]] == [more[4]]
    assert len(people.clients["olga"].get("/jobs").json()["jobs"]) >= 7
    for job_id in more:
        people.server.http.post(f"/jobs/{job_id}/stop")
        people.share(job_id)


def events(client: httpx.Client, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        page = client.get("/events", params={"after": after, "limit": 3, **params}).json()
        if not page["events"]:
            return found
        found += page["events"]
        after = page["last"]


def test_events_are_those_of_the_server_and_of_jobs_one_sees(people: People) -> None:
    def events_for_people(client: httpx.Client) -> list[dict[str, Any]]:
        return [event for event in events(client) if event["kind"] not in FOR_PROGRAMS]

    clients = (people.clients["ann"], people.clients["eve"], people.server.http)
    ann, eve, all_of_them = map(events_for_people, clients)
    assert {event["job_id"] for event in eve} == {None}
    assert people.other not in {event["job_id"] for event in ann}
    assert {None, people.job, people.other} <= {event["job_id"] for event in all_of_them}
    assert [e for e in all_of_them if e["job_id"] is None] == eve
    people.share(people.other, "ann")
    assert [e for e in events_for_people(people.clients["ann"]) if e not in ann] == [
        e for e in all_of_them if e["job_id"] == people.other
    ]
    assert people.clients["eve"].get("/events", params={"job_id": people.job}).status_code == 404
    assert {e["job_id"] for e in events(people.clients["ann"], job_id=people.job)} == {people.job}


def test_usage_is_that_of_jobs_one_sees(people: People) -> None:
    def jobs(client: httpx.Client) -> set[str]:
        return {point["job_id"] for point in client.get("/usage").json()["points"]}

    assert jobs(people.clients["ann"]) == {people.job}
    assert jobs(people.clients["bob"]) == set()
    assert people.clients["bob"].get("/usage", params={"job_id": people.job}).status_code == 404
    people.share(people.job, "bob")
    assert jobs(people.clients["bob"]) == {people.job}


def test_the_cluster_shows_what_is_taken_and_by_whom_only_to_who_sees_the_job(people: People) -> None:
    def slots(client: httpx.Client) -> list[tuple[bool, str | None, bool]]:
        found = client.get("/cluster").json()["slots"]
        return [(slot["taken"], slot["job_id"], slot["task_id"] is None) for slot in found]

    assert slots(people.clients["ann"]) == [(True, people.job, False)] * 3 + [(False, None, True)]
    assert slots(people.clients["bob"]) == [(True, None, True)] * 3 + [(False, None, True)]
    people.share(people.job, "*")
    assert slots(people.clients["eve"]) == slots(people.server.http)


def test_what_one_starts_from_must_be_ones_own_to_see(people: People) -> None:
    folders = people.server.control.settings.folders(JobId(people.job))
    Path(str(folders.weights)).write_bytes(b"weights")
    checkpoints = Path(str(folders.checkpoints))
    checkpoints.mkdir(exist_ok=True)
    (checkpoints / "step-000000000001.ckpt").write_bytes(b"checkpoint")
    for weights in (people.job, str(folders.weights)):
        said = problems(people.try_submit("bob", weights=weights, min_tasks=4, max_tasks=4, data_dir=str(folders.code)))
        assert set(said) == {"weights", "data_dir"}
        assert "there is no file" in said["weights"]
    unseen = problems(people.try_submit("bob", resume_from=people.job))["resume_from"]
    missing = problems(people.try_submit("bob", resume_from="job-999"))["resume_from"]
    assert unseen == missing.replace("job-999", people.job)
    people.share(people.job, "bob")
    started = people.submit("bob", weights=people.job, min_tasks=4, max_tasks=4)
    people.server.http.post(f"/jobs/{started}/stop")
    assert people.try_submit("bob", resume_from=str(folders.checkpoints)).status_code == 201


def test_sharing_refuses_all_unknown_names_at_once(people: People) -> None:
    ann = people.clients["ann"]
    body = {"shared_with": ["bob", "nobody", "ann", "Unknown", "*"]}
    said = problems(ann.put(f"/jobs/{people.job}/shares", json=body))
    assert said == {
        "shared_with.1": "no user is named 'nobody'; ask them for their name",
        "shared_with.2": f"'ann' owns {people.job} and sees it anyway; leave it out",
        "shared_with.3": "no user is named 'Unknown'; ask them for their name",
    }
    assert set(problems(ann.put(f"/jobs/{people.job}/shares", json={"with": 1}))) == {"shared_with", "with"}
    assert people.clients["bob"].get(f"/jobs/{people.job}").status_code == 404


def test_two_who_share_a_job_at_the_same_time_do_not_undo_each_other(people: People) -> None:
    job_id = people.submit("ann", min_tasks=4, max_tasks=4)
    ann, path = people.clients["ann"], f"/jobs/{job_id}/shares"
    first = ann.get(path)
    assert (first.json()["shared_with"], first.json()["revision"], first.headers["etag"]) == ([], 0, '"0"')
    match = {"If-Match": first.headers["etag"]}
    shared = ann.put(path, json={"shared_with": ["bob", "bob"]}, headers=match)
    assert (shared.json()["shared_with"], shared.headers["etag"]) == (["bob"], '"1"')
    stale = ann.put(path, json={"shared_with": ["eve"]}, headers=match)
    assert (stale.status_code, ann.get(path).json()["shared_with"]) == (412, ["bob"])
    again = ann.put(path, json={"shared_with": ["eve"]}, headers={"If-Match": '"1"'})
    assert (again.json()["revision"], again.json()["owner"]) == (2, "ann")
    assert ann.put(path, json={"shared_with": []}, headers={"If-Match": "x"}).status_code == 422
    people.server.http.post(f"/jobs/{job_id}/stop")


def read(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream as they come."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def change(people: People, job_id: str) -> None:
    """Make an event of a job."""
    job = people.server.http.get(f"/jobs/{job_id}").json()["job"]
    people.server.http.patch(f"/jobs/{job_id}", json={"priority": 5000 + (job["priority"] == 5000)})


def last_event(people: People) -> int:
    return people.server.store.last_seq()


def test_a_stream_tells_of_a_job_from_when_it_is_shared_until_it_is_not(people: People) -> None:
    params = {"after": last_event(people)}
    with people.clients["bob"].stream("GET", "/events/stream", params=params) as response:
        told = (event for event in read(response) if event["kind"] not in FOR_PROGRAMS)
        change(people, people.job)
        change(people, people.other)
        assert next(told)["job_id"] == people.other
        people.share(people.job, "bob")
        change(people, people.job)
        assert next(told)["job_id"] == people.job
        people.share(people.job)
        change(people, people.job)
        change(people, people.other)
        assert next(told)["job_id"] == people.other


def drain(response: httpx.Response) -> None:
    """Read an answer to its end, which must come soon."""
    start = time.monotonic()
    for _ in response.iter_raw():
        assert time.monotonic() - start < PATIENCE_S


def test_a_stream_of_a_job_ends_when_it_is_not_shared_any_more(people: People) -> None:
    people.share(people.job, "bob")
    params: dict[str, Any] = {"after": last_event(people), "job_id": people.job}
    with people.clients["bob"].stream("GET", "/events/stream", params=params) as response:
        told = read(response)
        change(people, people.job)
        assert next(told)["job_id"] == people.job
        people.share(people.job)
        assert list(told) == []


def test_a_log_that_is_followed_ends_when_the_job_is_not_shared_any_more(people: People) -> None:
    people.share(people.job, "bob")
    path = f"/jobs/{people.job}/logs/{people.task}/stdout?follow=true"
    with people.clients["bob"].stream("GET", path) as response:
        chunks = response.iter_text()
        assert next(chunks) == "one\n"
        people.share(people.job)
        assert list(chunks) == []


def session(people: People, name: str) -> httpx.Client:
    with people.server.client() as client:
        token = client.post("/logon", json={"name": name, "password": PASSWORD}).json()["token"]
    return people.server.client({"Authorization": f"Bearer {token}"})


def test_streams_end_with_what_opened_them(people: People) -> None:
    """One wait for all: a session that is ended, one of a disabled user, a token that is revoked, a password."""
    server = people.server
    server.add_user("dan")
    server.add_user("fay")
    ann, dan = session(people, "ann"), session(people, "dan")
    basic = server.client()
    basic.auth = httpx.BasicAuth("fay", PASSWORD)
    made = ann.post("/tokens", json={"label": "x"}).json()
    token = server.client({"X-Auth-Token": made["token"]})
    follow = f"/jobs/{people.job}/logs/{people.task}/stdout?follow=true"
    asked = [
        (ann, "/events/stream"),
        (ann, follow),
        (dan, "/events/stream"),
        (token, follow),
        (basic, "/events/stream"),
    ]
    open_ones = [client.send(client.build_request("GET", path), stream=True) for client, path in asked]
    try:
        assert [response.status_code for response in open_ones] == [200] * 5
        assert ann.post("/logoff").status_code == 204
        server.clock.advance(1.0)
        server.http.patch("/users/dan", json={"active": False})
        server.http.delete(f"/tokens/{made['info']['id']}")
        server.http.patch("/users/fay", json={"password": "another password"})
        for response in open_ones:
            drain(response)
    finally:
        for response in open_ones:
            response.close()
        for client in (ann, dan, basic, token):
            client.close()


def test_a_stream_ends_when_its_session_expires(people: People) -> None:
    ann = session(people, "ann")
    with ann.stream("GET", "/events/stream") as response:
        told = read(response)
        next(told)
        people.server.clock.advance(8 * 3600.0 + 1)
        assert len(list(told)) < 1000
    assert ann.get("/me").status_code == 401
    ann.close()


def test_shares_outlive_the_server(people: People) -> None:
    people.share(people.job, "bob", "*")
    registry, knows = people.server.store.registry, people.server.people.authenticator.has_user
    again = sharing_of(registry, people.server.clock, knows)
    assert again.of(people.server.control.queries.job(people.job))[0].shared_with == ("bob", "*")
