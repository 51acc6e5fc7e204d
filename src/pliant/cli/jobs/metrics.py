"""The command `metrics`."""

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

import typer

from pliant.cli import formatting
from pliant.cli.completion import complete
from pliant.cli.jobs.arrays import job_ids_of, label_of
from pliant.cli.options import JsonLinesOption
from pliant.cli.screen import TableColumn, print_json_line, say, show, table
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.core.errors import NotFound
from pliant.core.job import Metric

_NUM_ROWS: Final = 20
Column = tuple[str, str]
"""A job and the name of a series of it."""


def metrics(
    context: typer.Context,
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB|ARRAY...", help="Ids, numbers or unique names.", autocompletion=complete("job or array")
        ),
    ],
    name: Annotated[
        list[str] | None,
        typer.Option("--name", "-m", metavar="NAME", help="Only this series; repeatable.", show_default=False),
    ] = None,
    num_rows: Annotated[
        int,
        typer.Option(
            "--rows", "-n", min=0, metavar="N", help="Of the table, means if there are more points. 0: all points."
        ),
    ] = _NUM_ROWS,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all points, comma separated.")] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Print the loss, metrics and logged values of jobs by step.

    Several jobs stand side by side, those of an array with their values. A point is a mean over the steps since the
    point before it, a quarter of a second; `pliant submit --metrics-every 1`
    records every step as it is.

    \b
    pliant metrics digits
    pliant metrics 1 2 3 --name test_accuracy
    pliant metrics array-1 --name loss
    pliant metrics digits --csv > digits.csv
    """
    with open_client(context) as client:
        job_ids = job_ids_of(client, jobs)
        if as_csv or as_json or num_rows == 0:
            columns = [(job_id, found) for job_id in job_ids for found in _names(client, job_id, name or [])]
            points = (point for job_id, found in columns for point in client.series(job_id, found))
            _print_points(columns, _titles(client, columns), points, as_csv=as_csv, as_json=as_json)
        else:
            _print_means(client, job_ids, name or [], num_rows)


def _names(client: Client, job_id: str, wanted: Sequence[str]) -> list[str]:
    there = [series.name for series in client.chart(job_id, max_buckets=1).series]
    if missing := [name for name in wanted if name not in there]:
        known = f"it has {', '.join(there)}" if there else "it has reported nothing yet"
        raise NotFound(f"{job_id} has no series {missing[0]!r}; {known}")
    return [name for name in there if not wanted or name in wanted]


def _print_points(
    columns: Sequence[Column], titles: Sequence[str], points: Iterable[Metric], *, as_csv: bool, as_json: bool
) -> None:
    if as_json:
        for point in points:
            print_json_line(point)
        return
    by_step: dict[int, dict[Column, float]] = {}
    for point in points:
        by_step.setdefault(point.step, {})[point.job_id, point.name] = point.value
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["step", *titles])
        writer.writerows([step, *(by_step[step].get(column, "") for column in columns)] for step in sorted(by_step))
    else:
        _print_table(titles, _rows(columns, by_step))


def _print_means(client: Client, job_ids: Sequence[str], names: Sequence[str], num_rows: int) -> None:
    """Print means over as many ranges of steps, the same ones for all jobs; points as they are if they need no more."""
    columns = [(job_id, found) for job_id in job_ids for found in _names(client, job_id, names)]
    last = max((_last_step(client, job_id) for job_id in job_ids), default=0)
    width = max(1, -(-last // num_rows))
    points: dict[int, dict[Column, float]] = {}
    rows: dict[int, dict[Column, tuple[float, int]]] = {}
    for job_id, name in columns:
        for point in client.series(job_id, name):
            if point.step in points or len(points) <= num_rows:
                points.setdefault(point.step, {})[job_id, name] = point.value
            row = rows.setdefault(max(0, point.step - 1) // width, {})
            total, count = row.get((job_id, name), (0.0, 0))
            row[job_id, name] = (total + point.value, count + 1)
    if len(points) <= num_rows:
        _print_table(_titles(client, columns), _rows(columns, points))
        return
    shown = (
        [
            str(min(last, (number + 1) * width)),
            *_cells(columns, {column: total / count for column, (total, count) in row.items()}),
        ]
        for number, row in sorted(rows.items())
    )
    _print_table(_titles(client, columns), shown)


def _last_step(client: Client, job_id: str) -> int:
    series = client.chart(job_id, max_buckets=1).series
    return max((one.buckets[-1].last_step for one in series if one.buckets), default=0)


def _print_table(titles: Sequence[str], rows: Iterable[list[str]]) -> None:
    if not titles:
        say("nothing is reported yet")
        return
    columns = (TableColumn(title=title if "=" in title else title.upper(), right=True) for title in ("step", *titles))
    show(table(tuple(columns), rows))


def _titles(client: Client, columns: Sequence[Column]) -> list[str]:
    """Return what stands above the columns: of several jobs, which it is, with its values if it is of an array."""
    job_ids = dict.fromkeys(job_id for job_id, _ in columns)
    if len(job_ids) < 2:
        return [name for _, name in columns]
    labels = {job_id: label_of(client.job(job_id).job) for job_id in job_ids}
    return [f"{labels[job_id]} {name}" for job_id, name in columns]


def _rows(columns: Sequence[Column], by_step: Mapping[int, Mapping[Column, float]]) -> Iterator[list[str]]:
    for step in sorted(by_step):
        yield [str(step), *_cells(columns, by_step[step])]


def _cells(columns: Sequence[Column], row: Mapping[Column, float]) -> Iterator[str]:
    for column in columns:
        yield formatting.number(row[column]) if column in row else formatting.NOTHING
