"""Algorithms over REST and by the client, on a real server whose processes of algorithms are the real ones."""

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest
from tests.server.conftest import Served
from tests.server.world import code

from pliant.core.access import Role
from pliant.core.search import SearchState

RANDOM: Final = """
import os
import numpy
from plugins.core.base_plugin_opt import BasePluginOptimizer
from plugins.core.logger import logger


class PluginOptimizer(BasePluginOptimizer):
    def __init__(self, name, hyper_parameters, **kwargs):
        super().__init__(name, hyper_parameters, **kwargs)
        self.hyper_parameters, self.scale = hyper_parameters, float(kwargs.get("scale", "1"))
        self.num = 0

    def search(self, number_samples, last_exp_results=None):
        self.num += 1
        if self.num > 2:
            return []
        logger.info("asked %d times, scale %s", self.num, self.scale)
        print("in", os.path.expanduser("~"))
        return [{one["name"]: self.scale * self.num / 100 for one in self.hyper_parameters}]
"""
SAMPLER: Final = """
from optuna.samplers import RandomSampler


def make_sampler(seed, **options):
    return RandomSampler(seed=seed)
"""
SEARCH: Final[dict[str, Any]] = {
    "name": "lr-search",
    "script": "train.py",
    "parameters": {"lr": {"kind": "float", "low": 0.0, "high": 0.1}},
    "objectives": [{"metric": "val_loss", "direction": "minimize"}],
    "parallel": 4,
}


def packed(**files: str) -> bytes:
    """Return a tar.gz of Python files, by their names without the ending."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{name}.py")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def send(
    http: httpx.Client, archive: bytes, path: str = "", headers: dict[str, str] | None = None, **settings: object
) -> httpx.Response:
    """Install an algorithm, or a new version of the one at a path."""
    files: dict[str, Any] = {"code": ("c.tar.gz", archive)}
    if settings:
        files["settings"] = (None, json.dumps(settings))
    return http.request("PUT" if path else "POST", f"/algorithms{path}", files=files, headers=headers)


def begin(http: httpx.Client, sampler: dict[str, object], **changes: object) -> httpx.Response:
    body = json.dumps({**SEARCH, "sampler": sampler, **changes})
    return http.post("/searches", files={"job": (None, body), "code": ("c.tar.gz", code())})


@pytest.fixture
def anna(module_server: Served) -> Iterator[httpx.Client]:
    with module_server.client_of("anna") as client:
        yield client
        for search in client.get("/searches").json()["searches"]:
            client.delete(f"/searches/{search['name']}")
        for _ in range(3):
            module_server.searches.keeper.look()
        for algorithm in client.get("/algorithms").json()["algorithms"]:
            client.delete(f"/algorithms/{algorithm['name']}")
        module_server.tick()  # or the next search would be taken for this one


def test_an_algorithm_is_installed_shown_changed_replaced_and_removed(anna: httpx.Client) -> None:
    made = send(anna, packed(optimizer=RANDOM), name="mine", description="One.")
    assert made.status_code == 201, made.text
    view = made.json()
    assert (view["owner"], view["kind"], view["class_name"], view["has_state"]) == (
        "anna",
        "ibm",
        "PluginOptimizer",
        False,
    )
    assert anna.get("/algorithms").json()["algorithms"] == [view]
    assert anna.get("/algorithms/mine").headers["etag"] == made.headers["etag"]

    changed = anna.patch("/algorithms/mine", json={"deadline_s": 9}, headers={"If-Match": made.headers["etag"]})
    assert (changed.json()["deadline_s"], changed.json()["description"]) == (9.0, "One.")
    stale = send(anna, packed(sampler=SAMPLER), "/mine", headers={"If-Match": made.headers["etag"]})
    assert stale.status_code == 412
    replaced = send(anna, packed(sampler=SAMPLER), "/mine", description="Two.")
    assert replaced.status_code == 200, replaced.text
    assert (replaced.json()["kind"], replaced.json()["deadline_s"]) == ("optuna", 9.0)
    assert replaced.json()["checksum"] != view["checksum"]

    assert anna.delete("/algorithms/mine").status_code == 204
    assert anna.get("/algorithms/mine").status_code == 404
    assert send(anna, packed(optimizer=RANDOM), "/mine").status_code == 404


def test_what_cannot_be_loaded_is_refused_with_what_happened(anna: httpx.Client) -> None:
    broken = send(anna, packed(optimizer="print('so far')\nimport nothing_of_the_kind\n"), name="mine")
    assert broken.status_code == 422
    (problem,) = broken.json()["problems"]
    assert problem["field"] == "code"
    assert "nothing_of_the_kind" in problem["message"]
    assert "it printed:\nso far" in problem["message"]

    neither = send(anna, packed(search=RANDOM), name="tpe")
    assert [one["field"] for one in neither.json()["problems"]] == ["name", "code"]
    assert send(anna, b"no archive", name="mine").status_code == 422
    assert anna.get("/algorithms").json()["algorithms"] == []


def test_others_see_and_use_what_is_shared_with_them_and_viewers_install_nothing(
    module_server: Served, anna: httpx.Client
) -> None:
    module_server.client_of("ben").close()
    send(anna, packed(optimizer=RANDOM), name="mine")
    with module_server.client_of("ben") as ben, module_server.client_of("vera", Role.VIEWER) as vera:
        assert ben.get("/algorithms/mine").status_code == 404
        unknown = begin(ben, {"name": "mine"}).json()["problems"]
        assert [one["field"] for one in unknown] == ["sampler.name"]
        assert "there is no sampler or algorithm 'mine'" in unknown[0]["message"]
        anna.patch("/algorithms/mine", json={"shared_with": ["ben"]})
        assert ben.get("/algorithms/mine").status_code == 200
        assert ben.patch("/algorithms/mine", json={"deadline_s": 1}).status_code == 403
        assert send(ben, packed(optimizer=RANDOM), "/mine").status_code == 403
        assert ben.delete("/algorithms/mine").status_code == 403
        assert vera.get("/algorithms").json()["algorithms"] == []
        assert send(vera, packed(optimizer=RANDOM), name="veras").status_code == 403


def test_a_search_gets_its_values_from_it_keeps_to_its_version_and_its_log_can_be_read(
    module_server: Served, anna: httpx.Client
) -> None:
    first = send(anna, packed(optimizer=RANDOM), name="mine").json()
    made = begin(anna, {"name": "mine", "options": {"scale": 2}})
    assert made.status_code == 201, made.text
    module_server.searches.keeper.look()

    trials = anna.get("/searches/lr-search/trials").json()["trials"]
    assert [one["values"] for one in trials] == [{"lr": 0.02}, {"lr": 0.04}]
    log = anna.get("/searches/lr-search/algorithm-log")
    assert "asked 2 times, scale 2.0" in log.text
    assert log.headers["content-type"].startswith("text/plain")
    home = log.text.partition("in ")[2].splitlines()[0]
    assert ".work-" in home

    assert anna.delete("/algorithms/mine").status_code == 409
    second = send(anna, packed(optimizer=RANDOM + "\n# two\n"), "/mine").json()
    search = module_server.searches.book.find("lr-search")
    assert search is not None
    assert search.search.algorithm is not None
    assert (search.search.algorithm.checksum, second["checksum"] != first["checksum"]) == (first["checksum"], True)
    with module_server.client_of("ben") as ben:
        assert ben.get("/searches/lr-search/algorithm-log").status_code == 404

    anna.delete("/searches/lr-search")
    module_server.searches.keeper.look()
    assert anna.delete("/algorithms/mine").status_code == 204
    assert module_server.algorithms.requests.log("lr-search") == ""


def test_a_sampler_for_optuna_is_one_too(module_server: Served, anna: httpx.Client) -> None:
    assert send(anna, packed(sampler=SAMPLER), name="mine").status_code == 201
    begun = begin(anna, {"name": "mine", "seed": 3}, max_trials=2)
    assert begun.status_code == 201, begun.text
    module_server.searches.keeper.look()

    assert [len(one["values"]) for one in anna.get("/searches/lr-search/trials").json()["trials"]] == [1, 1]


def test_a_search_whose_algorithm_fails_says_why_once(module_server: Served, anna: httpx.Client) -> None:
    fails = RANDOM.replace("self.num += 1", 'raise ValueError("no more ideas")')
    send(anna, packed(optimizer=fails), name="mine")
    begin(anna, {"name": "mine"}, max_trials=2)
    module_server.searches.keeper.look()

    shown = anna.get("/searches/lr-search").json()
    assert shown["state"] == SearchState.FAILED.value
    assert "no more ideas" in shown["reason"]
    assert "mine" in shown["reason"]


def test_a_search_by_a_sampler_that_is_built_in_has_no_such_log(anna: httpx.Client) -> None:
    begin(anna, {"name": "random"}, max_trials=1)

    answer = anna.get("/searches/lr-search/algorithm-log")
    assert answer.status_code == 404
    assert "its sampler, random, is built in" in answer.json()["detail"]
