"""Everything is found by a part of its name, by those who see it."""

import httpx
import pytest
from tests.server.conftest import Served
from tests.server.world import makes

from pliant.core.access import Role


@pytest.fixture(scope="module")
def server(module_server: Served) -> Served:
    """A server with one of each noun, called `small`, and two jobs of the administrator."""
    for make in makes(module_server):
        assert make.send(module_server.http).status_code in (200, 201), make
    module_server.submit(name="small job")
    module_server.submit(name="Smaller")
    return module_server


def found(client: httpx.Client, text: str, **more: int) -> list[tuple[str, str]]:
    answer = client.get("/search", params={"q": text, **more})
    assert answer.status_code == 200, answer.text
    return [(one["kind"], one["id"]) for one in answer.json()["found"]]


def test_what_is_called_so_comes_before_what_begins_or_holds_it(server: Served) -> None:
    kinds = found(server.http, "small")
    assert {kind for kind, name in kinds[:5] if name == "small"} == {
        "model",
        "template",
        "dataset",
        "environment",
        "queue",
    }
    assert kinds[5:7] == [("job", "job-3"), ("job", "job-2")], "job-1 is the training of the model"
    assert found(server.http, "MALL", limit=2) == [("job", "job-3"), ("job", "job-2")]
    assert found(server.http, "job-2") == [("job", "job-2")]
    assert found(server.http, "loca") == [("machine", "local")]
    assert found(server.http, "ada") == [("user", "ada")]


def test_no_sign_stands_for_another(server: Served) -> None:
    assert found(server.http, "s%l") == found(server.http, "sm_ll") == found(server.http, ".*") == []
    for query in ("", "q=", f"q={'x' * 101}", "q=%00", "q=x&limit=0", "q=x&limit=101"):
        assert server.http.get(f"/search?{query}").status_code == 422, query


def test_people_find_what_they_see(server: Served) -> None:
    with server.client_of("ben", Role.USER) as ben:
        assert found(ben, "small") == [("queue", "small")]
        assert found(ben, "ada") == []
        server.http.put("/jobs/job-2/shares", json={"shared_with": ["ben"]})
        server.http.patch("/models/small", json={"shared_with": ["ben"]})
        assert found(ben, "small") == [("model", "small"), ("queue", "small"), ("job", "job-2")]
