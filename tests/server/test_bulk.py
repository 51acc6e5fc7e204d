"""Several jobs at once over HTTP: each is answered for, and one that is refused keeps no other back."""

from tests.server.conftest import Served


def outcomes(answer: object) -> dict[str, tuple[bool, int]]:
    assert isinstance(answer, dict)
    return {one["id"]: (one["ok"], one["status"]) for one in answer["outcomes"]}


def test_jobs_are_stopped_but_for_those_that_cannot_be(server: Served) -> None:
    ids = [server.submit().json()["id"] for _ in range(3)]
    assert server.http.post(f"/jobs/{ids[0]}/stop", params={"now": True}).is_success
    server.add_user("ada")
    server.http.put(f"/jobs/{ids[1]}/shares", json={"shared_with": ["ada"]})
    with server.client_of("ada") as ada:
        theirs = ada.post("/jobs/stop", json={"ids": ids})
    assert outcomes(theirs.json()) == {ids[0]: (False, 404), ids[1]: (False, 403), ids[2]: (False, 404)}

    answer = server.http.post("/jobs/stop", json={"ids": [*ids, ids[2], "job-99"], "now": True})

    assert answer.status_code == 200, answer.text
    assert outcomes(answer.json()) == {
        ids[0]: (False, 409),
        ids[1]: (True, 200),
        ids[2]: (True, 200),
        "job-99": (False, 404),
    }
    problems = {one["id"]: one["problem"] for one in answer.json()["outcomes"]}
    assert problems[ids[0]].startswith(f"{ids[0]} has already been stopped at")
    assert problems["job-99"] == "no job is named 'job-99'; list them to see which there are"
    assert answer.json()["num_refused"] == 2
    assert {server.http.get(f"/jobs/{one}").json()["job"]["state"] for one in ids} == {"stopped"}


def test_jobs_are_changed_but_for_those_that_cannot_be(server: Served) -> None:
    elastic, other = (server.submit(max_tasks=2).json()["id"] for _ in range(2))
    fixed = server.submit(fixed=True, min_tasks=2, max_tasks=2).json()["id"]
    answer = server.http.patch("/jobs", json={"ids": [elastic, fixed, other], "priority": 7000, "max_tasks": 4})
    assert outcomes(answer.json()) == {elastic: (True, 200), fixed: (False, 409), other: (True, 200)}
    jobs = {job["id"]: (job["priority"], job["max_tasks"]) for job in server.http.get("/jobs").json()["jobs"]}
    assert jobs == {elastic: (7000, 4), other: (7000, 4), fixed: (5000, 2)}, "a change is made whole or not at all"


def test_what_asks_for_nothing_or_too_much_is_refused(module_server: Served) -> None:
    for body, field in (
        ({"ids": [], "priority": 1}, "ids"),
        ({"ids": ["job-1"] * 1001, "priority": 1}, "ids"),
        ({"ids": ["x" * 65], "priority": 1}, "ids.0"),
        ({"ids": ["job-1"]}, ""),
        ({"ids": ["job-1"], "tags": {}}, "tags"),
    ):
        answer = module_server.http.patch("/jobs", json=body)
        assert answer.status_code == 422, answer.text
        assert [one["field"] for one in answer.json()["problems"]] == [field]
