"""The live stream of events."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

Served = Any


def read(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield server-sent events as they come."""
    fields: dict[str, Any] = {}
    for line in response.iter_lines():
        if not line and fields:
            yield fields
            fields = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def test_the_stream_catches_up_then_tells_what_happens(server: Served) -> None:
    server.submit()
    with server.http.stream("GET", "/events/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = read(response)
        assert [next(events)["event"] for _ in range(2)] == ["server.started", "job.submitted"]
        server.submit()
        live = next(events)
        assert (live["id"], live["event"]) == ("3", "job.submitted")
        assert json.loads(live["data"])["job_id"] == "job-2"
        server.tick()
        assert next(events)["event"] == "decision"


def test_the_stream_resumes_after_the_last_event_seen(server: Served) -> None:
    for _ in range(3):
        server.submit()
    with server.http.stream("GET", "/events/stream?after=1", headers={"Last-Event-ID": "3"}) as response:
        assert next(read(response))["id"] == "4"


def test_the_stream_of_one_job_leaves_out_the_others(server: Served) -> None:
    server.submit()
    server.submit()
    with server.http.stream("GET", "/events/stream?job_id=job-2") as response:
        events = read(response)
        assert next(events)["id"] == "3"
        server.http.patch("/jobs/job-1", json={"priority": 7})
        server.http.patch("/jobs/job-2", json={"priority": 7})
        assert json.loads(next(events)["data"])["job_id"] == "job-2"


def test_the_stream_ends_when_the_server_stops(server: Served) -> None:
    with server.http.stream("GET", "/events/stream") as response:
        events = read(response)
        next(events)
        server.event_signal.close()
        assert list(events) == []


def test_wrong_positions_are_refused(server: Served) -> None:
    assert server.http.get("/events/stream", headers={"Last-Event-ID": "x"}).status_code == 422
    assert server.http.get("/events/stream?after=x").status_code == 422
    assert server.http.get("/events/stream?job_id=job-9").status_code == 404
