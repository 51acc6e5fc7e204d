"""What a console shows first, and the rows of its table: of what the caller sees, and no more."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.played import PROGRESS, Played, set_scene

from pliant import __version__
from pliant.core.job import JobId

SLOTS = {"task.started", "task.ready", "task.left", "generation.forming", "generation.switched"}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """`job-1` trains on two of four slots, `job-2` has failed, `job-3` and `job-4` wait, `job-5` for another one."""
    home: Path = tmp_path_factory.mktemp("home")
    made = set_scene(Played(home))
    made.add(name="large", min_tasks=4, max_tasks=4, tags={"lr": "0.1"})
    made.add(name="urgent", min_tasks=4, max_tasks=4, priority=9000)
    made.add(name="later", after=["job-1"])
    yield made
    made.close()


def test_the_overview_has_what_runs_and_what_waits_and_why(pool: Played) -> None:
    seen = pool.http.get("/overview").json()
    assert seen["server"] == {"version": __version__, "started_at": 1000.0}
    assert seen["last_seq"] == pool.store.last_seq()
    assert (seen["num_slots"], seen["num_used"]) == (4, 2)
    assert seen["jobs"] == {"running": 1, "failed": 1, "pending": 3}
    assert seen["samples_per_s"] == PROGRESS.samples_per_s
    machine = {"node_id": "local", "num_slots": 4, "num_used": 2, "drained": False, "num_excluded": 0}
    assert seen["machines"] == [machine]
    assert seen["searches"] == []
    assert seen["num_waiting"] == 3
    waiting = [(one["id"], one["waiting"]) for one in seen["waiting"]]
    assert waiting == [
        ("job-4", {"place": 1, "num_waiting": 2, "num_needed": 4}),
        ("job-3", {"place": 2, "num_waiting": 2, "num_needed": 4}),
        ("job-5", None),
    ]
    assert seen["waiting"][0]["sentence"].startswith("waits: its minimum needs 4 slots")
    assert seen["waiting"][2]["sentence"] == "waits for job-1 to complete"
    seqs = [event["seq"] for event in seen["events"]]
    assert seqs == sorted(seqs)
    assert not SLOTS & {event["kind"] for event in seen["events"]}
    assert seen["events"][-1]["message"].startswith("job-5 (later) was submitted")


def test_the_overview_tells_what_is_out_of_use(pool: Played) -> None:
    excluded = pool.http.post("/machines/local/exclude", json={"slots": [3], "because": "ECC errors"})
    assert excluded.status_code == 200, excluded.text
    seen = pool.http.get("/overview").json()
    assert (seen["num_slots"], seen["num_excluded"], seen["num_drained"]) == (3, 1, 0)
    pool.http.patch("/machines/local", json={"drained": True}).raise_for_status()
    seen = pool.http.get("/overview").json()
    assert (seen["num_drained"], seen["machines"][0]["drained"]) == (3, True)
    pool.http.patch("/machines/local", json={"drained": False}).raise_for_status()
    pool.http.post("/machines/local/include", json={}).raise_for_status()
    seen = pool.http.get("/overview").json()
    assert (seen["num_slots"], seen["num_excluded"], seen["num_drained"]) == (4, 0, 0)


def test_the_overview_holds_nothing_of_what_the_caller_does_not_see(pool: Played) -> None:
    pool.add_user("ada")
    with pool.client_of("ada") as ada:
        seen = ada.get("/overview").json()
        rows = ada.get("/jobs/rows").json()
    assert (seen["jobs"], seen["waiting"], seen["num_waiting"], seen["samples_per_s"]) == ({}, [], 0, 0.0)
    assert (seen["num_slots"], seen["num_used"]) == (4, 2), "that a slot is taken everybody may see"
    assert "job-" not in str(seen["events"])
    assert (rows["rows"], rows["total"]) == ([], 0)


def test_a_row_has_what_a_table_shows(pool: Played) -> None:
    page = pool.http.get("/jobs/rows", params={"sort": "submitted"}).json()
    assert (page["total"], page["last_seq"], page["now"]) == (5, pool.store.last_seq(), pool.clock.now())
    first, failed, large, *_ = page["rows"]
    assert {name: first[name] for name in ("id", "kind", "state", "num_slots", "target_slots", "max_slots")} == {
        "id": "job-1",
        "kind": "training",
        "state": "running",
        "num_slots": 2,
        "target_slots": 2,
        "max_slots": 2,
    }
    assert first["progress"]["fraction"] == pytest.approx(30 / 200)
    assert (first["progress"]["eta_s"], first["progress"]["samples_per_s"]) == (125.0, 640.0)
    assert (first["waiting"], first["sentence"]) == (None, pool.job("job-1").why)
    assert (failed["state"], failed["num_slots"], failed["progress"]) == ("failed", 0, None)
    assert failed["sentence"] == pool.job("job-2").reason.splitlines()[0][:200]
    assert large["waiting"] == {"place": 2, "num_waiting": 2, "num_needed": 4}
    assert large["tags"] == {"lr": "0.1"}
    assert [row["colour"] for row in page["rows"]] == [
        job["colour"] for job in pool.http.get("/jobs").json()["jobs"][::-1]
    ]
    assert [row["colour"] for row in page["rows"]] == [pool.job(row["id"]).colour for row in page["rows"]]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"q": "DIGITS", "sort": "submitted"}, [1, 2]),
        ({"q": "lr=0.1"}, [3]),
        ({"q": "%"}, []),
        ({"sort": "-priority", "limit": "1"}, [4]),
        ({"sort": "name", "offset": "3"}, [5, 4]),
        ({"sort": "-slots", "limit": "1"}, [1]),
        ({"kind": "training,fixed", "state": "waiting"}, [5, 4, 3]),
        ({"kind": "trial"}, []),
    ],
)
def test_rows_and_jobs_are_found_sorted_and_cut_alike(pool: Played, query: dict[str, str], numbers: list[int]) -> None:
    ids = [f"job-{number}" for number in numbers]
    assert [row["id"] for row in pool.http.get("/jobs/rows", params=query).json()["rows"]] == ids
    jobs = pool.http.get("/jobs", params=query).json()
    assert [job["id"] for job in jobs["jobs"]] == ids
    assert jobs["total"] >= len(ids)


def test_what_no_list_has_is_refused(pool: Played) -> None:
    for query, field, told in (
        ({"sort": "colour"}, "sort", "'colour' is not possible"),
        ({"kind": "trail"}, "kind", "is 'trial' meant?"),
        ({"q": "x" * 201}, "q", "200"),
        ({"offset": "-1"}, "offset", "0 or more"),
        ({"before": "job-3", "sort": "name"}, "before", "leave it out, or offset and sort"),
        ({"before": "job-3", "offset": "2"}, "before", "leave it out, or offset and sort"),
    ):
        answer = pool.http.get("/jobs", params=query)
        assert answer.status_code == 422, (query, answer.text)
        (problem,) = answer.json()["problems"]
        assert (problem["field"], told in problem["message"]) == (field, True), problem


def test_a_page_of_a_hundred_rows_is_small(pool: Played) -> None:
    row = pool.http.get("/jobs/rows", params={"limit": 1, "sort": "submitted"})
    assert len(row.content) * 100 <= 100_000
    assert pool.store.job(JobId("job-1")) is not None
