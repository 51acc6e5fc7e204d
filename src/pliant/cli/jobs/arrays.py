"""What commands say and ask of arrays: values on the command line, jobs side by side, and their end."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import typer

from pliant.cli import formatting
from pliant.cli.screen import TableColumn, print_json, say, show, show_facts, state_text, table
from pliant.cli.session import is_array, job_id_of
from pliant.client import Client
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import Job
from pliant.core.lifecycle import JobState

if TYPE_CHECKING:
    from rich.text import Text

    from pliant.api.arrays import ArrayView

_AFTER_VALUES: Final = (
    TableColumn(title="STATE"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="EPOCH", right=True),
    TableColumn(title="DONE", right=True, optional=True),
    TableColumn(title="LOSS", right=True),
    TableColumn(title="LEFT", right=True),
)


def values_of(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of an array given as NAME=VALUE,VALUE.

    Raises:
        InvalidInput: with all that are none.
    """
    values: dict[str, list[str]] = {}
    problems = []
    for text in given:
        name, _, listed = text.partition("=")
        if not name:
            problems.append(Problem(field="--array", message=f"{text!r} has no name; give it as NAME=VALUE,VALUE"))
        elif not listed:
            problems.append(Problem(field="--array", message=f"{text!r} has no values; give it as NAME=VALUE,VALUE"))
        elif name in values:
            problems.append(Problem(field="--array", message=f"{name!r} is given twice; give all its values at once"))
        else:
            values[name] = listed.split(",")
    if problems:
        raise InvalidInput(*problems)
    return values


def names_of(client: Client, given: Mapping[str, Sequence[str] | None]) -> dict[str, tuple[str, ...]]:
    """Return what a job is to run after, by field: jobs by id, number or unique name, and arrays by id."""
    return {
        field: tuple(text if is_array(text) else job_id_of(client, text) for text in texts)
        for field, texts in given.items()
        if texts is not None
    }


def job_ids_of(client: Client, texts: Sequence[str]) -> list[str]:
    """Return the jobs that a person names, one by one or as an array, each once."""
    found: dict[str, None] = {}
    for text in texts:
        ids = [job.id for job in client.arrays.get(text).jobs] if is_array(text) else [job_id_of(client, text)]
        found |= dict.fromkeys(ids)
    return list(found)


def label_of(job: Job) -> str:
    """Return a job's id, with its values if it is of an array."""
    values = {} if job.spec.array is None else job.spec.array.values
    return " ".join((job.id, *(f"{name}={value}" for name, value in values.items())))


def how_it_is(array: "ArrayView") -> str:
    """Return in which states its jobs are: `2 running, 1 pending`."""
    return ", ".join(f"{number} {state.value}" for state in JobState if (number := array.states.get(state, 0)))


def show_array(array: "ArrayView", *, as_json: bool) -> None:
    """Show an array and its jobs."""
    if as_json:
        print_json(array)
        return
    show_facts(_facts(array))
    say("\nJobs", style="bold")
    names = list(array.jobs[0].spec.array.values) if array.jobs and array.jobs[0].spec.array else []
    columns = (TableColumn(title="JOB"), *(TableColumn(title=name, cut=True) for name in names), *_AFTER_VALUES)
    show(table(columns, map(_row, array.jobs)))


def _facts(array: "ArrayView") -> Iterator[tuple[str, str]]:
    yield "array", f"{array.id} ({array.name})"
    there = "" if len(array.jobs) == array.num_jobs else f" of {array.num_jobs} that were made"
    yield "jobs", f"{formatting.count_of(len(array.jobs), 'job')}{there}: {how_it_is(array)}"
    if array.max_running is not None:
        yield "at once", f"{array.max_running} at most"
    yield "submitted", f"{formatting.date_time(array.jobs[0].submitted_at)} by {array.owner}"


def _row(job: Job) -> "list[str | Text]":
    values = () if job.spec.array is None else job.spec.array.values.values()
    return [
        job.id,
        *values,
        state_text(job.state),
        str(job.num_slots),
        formatting.epochs(job.progress),
        formatting.percent(job.progress),
        formatting.loss(job.progress),
        formatting.time_left(job, formatting.short_duration),
    ]


def wait_for_array(client: Client, array_id: str) -> "ArrayView":
    """Return an array when all its jobs have ended; say on stderr how far it is whenever that changes."""
    said = ""

    def tell(array: "ArrayView") -> None:
        nonlocal said
        if (words := how_it_is(array)) != said:
            said = words
            say(f"{array.id}: {words}", stderr=True)

    try:
        return client.arrays.wait(array_id, timeout_s=math.inf, on_poll=tell)
    except KeyboardInterrupt:
        say(f"\n{array_id} goes on: `pliant show {array_id}` shows it, `pliant stop {array_id}` ends it", stderr=True)
        raise


def report_array(client: Client, array: "ArrayView", *, wait: bool, as_json: bool) -> None:
    """Say that an array was submitted; wait for its end if that is asked for, with code 1 unless all completed."""
    ids = f"{array.jobs[0].id} to {array.jobs[-1].id}" if len(array.jobs) > 1 else array.jobs[0].id
    said = f"{array.id} ({array.name}) is submitted: {formatting.count_of(len(array.jobs), 'job')}, {ids}"
    if not wait:
        if as_json:
            print_json(array)
        else:
            say(f"{said}; `pliant show {array.id}` shows how they are")
        return
    say(said, stderr=True)
    ended = wait_for_array(client, array.id)
    if as_json:
        print_json(ended)
    if any(job.state is not JobState.COMPLETED for job in ended.jobs):
        raise typer.Exit(1)
