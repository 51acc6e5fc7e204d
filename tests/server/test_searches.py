"""Searches over REST, on a real server with a simulated cluster: their trials are jobs that can be seen as such."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served
from tests.server.played import PROGRESS, Played
from tests.server.world import code

from pliant.core.access import Role
from pliant.server.search_jobs import ControlTrials

SEARCH: dict[str, Any] = {
    "name": "lr-search",
    "script": "train.py",
    "parameters": {"lr": {"kind": "float", "low": 1e-4, "high": 0.1, "log": True}},
    "objectives": [{"metric": "val_loss", "direction": "minimize"}],
    "sampler": {"name": "random", "seed": 3},
    "max_trials": 3,
    "parallel": 2,
}


@pytest.fixture
def anna(module_server: Served) -> Iterator[httpx.Client]:
    with module_server.client_of("anna") as client:
        yield client
        for search in client.get("/searches").json()["searches"]:
            client.delete(f"/searches/{search['name']}")
        settle(module_server)
        module_server.tick()  # another search of this name is told from it by its time


def create(http: httpx.Client, **changes: object) -> httpx.Response:
    """Begin a search."""
    body = json.dumps(SEARCH | changes)
    return http.post("/searches", files={"job": (None, body), "code": ("c.tar.gz", code())})


def settle(served: Served) -> None:
    """Let what keeps searches look and ask, queue what was chosen, and act on what was decided then."""
    for _ in range(3):
        served.searches.keeper.look()


def jobs_of(http: httpx.Client) -> list[Any]:
    """Return the jobs of the newest search."""
    trials = http.get("/searches/lr-search/trials").json()["trials"]
    return [http.get(f"/jobs/{trial['job_id']}").json()["job"] for trial in trials]


def test_a_search_is_begun_shown_and_its_trials_are_jobs_of_its_owner(
    module_server: Served, anna: httpx.Client
) -> None:
    made = create(anna)
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["owner"], made.json()["state"]) == ("lr-search", "anna", "running")

    settle(module_server)
    (first, second) = anna.get("/searches/lr-search/trials").json()["trials"]
    job = anna.get(f"/jobs/{first['job_id']}").json()["job"]
    assert (job["owner"], job["spec"]["name"]) == ("anna", "lr-search#0")
    assert job["spec"]["args"] == [f"--lr={first['values']['lr']!r}"]
    assert job["spec"]["trial"]["number"] == 0
    assert second["job_id"] != first["job_id"]
    assert "attributes" not in first or first["attributes"] == {}
    decisions = anna.get("/searches/lr-search/decisions").json()
    assert [one["kind"] for one in decisions["decisions"]] == ["ask", "ask"]
    assert decisions["last"] == 2
    (shown,) = anna.get("/searches").json()["searches"]
    assert shown["trials"] == {"running": 2}
    assert (shown["num_at_once"], shown["why_at_once"]) == (2, "as was said")


def test_a_table_of_its_trials_is_paged_by_place(module_server: Served, anna: httpx.Client) -> None:
    create(anna)
    settle(module_server)

    rows = anna.get("/searches/lr-search/trials/rows?sort=-number&offset=1&limit=1").json()
    assert (rows["total"], [one["number"] for one in rows["trials"]]) == (2, [0])
    (row,) = rows["trials"]
    assert (row["state"], row["results"], row["reported_at"], row["violation"]) == ("running", None, None, None)
    assert row["values"] == anna.get("/searches/lr-search/trials/0").json()["values"]
    assert anna.get("/searches/lr-search/trials/rows?state=pruned").json() == {"trials": [], "total": 0}
    assert anna.get("/searches/lr-search/trials/rows?sort=nothing").status_code == 422


def test_its_trials_are_asked_for_and_left_out_and_why_tells_of_each(module_server: Served, anna: httpx.Client) -> None:
    create(anna)
    create(anna, name="other")
    settle(module_server)
    module_server.tick()

    def named(query: str) -> set[str]:
        return {job["spec"]["name"] for job in anna.get(f"/jobs?state=waiting,starting,running&{query}").json()["jobs"]}

    assert named("search=lr-search") == {"lr-search#0", "lr-search#1"}
    assert len(named("search=lr-search,other")) == 4
    assert named("trials=false") == set()
    wrong = anna.get("/jobs?search=lr-serch&search=other").json()["problems"]
    assert wrong == [{"field": "search", "message": "there is no search 'lr-serch'; is 'lr-search' meant?"}]
    both = anna.get("/jobs?search=other&trials=false&owner=eve").json()["problems"]
    assert both[0]["message"] == "the trials of 'other' are asked for; leave one or the other out"

    assert anna.post("/searches/other/stop").is_success
    listed = {state: anna.get(f"/searches?state={state}").json()["searches"] for state in ("running", "stopped")}
    assert {state: [one["name"] for one in found] for state, found in listed.items()} == {
        "running": ["lr-search"],
        "stopped": ["other"],
    }
    why = anna.get("/searches/lr-search/why").json()
    assert why["sentences"] == [
        "2 trials train or wait for slots, of 2 that may at once: as was said.",
        "The next trial begins as soon as another one leaves its place.",
    ]
    jobs = {job["id"]: job for job in jobs_of(anna)}
    assert [(one["number"], one["job_id"]) for one in why["trials"]] == list(enumerate(jobs))
    for one in why["trials"]:
        job = jobs[one["job_id"]]
        assert (one["job_state"], one["num_slots"], one["sentence"]) == (job["state"], job["num_slots"], job["why"])
        assert one["sentence"]
    assert why["num_slots"] == sum(job["num_slots"] for job in jobs.values()) > 0
    of_job = anna.get(f"/jobs/{why['trials'][1]['job_id']}/why").json()
    assert (of_job["search"], of_job["trial"]) == ("lr-search", 1)
    assert anna.get("/searches/other/why").json()["sentences"][0] == "It is stopped: anna stopped it."


def test_others_see_nothing_of_it(module_server: Served, anna: httpx.Client) -> None:
    create(anna)
    settle(module_server)

    with module_server.client_of("ben") as ben:
        for path in ("", "/trials", "/trials/rows", "/trials/0", "/best", "/decisions", "/why"):
            assert ben.get(f"/searches/lr-search{path}").status_code == 404
        for method, path in (("POST", "/stop"), ("POST", "/resume"), ("DELETE", "")):
            assert ben.request(method, f"/searches/lr-search{path}").status_code == 404
        assert ben.get("/searches").json()["searches"] == []


def test_a_stopped_search_holds_its_jobs(module_server: Served, anna: httpx.Client) -> None:
    create(anna)
    settle(module_server)

    assert anna.post("/searches/lr-search/stop").json()["state"] == "stopped"
    settle(module_server)
    assert {job["hold"] for job in jobs_of(anna)} == {"the search lr-search is stopped"}
    assert anna.post("/searches/lr-search/stop").status_code == 409

    anna.post("/searches/lr-search/resume")
    settle(module_server)
    assert {job["hold"] for job in jobs_of(anna)} == {""}


def test_secrets_of_its_jobs_are_not_shown(anna: httpx.Client) -> None:
    made = create(anna, env={"API_TOKEN": "s3cret", "MODE": "x"})

    assert made.json()["job"]["env"]["MODE"] == "x"
    assert "s3cret" not in made.text + anna.get("/searches/lr-search").text + anna.get("/searches").text


def test_changes_are_of_a_revision(anna: httpx.Client) -> None:
    create(anna)
    shown = anna.get("/searches/lr-search")

    changed = anna.patch("/searches/lr-search", json={"max_trials": 5}, headers={"If-Match": shown.headers["etag"]})
    assert changed.json()["settings"]["max_trials"] == 5
    again = anna.patch("/searches/lr-search", json={"max_trials": 6}, headers={"If-Match": shown.headers["etag"]})
    assert again.status_code == 412


def test_added_trials_are_told_what_is_wrong_with_them(anna: httpx.Client) -> None:
    create(anna)

    wrong = anna.post("/searches/lr-search/trials", json={"trials": [{"lr": 7}, {"rate": 0.1}]})
    assert [problem["field"] for problem in wrong.json()["problems"]] == ["trials.0.lr", "trials.1.rate"]
    assert (
        anna.post("/searches/lr-search/trials", json={"trials": [{"lr": 0.01}]}).json()["settings"]["max_trials"] == 4
    )


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"parameters": {}}, "parameters", ""),
        ({"parameters": {"lr": {"kind": "float", "low": 0, "high": 1, "log": True}}}, "parameters.lr.low", "magnitude"),
        ({"objectives": []}, "objectives", ""),
        ({"objectives": [{"metric": "val_loss"}]}, "objectives.0.direction", ""),
        ({"constraints": [{"metric": "memory"}]}, "constraints.0", "give it upper or lower"),
        ({"constraints": [{"metric": "memory", "upper": "8"}]}, "constraints.0.upper", ""),
        ({"constraints": [{"metric": "memory", "upper": 8, "below": 1}]}, "constraints.0.below", ""),
        ({"constraints": [{"metric": "m", "upper": 8}] * 11}, "constraints", ""),
        ({"max_trials": 0}, "max_trials", ""),
        ({"max_trials": None}, "max_trials", "nothing ends the search"),
        ({"sampler": {"name": "grid"}}, "parameters.lr", "a grid has no values by orders of magnitude"),
        ({"sampler": {"name": "tpe", "options": {"n_startup": 3}}}, "sampler.options.n_startup", ""),
        ({"script": "missing.py"}, "script", "not in the code folder"),
        ({"queue": "nowhere"}, "queue", ""),
        ({"shared_with": ["nobody"]}, "shared_with.0", "no user is named 'nobody'"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(anna: httpx.Client, changes: Any, field: str, message: str) -> None:
    refused = create(anna, **changes)

    assert refused.status_code == 422, refused.text
    found = {problem["field"]: problem["message"] for problem in refused.json()["problems"]}
    assert field in found, found
    assert message in found[field]


def test_a_search_is_removed_and_its_jobs_stay(module_server: Served, anna: httpx.Client) -> None:
    create(anna)
    settle(module_server)

    ids = [job["id"] for job in jobs_of(anna)]
    assert anna.delete("/searches/lr-search").status_code == 204
    settle(module_server)
    assert anna.get("/searches/lr-search").status_code == 404
    assert [anna.get(f"/jobs/{job_id}").json()["job"]["state"] for job_id in ids] == ["stopped", "stopped"]


def test_a_taken_name_is_refused(anna: httpx.Client) -> None:
    create(anna)

    assert create(anna).status_code == 409
    assert create(anna, name="LR-Search").status_code == 409


def test_a_search_is_played_to_its_end(tmp_path: Any) -> None:
    """With tasks that train: simulated processes, the real control, the real store."""
    played = Played(tmp_path)
    try:
        create(played.http, name="s", max_trials=2)
        settle(played)
        for number in (0, 1):
            job_id = played.http.get(f"/searches/s/trials/{number}").json()["job_id"]
            played.tick(1.0)
            played.report(job_id, val_loss=0.5 - 0.1 * number)
            played.complete(job_id)
        settle(played)
        shown = played.http.get("/searches/s").json()
        assert (shown["state"], shown["reason"]) == ("completed", "all of its 2 trials have ended")
        assert (shown["best"]["number"], shown["best"]["results"]) == (1, [0.4])
        assert [one["number"] for one in played.http.get("/searches/s/best?limit=5").json()["trials"]] == [1, 0]
    finally:
        played.close()


def test_at_a_rung_counts_what_was_reported_by_then_and_who_violates_a_bound_does_not_go_on(tmp_path: Any) -> None:
    """What a script reports of its memory after its loss, but at the same step, is waited for."""
    played = Played(tmp_path)
    at_rung = replace(PROGRESS, epoch=1, step=10)
    bounds = [{"metric": "memory", "upper": 8.0}]
    try:
        made = create(played.http, name="s", max_trials=2, constraints=bounds, halving={"max": 2, "factor": 2})
        assert any("random does not learn from constraints" in note for note in made.json()["notes"])
        settle(played)
        jobs = [played.http.get(f"/searches/s/trials/{number}").json()["job_id"] for number in (0, 1)]
        played.tick(1.0)
        found = played.searches.book.find("s")
        assert found is not None
        ports = ControlTrials(played.control)
        for number, job_id in enumerate(jobs):
            played.report(job_id, at_rung, val_loss=0.5 - 0.1 * number)
            assert ports.values_at_rung(job_id, found.search.settings, 1) is None
            played.report(job_id, at_rung, memory=8.0 + number)
            assert ports.values_at_rung(job_id, found.search.settings, 1) is None
            played.report(job_id, replace(at_rung, step=11), memory=99.0)
        settle(played)
        kept, beyond = played.http.get("/searches/s/trials").json()["trials"]
        assert (kept["state"], beyond["state"], beyond["violations"]) == ("running", "pruned", [1.0])
    finally:
        played.close()


def test_a_search_is_foreseen_without_code(module_server: Served, anna: httpx.Client) -> None:
    def foresee(**changes: object) -> Any:
        answer = anna.post("/searches/preview", json=SEARCH | changes)
        assert answer.status_code == 200, answer.text
        return answer.json()

    sound = foresee(constraints=[{"metric": "memory_gb", "upper": 8}])
    assert sound["problems"] == []
    assert sound["sentence"]
    assert any("does not learn from constraints" in note for note in sound["notes"])
    shape = foresee(max_trials=0, population={"size": 1, "every": 3, "max": 27})
    assert {one["field"] for one in shape["problems"]} >= {"max_trials", "population.size"}
    there = foresee(queue="nowhere", sampler={"name": "tpee"})
    assert {one["field"] for one in there["problems"]} == {"queue", "sampler.name"}
    assert there["sentence"] == ""
    assert create(anna).status_code == 201
    assert [one["field"] for one in foresee()["problems"]] == ["name"]
    assert len(anna.get("/searches").json()["searches"]) == 1


def test_who_may_submit_no_job_foresees_no_search(module_server: Served) -> None:
    with module_server.client_of("vera", Role.VIEWER) as vera:
        assert vera.post("/searches/preview", json=SEARCH).status_code == 403
