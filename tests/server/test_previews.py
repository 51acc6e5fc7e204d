"""What if, over HTTP: who may ask, what is wrong is part of the answer, and nothing of it is in the audit log."""

import pytest
from tests.server.conftest import Served

from pliant.core.access import Role

JOB = {"script": "train.py", "max_tasks": 4}


def num_audited(server: Served) -> int:
    return len(server.store.audit.entries(limit=1000))


def test_a_change_is_foreseen_and_not_made(server: Served) -> None:
    first, second = (server.submit(max_tasks=4).json()["id"] for _ in range(2))
    server.tick(2.0)
    audited, last = num_audited(server), server.store.last_seq()

    seen = server.http.post(f"/jobs/{second}/preview", json={"priority": 10_000})

    assert seen.status_code == 200, seen.text
    preview = seen.json()
    assert {one["id"]: one["would_get"] for one in preview["workloads"]} == {first: 1, second: 3}
    assert (preview["refused"], preview["problems"], preview["num_slots"]) == ("", [], 4)
    assert (num_audited(server), server.store.last_seq()) == (audited, last)
    assert server.http.get(f"/jobs/{second}").json()["job"]["priority"] == 5000


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"priority": 0}, "priority", "0 is too small"),
        ({"min_tasks": 5, "max_tasks": 3}, "min_tasks", "is above max_tasks"),
        ({"queue": "nowhere"}, "queue", "there is no queue 'nowhere'"),
        ({}, "", "nothing to change"),
        ({"colour": 1}, "colour", "no field of this name"),
    ],
)
def test_what_is_wrong_with_a_change_is_part_of_the_answer(
    module_server: Served, body: dict[str, object], field: str, told: str
) -> None:
    job_id = module_server.submit(max_tasks=4).json()["id"]
    answer = module_server.http.post(f"/jobs/{job_id}/preview", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["refused"]
    assert [one["field"] for one in answer.json()["problems"]] == [field]
    assert told in answer.json()["problems"][0]["message"]


def test_a_submission_is_foreseen_without_code(server: Served) -> None:
    free = server.http.post("/jobs/preview", json=JOB).json()
    assert (free["starts"], free["starts_with"], free["would_get"], free["takes"]) == (True, 1, 4, [])
    job_id = server.submit(max_tasks=4).json()["id"]
    server.tick(2.0)
    full = server.http.post("/jobs/preview", json={**JOB, "min_tasks": 4}).json()
    assert (full["starts"], full["waiting"]) == (False, {"place": 1, "num_waiting": 1, "num_needed": 4})
    assert full["sentence"].startswith("waits: its minimum needs 4 slots")
    assert [one["id"] for one in server.http.get("/jobs").json()["jobs"]] == [job_id]


def test_all_that_is_wrong_with_a_submission_comes_by_field(module_server: Served) -> None:
    shape = module_server.http.post("/jobs/preview", json={"script": "", "max_tasks": 0, "priority": "high"})
    assert {one["field"] for one in shape.json()["problems"]} == {"script", "max_tasks", "priority"}
    asked = {**JOB, "queue": "nowhere", "dataset": "none", "after": ["job-99"]}
    there = module_server.http.post("/jobs/preview", json=asked).json()
    assert {one["field"] for one in there["problems"]} == {"queue", "dataset", "after.0"}
    assert module_server.http.post("/jobs/preview", content=b"{").json()["refused"]


def test_queues_and_groups_are_foreseen(server: Served) -> None:
    server.http.post("/queues", json={"name": "night"})
    for queue in ("default", "night"):
        server.submit(max_tasks=4, queue=queue)
    server.tick(2.0)
    audited = num_audited(server)
    preview = server.http.post("/queues/night/preview", json={"weight": 3}).json()
    assert {one["name"]: (one["num_deserved"], one["would_deserve"]) for one in preview["queues"]} == {
        "default": (2, 1),
        "night": (2, 3),
    }
    hosts = {"hosts": {"all": True}}
    three = server.http.post("/resource-groups/preview", json={**hosts, "slots_per_host": "min(3, ncpus + 3)"}).json()
    assert (three["num_slots"], three["problems"], three["notes"]) == (3, [], [])
    none = server.http.post("/resource-groups/preview", json={**hosts, "slots_per_host": "ngpus"}).json()
    assert none["num_slots"] == 0
    assert "`ngpus`, which is 0 here" in none["notes"][0]
    typo = server.http.post("/resource-groups/preview", json={**hosts, "slots_per_host": "1 + ngpu"}).json()
    assert [one["field"] for one in typo["problems"]] == ["slots_per_host"]
    assert "position 5: 'ngpu' is not known" in typo["problems"][0]["message"]
    assert num_audited(server) == audited
    assert server.http.post("/queues/nowhere/preview", json={"weight": 3}).status_code == 404


def test_who_may_not_change_something_has_no_preview_of_it(server: Served) -> None:
    job_id = server.submit(max_tasks=4).json()["id"]
    server.add_user("ada")
    server.add_user("vera", Role.VIEWER)
    server.http.put(f"/jobs/{job_id}/shares", json={"shared_with": ["ada"]})
    with server.client_of("ada") as ada, server.client_of("vera") as vera:
        assert ada.post(f"/jobs/{job_id}/preview", json={"priority": 1}).status_code == 403
        assert ada.post("/queues/default/preview", json={"weight": 2}).status_code == 403
        assert vera.post("/jobs/preview", json=JOB).status_code == 403
        server.http.put(f"/jobs/{job_id}/shares", json={"shared_with": []})
        assert ada.post(f"/jobs/{job_id}/preview", json={"priority": 1}).status_code == 404
        server.tick(2.0)
        seen = ada.post("/jobs/preview", json=JOB).json()
    assert [one["id"] for one in seen["workloads"]] == [""]
    assert (seen["others"]["target"], seen["num_taken_from_others"], seen["takes"]) == (4, 2, [])
