"""Saved views of the list of jobs: each person has their own, on the server."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served

from pliant.client import Client
from pliant.client.nouns.people import PeopleClient
from pliant.core.access import Role
from pliant.core.errors import Stale
from pliant.core.saved_view import SavedViews

ONE = {"name": "mine, running", "query": "state=running&owner=ann"}
TWO = {"name": "<b>night</b>", "query": ""}


@pytest.fixture
def server(module_server: Served) -> Iterator[Served]:
    yield module_server
    for kept in module_server.store.registry.list(SavedViews):
        module_server.store.registry.remove(SavedViews, kept.noun.name)
    module_server.forget_people()


@pytest.fixture
def ann(server: Served) -> Iterator[httpx.Client]:
    with server.client_of("ann", Role.VIEWER) as client:
        yield client


def put(client: httpx.Client, *views: Any, revision: int | None = None) -> httpx.Response:
    headers = {} if revision is None else {"If-Match": f'"{revision}"'}
    return client.put("/me/views", json={"views": views}, headers=headers)


def test_views_are_kept_in_their_order_and_are_nobody_elses(server: Served, ann: httpx.Client) -> None:
    empty = ann.get("/me/views")
    assert (empty.json(), empty.headers["ETag"]) == ({"views": [], "revision": 0}, '"0"')
    saved = put(ann, ONE, TWO, revision=0)
    assert (saved.status_code, saved.json()) == (200, {"views": [ONE, TWO], "revision": 1})
    assert ann.get("/me/views").json() == saved.json()
    with server.client_of("bob", Role.ADMIN) as bob:
        assert bob.get("/me/views").json()["views"] == []
        assert put(bob, TWO).status_code == 200
    assert put(ann, TWO, ONE).json() == {"views": [TWO, ONE], "revision": 2}


def test_who_changes_what_was_changed_meanwhile_is_refused(ann: httpx.Client) -> None:
    assert put(ann, ONE, revision=3).status_code == 412  # there were none
    assert put(ann, ONE, revision=0).status_code == 200
    assert put(ann, TWO, revision=0).status_code == 412
    assert ann.get("/me/views").json()["views"] == [ONE]
    assert put(ann, TWO, revision=1).status_code == 200


@pytest.mark.parametrize(
    ("view", "field"),
    [
        ({"name": "", "query": ""}, "views.0.name"),
        ({"name": "x" * 61, "query": ""}, "views.0.name"),
        ({"name": "two\nlines", "query": ""}, "views.0.name"),
        ({"name": "x", "query": "q" * 2001}, "views.0.query"),
        ({"name": "x", "query": "a b"}, "views.0.query"),
        ({"name": "x", "query": "", "more": 1}, "views.0.more"),
        ({"name": "x"}, "views.0.query"),
    ],
)
def test_what_is_no_view_is_refused_with_its_place(ann: httpx.Client, view: dict[str, Any], field: str) -> None:
    refused = put(ann, view)
    assert refused.status_code == 422
    assert [problem["field"] for problem in refused.json()["problems"]] == [field]
    assert ann.get("/me/views").json()["revision"] == 0


def test_too_many_views_and_two_of_one_name_are_refused(ann: httpx.Client) -> None:
    many = [{"name": f"view {number}", "query": ""} for number in range(51)]
    assert put(ann, *many).status_code == 422
    assert put(ann, *many[:50]).status_code == 200
    twice = put(ann, ONE, TWO, ONE)
    assert [problem["field"] for problem in twice.json()["problems"]] == ["views.0.name", "views.2.name"]


def test_views_go_with_their_owner(server: Served, ann: httpx.Client) -> None:
    put(ann, ONE)
    assert server.http.delete("/users/ann").is_success
    with server.client_of("ann") as another:
        assert another.get("/me/views").json() == {"views": [], "revision": 0}


def test_who_is_not_logged_on_has_none(server: Served) -> None:
    with server.client({}) as stranger:
        assert stranger.get("/me/views").status_code == 401
        assert put(stranger, ONE).status_code == 401


def test_the_python_client_has_them_by_name(server: Served, ann: httpx.Client) -> None:
    token = ann.headers["Authorization"].removeprefix("Bearer ")
    with Client(f"http://{server.address}", token=token) as client:
        people: PeopleClient = client.people
        saved = people.save_views({"mine": "owner=ann", "all": ""})
        assert people.views() == saved
        assert [(view.name, view.query) for view in saved.views] == [("mine", "owner=ann"), ("all", "")]
        with pytest.raises(Stale):
            people.save_views({}, revision=saved.revision + 1)
