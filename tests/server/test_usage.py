"""Sums of slot-seconds, as JSON and as a table."""

import csv
import io
from dataclasses import replace

import httpx
import pytest
from tests.contracts.store import a_job
from tests.server.conftest import Served

from pliant.core.event import Usage
from pliant.core.job import JobId
from pliant.core.ports import Writes


@pytest.fixture(scope="module")
def server(module_server: Served) -> Served:
    """A server at 1,000 s: job-1 of ann used 4 slots for 100 s, job-2 of ben holds 2 since 900 s."""
    jobs = [replace(a_job("job-1"), owner="ann"), replace(a_job("job-2"), owner="ben")]
    jobs[0] = replace(jobs[0], spec=replace(jobs[0].spec, name='=HYPERLINK("http://evil")'))
    points = [(100.0, 1, 4), (200.0, 1, 0), (900.0, 2, 2)]
    usage = tuple(Usage(at=at, job_id=JobId(f"job-{number}"), num_slots=num) for at, number, num in points)
    module_server.store.write(Writes(jobs=tuple(jobs), usage=usage))
    return module_server


def sums(answer: httpx.Response) -> dict[str, float]:
    assert answer.status_code == 200, answer.text
    return {one["key"]: one["slot_seconds"] for one in answer.json()["sums"]}


def test_slot_seconds_are_summed_by_user_queue_and_job(server: Served) -> None:
    get = server.http.get
    assert sums(get("/usage/summary")) == {"ann": 400.0, "ben": 200.0}
    assert sums(get("/usage/summary?by=queue")) == {"default": 600.0}
    answer = get("/usage/summary?by=job&from=150&until=950&limit=1").json()
    assert answer["sums"] == [
        {"key": "job-1", "name": '=HYPERLINK("http://evil")', "num_jobs": 1, "slot_seconds": 200.0, "share": 2 / 3}
    ]
    assert (answer["slot_seconds"], answer["num_jobs"], answer["num_more"]) == (300.0, 2, 1)
    assert sums(get("/usage/summary?from=-50&until=5000")) == {"ben": 100.0}, "the future is not used yet"


def test_a_table_runs_no_formula(server: Served) -> None:
    by_format = server.http.get("/usage/summary?by=job&format=csv")
    by_header = server.http.get("/usage/summary?by=job", headers={"Accept": "text/csv, */*;q=0.1"})
    assert by_format.content == by_header.content
    assert by_format.headers["content-type"] == "text/csv; charset=utf-8"
    assert by_format.headers["content-disposition"] == "attachment; filename*=utf-8''usage-by-job.csv"
    rows = list(csv.reader(io.StringIO(by_format.text)))
    assert rows[0] == ["job", "name", "jobs", "slot_seconds", "slot_hours", "share"]
    assert rows[1] == ["job-1", '\'=HYPERLINK("http://evil")', "1", "400.0", "0.1111", "0.666667"]
    answer = server.http.get("/usage/summary?format=json", headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("query", ["from=nan", "from=1e12", "by=everything", "from=500&until=400", "limit=0"])
def test_a_span_that_cannot_be_is_refused(server: Served, query: str) -> None:
    assert server.http.get(f"/usage/summary?{query}").status_code == 422


def test_people_see_what_their_jobs_used(server: Served) -> None:
    with server.client_of("ann") as ann:
        assert sums(ann.get("/usage/summary")) == {"ann": 400.0}
