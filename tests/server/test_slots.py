"""The routes of slots over time, and events by kind and time."""

from typing import Any

import pytest

Served = Any


def test_the_chart_and_its_marks_are_answered(server: Served) -> None:
    server.submit()
    server.tick()
    shown = server.http.get("/slots/chart", params={"from": -600}).json()
    assert [(key["kind"], key["id"], key["colour"]) for key in shown["keys"]] == [("job", "job-1", 0)]
    assert (shown["exact"], shown["width_s"], shown["until"]) == (True, 0, shown["now"])
    assert shown["last_seq"] == server.http.get("/events", params={"limit": 10_000}).json()["last"]
    assert len(shown["times"]) == len(shown["capacity"]) == len(shown["values"][0]) == len(shown["others"])
    assert [sorted(gap) for gap in shown["gaps"]] == [["from", "until"]]
    by_user = server.http.get("/slots/chart", params={"from": -600, "by": "user"}).json()
    assert [key["kind"] for key in by_user["keys"]] == ["user"]
    (by_group,) = server.http.get("/slots/chart", params={"from": -600, "by": "group"}).json()["keys"]
    queue = server.http.get("/queues/default").json()["queue"]
    assert (by_group["kind"], by_group["id"]) == ("group", queue["resource_group"])
    marks = server.http.get("/slots/marks", params={"from": -600, "limit": 1}).json()
    assert (marks["marks"][0]["kind"], marks["num_more"]) == ("came", 1)
    of_one = server.http.get("/slots/marks", params={"job_id": "job-1"}).json()
    assert [mark["job_id"] for mark in of_one["marks"]] == ["job-1"]


@pytest.mark.parametrize(
    "query",
    ["by=owner", "max_buckets=9", "max_buckets=5001", "top=0", "top=51", "from=nan", "from=1e99", "from=-1&until=-2"],
)
def test_what_no_chart_can_be_made_of_is_refused(server: Served, query: str) -> None:
    assert server.http.get(f"/slots/chart?{query}").status_code == 422


def test_marks_of_no_job_and_too_many_are_refused(server: Served) -> None:
    assert server.http.get("/slots/marks?job_id=job-9").status_code == 404
    assert server.http.get("/slots/marks?limit=1001").status_code == 422


def test_events_are_asked_for_by_kind_and_time_and_newest_first(server: Served) -> None:
    for _ in range(3):
        server.submit()
    server.tick()

    def page(**params: Any) -> Any:
        return server.http.get("/events", params=params).json()

    kinds = ["job.submitted", "slots.changed"]
    found = page(kind=kinds)
    assert {event["kind"] for event in found["events"]} == set(kinds)
    first = page(kind=kinds, order="newest", limit=4)
    second = page(kind=kinds, order="newest", limit=4, before=first["next"])
    assert [*first["events"], *second["events"]][: len(found["events"])] == found["events"][::-1][:8]
    assert page(order="newest", limit=10_000)["next"] is None
    at = found["events"][0]["at"]
    assert {event["at"] >= at for event in page(since=at)["events"]} == {True}
    assert {event["at"] < at for event in page(until=at)["events"]} <= {True}
    for query in ("kind=nothing", "order=best", "before=0", "since=-1", "until=nan"):
        assert server.http.get(f"/events?{query}").status_code == 422
