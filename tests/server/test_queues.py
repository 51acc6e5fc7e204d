"""Queues and resource groups over HTTP."""

from collections.abc import Iterator

import pytest
from tests.server.conftest import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that nothing is changed on."""
    one = Served(tmp_path_factory.mktemp("home"))
    yield one
    one.close()


HALF = {"name": "half", "hosts": {"all": True}, "slots_per_host": "ncpus + 2"}


def test_a_queue_is_made_shown_changed_and_removed(server: Served) -> None:
    made = server.http.post("/resource-groups", json=HALF)
    assert made.status_code == 201, made.text
    assert made.headers["ETag"] == '"1"'
    assert made.json()["hosts"] == [
        {"node_id": "local", "num_slots": 2, "num_all_slots": 4, "num_gpus": 0, "num_cpus": 0, "labels": {}}
    ]
    queue = server.http.post("/queues", json={"name": "batch", "resource_group": "half", "preemption": False})
    assert queue.status_code == 201, queue.text
    assert queue.json()["queue"]["owner"] == "admin"

    job_id = server.submit(queue="batch", max_tasks=4).json()["id"]
    waiting = server.submit(queue="batch", min_tasks=3, max_tasks=4).json()["id"]
    server.tick(1.0)

    listed = {view["queue"]["name"]: view for view in server.http.get("/queues").json()["queues"]}
    assert set(listed) == {"batch", "default"}
    batch = listed["batch"]
    assert (batch["num_waiting"], batch["num_running"], batch["num_held"], batch["num_slots"]) == (1, 1, 1, 2)
    assert batch["num_deserved"] == 2
    assert server.http.get(f"/jobs/{job_id}").json()["job"]["queue"] == "batch"
    assert server.http.get(f"/jobs/{waiting}/why").json()["sentence"] == (
        "waits: its minimum needs 3 slots and queue batch (group half) has only 2"
    )
    assert server.http.delete("/queues/batch").status_code == 409

    moved = server.http.patch(f"/jobs/{waiting}", json={"queue": "default"})
    assert moved.json()["queue"] == "default"
    changed = server.http.patch("/queues/batch", json={"weight": 2, "open": False}, headers={"If-Match": '"1"'})
    assert (changed.json()["queue"]["weight"], changed.headers["ETag"]) == (2, '"2"')
    stale = server.http.patch("/queues/batch", json={"weight": 3}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    assert server.http.delete("/resource-groups/half").status_code == 409

    server.http.post(f"/jobs/{job_id}/stop")
    server.tick(1.0)
    for task in server.http.get(f"/jobs/{job_id}").json()["tasks"]:
        server.cluster.exit(task["id"], 0)
    server.tick(1.0)
    assert server.http.delete("/queues/batch", headers={"If-Match": '"2"'}).status_code == 204
    assert server.http.delete("/resource-groups/half").status_code == 204
    messages = [event["message"] for event in server.http.get("/events").json()["events"]]
    assert "queue batch was removed by admin" in messages


NEVER = "it waits for hosts that may come: its minimum needs "


def test_a_job_that_never_fits_is_taken_with_a_note(server: Served) -> None:
    empty = server.http.post(
        "/resource-groups", json={"name": "gpus", "hosts": {"all": True}, "slots_per_host": "ngpus"}
    )
    lack = "slots per host are `ngpus`, which is 0 here: local has 4 slots, 0 GPUs and 0 CPUs"
    assert empty.json()["notes"] == [f"group gpus has no slots now: {lack}. Its jobs wait for hosts that may come"]
    made = server.http.post("/queues", json={"name": "night", "resource_group": "gpus"})
    assert made.json()["notes"] == empty.json()["notes"]
    assert server.http.get("/queues/default").json()["notes"] == []

    def notes(**job: object) -> list[str]:
        answer = server.submit(None, **job)
        assert answer.status_code == 201, answer.text
        found: list[str] = answer.json()["notes"]
        return found

    in_all = "queue default (group all)"
    wide, fixed, night = (
        [f"{NEVER}16 slots and {in_all} has only 4"],
        [f"{NEVER}20 slots and {in_all} has only 4"],
        [f"{NEVER}1 slot and queue night (group gpus) has none ({lack})"],
    )
    assert notes(slots_per_task=16) == wide
    assert notes(fixed=True, min_tasks=20, max_tasks=20) == fixed
    assert notes(queue="night") == night
    assert notes(max_tasks=20, virtual_workers=20) == []

    server.tick(1.0)
    whys = [server.http.get(f"/jobs/job-{n}/why").json()["sentence"] for n in (1, 2, 3)]
    assert whys == [
        f"waits: its minimum needs 16 slots and {in_all} has only 4",
        f"waits: its minimum needs 20 slots and {in_all} has only 4",
        "waits: its minimum needs 1 slot and queue night (group gpus) has none",
    ]
    assert server.http.patch("/jobs/job-4", json={"priority": 1}).json()["notes"] == []
    assert server.http.patch("/jobs/job-4", json={"min_tasks": 5}).json()["notes"] == [
        f"{NEVER}5 slots and {in_all} has only 4"
    ]
    assert server.http.patch("/jobs/job-4", json={"min_tasks": 1, "queue": "night"}).json()["notes"] == night
    warned = [e["message"] for e in server.http.get("/events").json()["events"] if e["kind"] == "warning"]
    assert len(warned) == 5
    assert warned[-1] == f"job-4 (train.py): {night[0]}"


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("/resource-groups", {"name": "g"}, "hosts", "missing"),
        ("/resource-groups", {"name": "g", "hosts": {}}, "hosts", "in one way"),
        ("/resource-groups", {"name": "g", "hosts": {"all": True, "names": ["a"]}}, "hosts", "in one way"),
        ("/resource-groups", HALF | {"slots_per_host": "ngpu"}, "slots_per_host", "position 1: 'ngpu' is not known"),
        ("/resource-groups", HALF | {"slots_per_host": -1}, "slots_per_host", "give 0 or more"),
        ("/queues", {"name": "a/b"}, "name", "cannot be taken; give letters"),
        ("/queues", {"name": "a", "weight": 0}, "weight", "give 1 or more"),
        ("/queues", {"name": "a", "policy": "lottery"}, "policy", "fairshare"),
        ("/queues", {"name": "a", "resource_group": "gpus"}, "resource_group", "there is no resource group 'gpus'"),
        ("/queues", {"name": "a", "run_as": "nobody"}, "run_as", "there is no user 'nobody'"),
        ("/queues", {"name": "a", "colour": "red"}, "colour", "no field of this name"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(
    served: Served, path: str, body: dict[str, object], field: str, message: str
) -> None:
    response = served.http.post(path, json=body)

    assert response.status_code in (400, 422), response.text
    assert any(p["field"].startswith(field) and message in p["message"] for p in response.json()["problems"]), (
        response.text
    )


def test_an_unknown_queue_is_told_which_there_are(served: Served) -> None:
    response = served.submit(queue="fast")

    assert response.status_code in (400, 422)
    assert response.json()["problems"] == [{"field": "queue", "message": "there is no queue 'fast'; there are default"}]


def test_the_defaults_stay(server: Served) -> None:
    assert server.http.delete("/queues/default").status_code == 409
    assert server.http.delete("/resource-groups/all").status_code == 409
    assert server.http.get("/queues/other").status_code == 404
    assert server.http.get("/resource-groups/other").status_code == 404
    changed = server.http.patch("/queues/default", json={"policy": "fifo"}, headers={"If-Match": '"0"'})
    assert changed.headers["ETag"] == '"1"'
    assert server.http.get("/cluster").json()["policy"] == "fifo"
