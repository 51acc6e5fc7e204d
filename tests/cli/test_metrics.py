"""`pliant metrics`: one job, several side by side, as a table, as CSV and as JSON."""

import csv
import io
import json

import pytest
from tests.cli.conftest import Run
from tests.server.played import Played

from pliant.core.job import JobId, Metric
from pliant.core.ports import Writes


def put(pool: Played, job_id: str, name: str, *values: float, every: int = 1) -> None:
    points = [
        Metric(job_id=JobId(job_id), name=name, step=(number + 1) * every, epoch=0, at=1.0, value=value)
        for number, value in enumerate(values)
    ]
    pool.store.write(Writes(metrics=tuple(points)))


@pytest.fixture
def jobs(pool: Played) -> Played:
    for _ in range(2):
        pool.add()
    put(pool, "job-1", "loss", *(1.0 / step for step in range(1, 101)))
    put(pool, "job-1", "accuracy", 0.5, 0.75, every=50)
    put(pool, "job-2", "loss", 3.0, 2.0, 1.0, every=20)
    return pool


def test_a_table_has_few_rows_each_a_mean(run: Run, jobs: Played) -> None:
    done = run(jobs, "metrics", "1", "--rows", "4")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["STEP", "ACCURACY", "LOSS"]
    assert [line[:2] for line in lines[1:]] == [["25", "–"], ["50", "0.5"], ["75", "–"], ["100", "0.75"]]
    assert lines[1][2] == f"{sum(1 / step for step in range(1, 26)) / 25:.4g}"


def test_points_that_fit_a_table_stand_at_their_own_steps(run: Run, jobs: Played) -> None:
    put(jobs, "job-2", "test_accuracy", 0.5, 0.75, every=23)
    lines = [line.split() for line in run(jobs, "metrics", "2").out.splitlines()]
    assert lines == [
        ["STEP", "LOSS", "TEST_ACCURACY"],
        ["20", "3", "–"],
        ["23", "–", "0.5"],
        ["40", "2", "–"],
        ["46", "–", "0.75"],
        ["60", "1", "–"],
    ]


def test_several_jobs_stand_side_by_side_at_the_same_steps(run: Run, jobs: Played) -> None:
    done = run(jobs, "metrics", "1", "2", "--name", "loss", "--rows", "5")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["STEP", "JOB-1", "LOSS", "JOB-2", "LOSS"]
    assert [(line[0], line[2]) for line in lines[1:]] == [
        ("20", "3"),
        ("40", "2"),
        ("60", "1"),
        ("80", "–"),
        ("100", "–"),
    ]


def test_all_points_as_csv_and_as_json(run: Run, jobs: Played) -> None:
    rows = list(csv.DictReader(io.StringIO(run(jobs, "metrics", "1", "--csv").out)))
    assert len(rows) == 100
    assert rows[49] == {"step": "50", "accuracy": "0.5", "loss": repr(1 / 50)}
    assert rows[0] == {"step": "1", "accuracy": "", "loss": "1.0"}
    points = [json.loads(line) for line in run(jobs, "metrics", "2", "--json").out.splitlines()]
    assert [(point["job_id"], point["name"], point["step"], point["value"]) for point in points] == [
        ("job-2", "loss", 20, 3.0),
        ("job-2", "loss", 40, 2.0),
        ("job-2", "loss", 60, 1.0),
    ]
    assert len(run(jobs, "metrics", "2", "--rows", "0").out.splitlines()) == 4


def test_more_points_than_a_page_are_all_there(run: Run, jobs: Played) -> None:
    put(jobs, "job-2", "long", *map(float, range(10_500)))
    rows = run(jobs, "metrics", "2", "--name", "long", "--csv").out.splitlines()
    assert len(rows) == 10_501
    assert rows[-1] == "10500,10499.0"


def test_a_series_that_is_not_there_is_named_with_those_that_are(run: Run, jobs: Played) -> None:
    done = run(jobs, "metrics", "1", "--name", "acuracy")
    assert done.code == 3
    assert "job-1 has no series 'acuracy'; it has accuracy, loss" in done.err


def test_a_job_that_has_reported_nothing_says_so(run: Run, pool: Played) -> None:
    pool.add()
    assert run(pool, "metrics", "1").out == "nothing is reported yet\n"
