"""Names and descriptions that would mislead whoever reads them are refused, in words, at every route that takes one."""

import json
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served
from tests.server.world import Make, code, makes

OVERRIDE = "U+202E (RIGHT-TO-LEFT OVERRIDE)"


@pytest.fixture(scope="module")
def every(module_server: Served) -> dict[str, Make]:
    found = {make.kind: make for make in makes(module_server)}
    for make in found.values():
        assert make.send(module_server.http).is_success, make.kind
    return found


def submit(server: Served, **job: Any) -> httpx.Response:
    files: dict[str, Any] = {"job": (None, json.dumps({"script": "train.py", **job})), "code": ("c.tar.gz", code())}
    return server.http.post("/jobs", files=files)


@pytest.mark.parametrize("name", ["gpj.\u202eexe", "two\nlines", "bell\x07", "joined\u200d"])
def test_a_job_is_not_called_what_misleads(module_server: Served, name: str) -> None:
    answer = submit(module_server, name=name)
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["field"] == "name"


def test_it_is_told_which_character_it_is(module_server: Served) -> None:
    (problem,) = submit(module_server, name="gpj.\u202eexe").json()["problems"]
    assert f"it holds {OVERRIDE}" in problem["message"]
    assert "\u202e" not in problem["message"], "what is shown of it is escaped"
    for field in ("script", "environment"):
        assert OVERRIDE in submit(module_server, **{field: "a\u202eb.py"}).text


@pytest.mark.parametrize("kind", ["resource group", "queue", "data set", "template", "model", "training", "user"])
def test_no_noun_is_called_what_misleads(module_server: Served, every: dict[str, Make], kind: str) -> None:
    make = every[kind]
    for name in ("a\u202eb", "a\nb", "a\x00b", "ａ"):
        body = {**make.body, "name": name}
        answer = Make(kind=make.kind, path=make.path, body=body, part=make.part).send(module_server.http)
        assert answer.status_code == 422, (kind, name, answer.text)


@pytest.mark.parametrize(
    "kind", ["resource group", "queue", "data set", "environment", "template", "model", "training"]
)
def test_no_two_nouns_differ_only_by_capital_letters(module_server: Served, every: dict[str, Make], kind: str) -> None:
    make = every[kind]
    for name in ("Small", "SMALL"):
        body = {**make.body, "name": name}
        answer = Make(kind=make.kind, path=make.path, body=body, part=make.part).send(module_server.http)
        assert answer.status_code == 409, (kind, answer.text)
        assert "only by capital letters" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["resource group", "queue", "data set", "template", "model"])
def test_no_description_misleads(module_server: Served, every: dict[str, Make], kind: str) -> None:
    make = every[kind]
    body = {**make.body, "name": "other", "description": "safe\u202e.exe"}
    answer = Make(kind=make.kind, path=make.path, body=body, part=make.part).send(module_server.http)
    assert answer.status_code == 422
    assert OVERRIDE in answer.text


def test_a_description_may_have_lines(module_server: Served, every: dict[str, Make]) -> None:
    answer = module_server.http.patch(every["data set"].one, json={"description": "one\n\ttwo"})
    assert answer.status_code == 200
    assert answer.json()["description"] == "one\n\ttwo"


def test_no_token_is_labelled_with_what_misleads(module_server: Served) -> None:
    module_server.add_user("bea")
    session = module_server.people.credentials.open_session("bea").text
    with module_server.client({"Authorization": f"Bearer {session}"}) as client:
        answer = client.post("/tokens", json={"label": "ci\u202e"})
    assert answer.status_code == 422
    assert OVERRIDE in answer.text
