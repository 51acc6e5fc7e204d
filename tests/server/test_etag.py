"""Two people who change the same thing: who comes second is told, nothing is overwritten, both get their way."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Final

import httpx
import pytest
from tests.server.world import NAME, makes

from pliant.core.access import Role

Served = Any
Change = Callable[[httpx.Client, int, Mapping[str, str]], httpx.Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Something with a revision."""

    path: str
    change: Change
    """Changes it in one of two ways."""


def _json(method: str, path: str, *bodies: Mapping[str, Any]) -> Thing:
    return Thing(
        path=path,
        change=lambda http, number, headers: http.request(method, path, json=bodies[number], headers=headers),
    )


THINGS: Final = (
    "user",
    "resource group",
    "queue",
    "data set",
    "environment",
    "template",
    "model",
    "job",
    "shares of a job",
    "retention",
    "the queue default",
    "the group all",
)


@pytest.fixture(scope="module")
def things(module_server: Served) -> dict[str, Thing]:
    found = {
        "job": _json("PATCH", "/jobs/job-1", {"priority": 7}, {"priority": 8}),
        "shares of a job": _json("PUT", "/jobs/job-1/shares", {"shared_with": ["ada"]}, {"shared_with": ["*"]}),
        "retention": _json("PUT", "/retention", {"rules": [{"material": "logs", "max_age_days": 3}]}, {"rules": []}),
        "the queue default": _json("PATCH", "/queues/default", {"weight": 2}, {"weight": 3}),
        "the group all": _json("PATCH", "/resource-groups/all", {"description": "x"}, {"description": "y"}),
    }
    for make in makes(module_server):
        made = make.send(module_server.http)
        assert (made.status_code, "ETag" in made.headers) == (201, True), made.text
        if make.change is not None:
            found[make.kind] = Thing(path=make.one, change=make.send_change)
    submitted = module_server.submit()
    assert (submitted.status_code, "ETag" in submitted.headers) == (201, True)
    return found


@pytest.fixture
def two(module_server: Served) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    of = module_server.client_of
    with closing(of("one", Role.ADMIN)) as one, closing(of("two", Role.ADMIN)) as other:
        yield one, other


def settled(http: httpx.Client, path: str) -> httpx.Response:
    """Return a thing as it is once nothing else changes it: what was made is being checked for a moment."""
    while True:
        before, after = http.get(path), http.get(path)
        if before.headers["ETag"] == after.headers["ETag"] and "ing" not in str(after.json().get("state")):
            return after


@pytest.mark.parametrize("kind", THINGS)
def test_who_changes_what_somebody_else_has_changed_is_told_and_can_do_it_again(
    things: dict[str, Thing], two: tuple[httpx.Client, httpx.Client], kind: str
) -> None:
    thing, (one, other) = things[kind], two
    seen = {"If-Match": settled(one, thing.path).headers["ETag"]}
    first = thing.change(one, 0, seen)
    assert (first.status_code, first.headers["ETag"] != seen["If-Match"]) == (200, True), first.text
    changed = one.get(thing.path)
    assert changed.headers["ETag"] == first.headers["ETag"]
    second = thing.change(other, 1, seen)
    assert (second.status_code, second.json()["title"]) == (412, "Changed meanwhile")
    assert "read it again" in second.json()["detail"]
    assert one.get(thing.path).json() == changed.json()
    for wrong in ('"x"', "", "-1", '"1", "2"'):
        refused = thing.change(other, 1, {"If-Match": wrong})
        assert (refused.status_code, refused.json()["problems"][0]["field"]) == (422, "If-Match"), wrong
    assert one.get(thing.path).json() == changed.json()
    again = thing.change(other, 1, {"If-Match": other.get(thing.path).headers["ETag"]})
    assert again.status_code == 200, again.text
    assert again.headers["ETag"] == one.get(thing.path).headers["ETag"]
    assert thing.change(one, 0, {"If-Match": "*"}).status_code == 200


@pytest.mark.parametrize("kind", THINGS)
def test_of_two_who_change_a_thing_at_once_one_is_told(
    things: dict[str, Thing], two: tuple[httpx.Client, httpx.Client], kind: str
) -> None:
    thing, barrier = things[kind], Barrier(2)
    seen = {"If-Match": settled(two[0], thing.path).headers["ETag"]}

    def change(http: httpx.Client) -> int:
        barrier.wait(10)
        return thing.change(http, 1, seen).status_code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(change, two)) == [200, 412]


def test_what_somebody_else_has_changed_is_not_removed(
    module_server: Served, things: dict[str, Thing], two: tuple[httpx.Client, httpx.Client]
) -> None:
    """What is made of others goes first; in between nothing is used by anything."""
    assert things
    assert two[0].post(f"/models/{NAME}/trainings/{NAME}/stop").status_code == 200
    module_server.tick()
    for make in reversed(makes(module_server)):
        tag = settled(two[0], make.one).headers["ETag"]
        stale = f'"{int(tag.strip(chr(34))) + 1}"'
        refused = two[0].delete(make.one, headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["title"]) == (412, "Changed meanwhile"), make.kind
        assert two[0].delete(make.one, headers={"If-Match": "x"}).status_code == 422, make.kind
        assert two[0].get(make.one).headers["ETag"] == tag, make.kind
        assert two[0].delete(make.one, headers={"If-Match": tag}).status_code == 204, make.kind
        assert two[0].get(make.one).status_code == 404, make.kind
