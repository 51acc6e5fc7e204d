"""Who reads of changes of data sets, models and the like: whoever may read the noun itself, then."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import httpx
import pytest
from tests.server.conftest import Served, wait_for
from tests.server.test_events import read
from tests.server.world import NAME, Make, makes

from pliant.core.access import Permission, Role
from pliant.core.people import TokenSettings

ROLES: Final = {"ann": Role.USER, "bob": Role.USER, "eve": Role.VIEWER, "olga": Role.OPERATOR, "root": Role.ADMIN}
KINDS: Final = ("data set", "environment", "template", "model")
EVENTS: Final = {
    "data set": "dataset.changed",
    "environment": "environment.changed",
    "template": "template.changed",
    "model": "model.changed",
}
SHARES: Final = ((), ("bob",), ("bob", "eve"), ("eve",), ("*",), ())


def share(make: Make, http: httpx.Client, names: tuple[str, ...]) -> None:
    """Let these people see a noun, and nobody else."""
    given = {"shared_with": list(names)}
    if make.kind == "environment":
        answer = http.put(f"{make.one}/shares", json=given)
    elif make.kind == "template":
        answer = Make(
            kind=make.kind,
            path=make.path,
            body=make.body,
            part=make.part,
            change=("PUT", "", {**make.body, **given}, {}),
        ).send_change(http, 0, {})
    else:
        answer = http.patch(make.one, json=given)
    assert answer.is_success, answer.text


class World:
    """Clients of people in every role, and nouns of ann's."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.clients: Mapping[str, httpx.Client] = {name: server.client_of(name, role) for name, role in ROLES.items()}
        self.makes = {make.kind: make for make in makes(server) if make.kind in KINDS}
        for make in self.makes.values():
            answer = make.send(self.clients["ann"])
            assert answer.is_success, answer.text
        data, environment = (self.makes[kind].one for kind in ("data set", "environment"))
        wait_for(lambda: self.clients["ann"].get(data).json()["state"] == "ready")
        wait_for(lambda: self.clients["ann"].get(environment).json()["state"] != "building")

    def last(self) -> int:
        return self.server.store.last_seq()

    def read_by(self, name: str, after: int) -> list[dict[str, Any]]:
        answer = self.clients[name].get("/events", params={"after": after})
        assert answer.status_code == 200, answer.text
        events: list[dict[str, Any]] = answer.json()["events"]
        return events


@pytest.fixture(scope="module")
def world(module_server: Served) -> Iterator[World]:
    made = World(module_server)
    yield made
    for client in made.clients.values():
        client.close()


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_may_get_a_noun_reads_of_its_changes_and_nobody_else(world: World, kind: str) -> None:
    make = world.makes[kind]
    for names in SHARES:
        before = world.last()
        saw = {name for name, client in world.clients.items() if client.get(make.one).status_code == 200}
        share(make, world.clients["ann"], names)
        for name, client in world.clients.items():
            events = [event for event in world.read_by(name, before) if event["kind"] == EVENTS[kind]]
            named = [event for event in events if NAME in json.dumps(event)]
            sees = client.get(make.one).status_code == 200
            assert bool(named) == sees, (kind, names, name, events)
            assert sees or bool(events) == (name in saw), (kind, names, name, events)


def test_a_removed_noun_is_named_to_nobody_who_does_not_see_all(world: World) -> None:
    gone = replace(world.makes["template"], body={"name": "gone"})
    assert gone.send(world.clients["ann"]).is_success
    share(gone, world.clients["ann"], ("bob",))
    before = world.last()
    assert world.clients["ann"].delete(gone.one).is_success
    read = {name: world.read_by(name, before) for name in ROLES}
    named = {name for name, events in read.items() if "gone" in json.dumps(events)}
    assert (named, read["eve"]) == ({"olga", "root"}, [])
    for name in ("ann", "bob"):
        (event,) = read[name]
        assert (event["kind"], event["data"], event["job_id"]) == ("template.changed", {}, None)


@pytest.mark.parametrize("name", ["ann", "root"])
def test_a_token_that_may_not_read_nouns_reads_nothing_of_them(world: World, name: str) -> None:
    jobs, data = Permission.JOBS_READ, Permission.DATA_READ
    with _with_token(world, name, jobs) as limited, _with_token(world, name, jobs, data) as wide:
        kinds = [{event["kind"] for event in http.get("/events").json()["events"]} for http in (limited, wide)]
        nouns = [{kind for kind in found if kind in EVENTS.values()} for found in kinds]
        assert nouns == [set(), {"dataset.changed"}]
        with limited.stream("GET", "/events/stream") as response:
            events = read(response)
            before = world.last()
            share(world.makes["data set"], world.clients["ann"], ())
            group = {"name": f"group-{name}", "hosts": {"all": True}}
            assert world.server.http.post("/resource-groups", json=group).is_success
            assert int(next(event["id"] for event in events if int(event["id"]) > before)) > before + 1


def _with_token(world: World, name: str, *scopes: Permission) -> httpx.Client:
    made = world.server.people.credentials.make_token(name, TokenSettings(label="events", scopes=frozenset(scopes)))
    return world.server.client({"Authorization": f"Bearer {made.text}"})


def test_a_stream_says_what_is_shared_and_that_something_is_gone(world: World) -> None:
    make = world.makes["data set"]
    share(make, world.clients["ann"], ())
    with world.clients["bob"].stream("GET", f"/events/stream?after={world.last()}") as response:
        events = read(response)
        share(make, world.clients["ann"], ("bob",))
        assert json.loads(next(events)["data"])["data"] == {"name": NAME}
        share(make, world.clients["ann"], ())
        gone = next(events)
        assert (gone["event"], json.loads(gone["data"])["data"]) == ("dataset.changed", {})


def test_who_gets_a_share_of_a_job_is_told_so(world: World) -> None:
    job_id = world.server.submit().json()["id"]
    owner = world.server.http
    with world.clients["bob"].stream("GET", f"/events/stream?after={world.last()}") as response:
        events = read(response)
        assert owner.put(f"/jobs/{job_id}/shares", json={"shared_with": ["bob"]}).is_success
        given = json.loads(next(events)["data"])
        assert (given["kind"], given["job_id"]) == ("share.changed", job_id)
        assert owner.put(f"/jobs/{job_id}/shares", json={"shared_with": []}).is_success
        taken = json.loads(next(events)["data"])
        assert (taken["kind"], taken["job_id"], taken["data"]) == ("share.changed", None, {})


def test_uploads_are_told_to_whose_they_are_and_not_for_every_chunk(world: World) -> None:
    ann, before = world.clients["ann"], world.last()
    upload = ann.post("/uploads", json={"num_bytes": 40}).json()

    def said() -> list[int]:
        return [event["seq"] for event in world.read_by("ann", before) if event["kind"] == "upload.changed"]

    def send(offset: int, number: int) -> None:
        sent = ann.put(f"/uploads/{upload['id']}", params={"offset": offset}, content=b"x" * number)
        assert sent.is_success, sent.text

    begun = said()
    send(0, 10)
    first = said()
    send(10, 10)
    send(20, 10)
    assert (len(begun), len(first), said()) == (1, 1, first)
    assert first > begun
    send(30, 10)  # the last one is always said
    assert said() > first
    root = world.clients["root"]
    assert root.post("/uploads", json={"num_bytes": 1}).is_success
    assert [event["kind"] for event in world.read_by("root", said()[0])] == ["upload.changed"]
    for name in ("bob", "olga"):
        assert "upload.changed" not in {event["kind"] for event in world.read_by(name, before)}


def changes(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (event for event in events if event["kind"] == "slots.changed")


def test_of_slots_that_others_hold_one_reads_how_many_and_nothing_of_whose(server: Served) -> None:
    with server.client_of("bob") as bob, server.client_of("olga", Role.OPERATOR) as olga:
        secret = server.submit(name="secret-name", min_tasks=3, max_tasks=3, tags={"of": "secret-tag"}).json()["id"]
        server.tick()
        for path in ("/events", "/events?order=newest", "/events?kind=slots.changed"):
            answer = bob.get(path).json()
            (event,) = changes(answer["events"])
            assert event.keys() == {"seq", "at", "kind", "message", "job_id", "task_id", "data"}
            assert (event["data"], event["job_id"], event["task_id"]) == ({"change": 3}, None, None)
            assert not any(hidden in json.dumps(event) for hidden in (secret, "secret", "admin"))
        slots = bob.get("/cluster").json()["slots"]
        taken = [slot for slot in slots if slot["taken"] and slot["job_id"] is None]
        assert sum(event["data"]["change"] for event in changes(bob.get("/events").json()["events"])) == len(taken)
        (whole,) = changes(olga.get("/events").json()["events"])
        assert (whole["job_id"], whole["data"]["name"]) == (secret, "secret-name")
        with bob.stream("GET", "/events/stream?after=0") as response:
            streamed = next(event for event in read(response) if event["event"] == "slots.changed")
            assert json.loads(streamed["data"])["data"] == {"change": 3}
        assert bob.get("/events", params={"job_id": secret}).status_code == 404
