"""The routes of endpoints: what is asked for reaches the use cases, and answers are what the description says."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served, packed

from pliant.core.access import Permission
from pliant.core.people import TokenSettings

MODEL = {"serve.py": "def load(): ...\n"}


@pytest.fixture(autouse=True)
def without_endpoints(module_server: Served) -> Iterator[None]:
    yield
    for shown in module_server.http.get("/endpoints").json()["endpoints"]:
        assert module_server.http.delete(f"/endpoints/{shown['name']}").status_code == 204
    module_server.forget_people()


def deploy(
    http: httpx.Client, name: str = "digits", files: Mapping[str, str] | None = None, **version: Any
) -> httpx.Response:
    parts: dict[str, Any] = {"version": (None, json.dumps(version)), "code": ("c.tar.gz", packed(files or MODEL))}
    return http.post(f"/endpoints/{name}/versions", files=parts)


def test_a_folder_is_deployed_shown_and_serves_when_it_is_loaded(module_server: Served) -> None:
    made = deploy(module_server.http, kernel_max=3, env={"HF_TOKEN": "hf_1", "A": "b"}, source="digits/")
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"'), made.text
    view = made.json()
    assert (view["state"], view["current"], view["kernel_max"], view["owner"]) == ("starting", None, 3, "admin")
    (version,) = view["versions"]
    assert (version["number"], version["state"], version["source"]) == (1, "starting", "digits/")
    assert version["env"] == {"HF_TOKEN": "(hidden)", "A": "b"}

    module_server.load_model("digits", {"platform": "python"})
    shown = module_server.http.get("/endpoints/digits")
    assert (shown.json()["state"], shown.json()["current"], shown.headers["ETag"]) == ("serving", 1, '"2"')
    assert module_server.http.get("/endpoints").json() == {"endpoints": [shown.json()], "next": None}


def test_what_a_later_deployment_leaves_out_stays(module_server: Served) -> None:
    deploy(module_server.http, kernel_max=3, batch_size=4, slots_per_task=2, env={"A": "b"}, memory_bytes=1 << 30)
    view = deploy(module_server.http, kernel_max=5, memory_bytes=None).json()
    assert (view["kernel_max"], view["batch_size"]) == (5, 4)
    first, second = view["versions"]
    assert (first["memory_bytes"], second["memory_bytes"]) == (1 << 30, None)
    assert (second["slots_per_task"], second["env"], second["number"]) == (2, {"A": "b"}, 2)


def test_a_trained_job_is_deployed_with_json_alone(module_server: Served) -> None:
    job_id = module_server.submit({"train.py": "import pliant\n"}, script="train.py").json()["id"]
    asked = {"job": job_id, "kernel_min": 1}
    early = module_server.http.post("/endpoints/digits/versions", json=asked)
    weights = module_server.control.settings.folders(job_id).weights
    Path(str(weights)).write_bytes(b"weights")
    made = module_server.http.post("/endpoints/digits/versions", json=asked)

    assert (early.status_code, f"{job_id} has saved no model yet" in early.text) == (404, True)
    assert made.status_code == 201, made.text
    view = made.json()
    assert (view["kernel_min"], view["versions"][0]["source"], view["versions"][0]["runner"]) == (1, job_id, "job")


def test_a_deployment_names_exactly_one_source(module_server: Served) -> None:
    nothing = module_server.http.post("/endpoints/digits/versions", json={})
    both = deploy(module_server.http, job="job-1")
    file = module_server.http.post("/endpoints/digits/versions", json={"job": "job-1", "file": "a.onnx"})
    for answer, field in ((nothing, "job"), (both, "job"), (file, "file")):
        assert (answer.status_code, answer.json()["problems"][0]["field"]) == (422, field), answer.text


def test_all_that_is_wrong_with_a_deployment_is_said_at_once_and_nothing_is_kept(module_server: Served) -> None:
    wrong = deploy(module_server.http, kernel_max=0, batch_size="8", colour="red")
    assert wrong.status_code == 422
    assert {one["field"] for one in wrong.json()["problems"]} == {"kernel_max", "batch_size", "colour"}
    clash = deploy(module_server.http, kernel_min=5, kernel_max=2)
    assert (clash.status_code, clash.json()["problems"][0]["field"]) == (422, "kernel_min")
    no_archive = module_server.http.post(
        "/endpoints/digits/versions", files={"version": (None, "{}"), "code": ("c.tar.gz", b"no archive")}
    )
    assert no_archive.status_code == 422
    assert module_server.http.get("/endpoints").json()["endpoints"] == []


@pytest.mark.parametrize("name", ["a%20b", "-a", "a" * 51, "a%E2%80%AEb"])
def test_no_endpoint_is_called_what_is_no_name(module_server: Served, name: str) -> None:
    refused = deploy(module_server.http, name)
    (problem,) = refused.json()["problems"]
    assert (refused.status_code, problem["field"]) == (422, "name")
    assert "letters, digits" in problem["message"]


def test_an_endpoint_is_changed_and_who_comes_second_is_told(module_server: Served) -> None:
    http = module_server.http
    tag = deploy(http).headers["ETag"]
    changed = http.patch("/endpoints/digits", json={"kernel_max": 7}, headers={"If-Match": tag})
    assert (changed.status_code, changed.json()["kernel_max"]) == (200, 7)
    late = http.patch("/endpoints/digits", json={"kernel_max": 8}, headers={"If-Match": tag})
    assert late.status_code == 412
    assert http.delete("/endpoints/digits", headers={"If-Match": tag}).status_code == 412
    assert http.patch("/endpoints/digits", json={}).status_code == 422
    assert http.get("/endpoints/digits").json()["kernel_max"] == 7


def test_an_endpoint_is_stopped_started_and_rolled_back(module_server: Served) -> None:
    http = module_server.http
    for _ in range(3):
        deploy(http)
        module_server.load_model("digits")
    assert http.post("/endpoints/digits/stop").json()["state"] == "stopped"
    assert http.post("/endpoints/digits/start").json()["started"] is True
    assert http.post("/endpoints/digits/rollback", json={}).json()["current"] == 3
    module_server.load_model("digits")
    assert http.get("/endpoints/digits").json()["current"] == 2
    assert http.post("/endpoints/digits/rollback", json={"number": 3}).status_code == 200
    module_server.load_model("digits")
    assert http.get("/endpoints/digits").json()["current"] == 3
    assert http.post("/endpoints/digits/rollback", json={"number": 9}).status_code == 409
    assert http.post("/endpoints/digits/rollback", json={"number": "2"}).status_code == 422
    split = http.post("/endpoints/digits/traffic", json={"traffic": {"2": 10, "3": 90}}).json()
    assert [one["traffic"] for one in split["versions"]] == [0, 0, 100]
    assert "version 2 is to take 10 % of the requests from version 3" in split["exchange"]
    for wrong in ({}, {"2": 101}, {"x": 100}, {"0": 100}, {"2": 50, "9": 50}, {"2": 99}, {"2": 50.5}):
        assert http.post("/endpoints/digits/traffic", json={"traffic": wrong}).status_code == 422, wrong


def test_people_see_their_own_endpoints_and_those_shared_with_them(module_server: Served) -> None:
    with closing(module_server.client_of("ada")) as ada, closing(module_server.client_of("bob")) as bob:
        assert deploy(ada).status_code == 201
        assert bob.get("/endpoints/digits").status_code == 404
        assert bob.get("/endpoints").json()["endpoints"] == []
        assert ada.patch("/endpoints/digits", json={"shared_with": ["bob"]}).status_code == 200
        assert bob.get("/endpoints/digits").json()["owner"] == "ada"
        for answer in (bob.post("/endpoints/digits/stop"), deploy(bob), bob.delete("/endpoints/digits")):
            assert answer.status_code == 403, answer.text
        assert "is 'digits' meant?" in ada.get("/endpoints/digit").json()["detail"]


def test_a_token_that_may_only_infer_is_shown_where_and_nothing_else(module_server: Served) -> None:
    settings = TokenSettings(label="app", scopes=frozenset({Permission.INFER}))
    with closing(module_server.client_of("ada")) as ada:
        for name in ("digits", "mnist"):
            assert deploy(ada, name).status_code == 201
        module_server.load_model("digits")
    narrow = replace(settings, endpoints=frozenset({"digits"}))
    for asked, seen in ((settings, ["digits", "mnist"]), (narrow, ["digits"])):
        token = module_server.people.credentials.make_token("ada", asked).text
        with module_server.client({"Authorization": f"Bearer {token}"}) as client:
            assert client.get("/endpoints").status_code == 403
            assert client.get("/endpoints/digits").status_code == 403
            assert client.get("/me").status_code == 403
            assert deploy(client).status_code == 403
            answers = {name: client.get(f"/endpoints/{name}/address") for name in ("digits", "mnist", "other")}
        assert [name for name, answer in answers.items() if answer.status_code == 200] == seen
        assert {answer.status_code for answer in answers.values()} == {200, 404}
        assert set(answers["digits"].json()) == {"name", "http_url", "grpc_address", "gateways", "ready", "inputs"}
        if len(seen) == 1:
            others = [answers[name].json()["detail"].replace(name, "NAME") for name in ("mnist", "other")]
            assert others[0] == others[1], "what is outside is as if it were not there"


def test_a_token_is_made_for_endpoints_that_its_owner_sees(module_server: Served) -> None:
    scope = {"label": "app", "scopes": ["infer"]}
    with closing(module_server.client_of("ada")) as ada, closing(module_server.client_of("bob")) as bob:
        for name, http in (("ada", ada), ("bob", bob)):
            session = module_server.people.credentials.open_session(name).text
            http.headers["Authorization"] = f"Bearer {session}"  # a token makes no tokens
        assert deploy(ada).status_code == 201
        hidden = bob.post("/tokens", json=scope | {"endpoints": ["digits"]})
        assert (hidden.status_code, "there is no endpoint 'digits'" in hidden.text) == (422, True)
        refused = ada.post("/tokens", json=scope | {"endpoints": ["digit", "mnist", "digits"]})
        assert (refused.status_code, "is 'digits' meant?" in refused.text, "mnist" in refused.text) == (422, True, True)
        for wrong in ([], ["a/b"], "digits", [f"e{number}" for number in range(101)]):
            assert ada.post("/tokens", json=scope | {"endpoints": wrong}).status_code == 422, wrong
        for limit in ({"max_rate": 0}, {"max_rate": "x"}, {"max_concurrent": 0}, {"max_concurrent": 1.5}):
            assert ada.post("/tokens", json=scope | limit).status_code == 422, limit
        made = ada.post("/tokens", json=scope | {"endpoints": ["digits"], "max_rate": 0.5, "max_concurrent": 3})
        info = made.json()["info"]
        assert (info["endpoints"], info["max_rate"], info["max_concurrent"]) == (["digits"], 0.5, 3)


def test_endpoints_come_in_pages(module_server: Served) -> None:
    for name in ("a", "b", "c"):
        deploy(module_server.http, name)
    first = module_server.http.get("/endpoints", params={"limit": 2}).json()
    assert ([one["name"] for one in first["endpoints"]], first["next"]) == (["a", "b"], "b")
    rest = module_server.http.get("/endpoints", params={"after": "b"}).json()
    assert ([one["name"] for one in rest["endpoints"]], rest["next"]) == (["c"], None)
