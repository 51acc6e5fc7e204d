"""Turns nouns into rows and rows into nouns. Knows the columns, no queries.

What comes out equals what went in, NaN included. Free text loses only what no database holds: lone surrogates and NUL.
"""

import math
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any, Final, get_args, get_type_hints

from pydantic import TypeAdapter
from sqlalchemy import RowMapping

from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import DeletedJob, Generation, Job, JobId, JobSpec, Metric, NodeId, Progress, Task, TaskId
from pliant.core.job_filter import text_of
from pliant.core.lifecycle import GenerationState, JobState, TaskState
from pliant.core.slot_history import CapacitySpan

Row = dict[str, Any]

_NON_FINITE: Final[Mapping[str, float]] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_LISTS: Final = ("args", "after", "after_any")
"""Fields of what was asked for that are lists in JSON."""
_DICTS: Final = ("env", "tags", "data_parts")
_PARTS: Final[Mapping[str, TypeAdapter[Any]]] = {
    name: TypeAdapter(hint) for name, hint in get_type_hints(JobSpec).items() if any(map(is_dataclass, get_args(hint)))
}
"""Fields that are nouns of their own, such as which job of an array it is, or None."""


def job_row(job: Job) -> Row:
    """Return the columns of a job, but for its ordinal."""
    row = _columns(job)
    row.update(
        state=job.state.value,
        name=clean(job.spec.name),
        queue=clean(job.queue),
        reason=clean(job.reason),
        why=clean(job.why),
        hold=clean(job.hold),
        claim_reason=clean(job.claim_reason),
        fingerprint=clean(job.fingerprint),
        spec=_spec_json(job.spec),
        params=dict(job.params) or None,
        tags=dict(job.tags) or None,
        progress=None if job.progress is None else _progress_json(job.progress),
        after=list(job.after) or None,
        after_any=list(job.after_any) or None,
        array_id=None if job.spec.array is None else job.spec.array.id,
        search=None if job.spec.trial is None else job.spec.trial.search,
        endpoint=None if job.spec.endpoint is None else job.spec.endpoint.name,
        kind=job.spec.kind,
    )
    return row


def job_of(row: RowMapping) -> Job:
    """Return the job that a row holds."""
    columns = {field.name: row[field.name] for field in fields(Job)}
    columns.update(
        state=JobState(row["state"]),
        spec=_spec_of(row["spec"]),
        params=row["params"] or {},
        tags=row["tags"] or {},
        progress=_progress_of(row["progress"]),
        after=tuple(row["after"] or ()),
        after_any=tuple(row["after_any"] or ()),
    )
    return Job(**columns)


def tag_rows(job: Job) -> list[Row]:
    """Return what a job is found by."""
    return [{"job_id": job.id, "name": name, "value": value} for name, value in job.tags.items()]


def text_row(job: Job) -> Row:
    """Return the text that a job is searched in."""
    return {"job_id": job.id, "text": clean(text_of(job))}


def deleted_row(deleted: DeletedJob) -> Row:
    """Return the columns of a deleted job, but for its ordinal."""
    return _columns(deleted)


def deleted_of(row: RowMapping) -> DeletedJob:
    """Return the deleted job that a row holds."""
    return DeletedJob(**{field.name: row[field.name] for field in fields(DeletedJob)})


def task_row(task: Task) -> Row:
    """Return the columns of a task, but for its ordinal."""
    return _columns(task) | {"slots": list(task.slots), "state": task.state.value, "reason": clean(task.reason)}


def task_of(row: RowMapping) -> Task:
    """Return the task that a row holds."""
    columns = {field.name: row[_column(field)] for field in fields(Task)}
    columns.update(
        id=TaskId(row["id"]),
        job_id=JobId(row["job_id"]),
        node_id=NodeId(row["node_id"]),
        slots=tuple(row["slots"]),
        state=TaskState(row["state"]),
    )
    return Task(**columns)


def generation_row(generation: Generation) -> Row:
    """Return the columns of a generation."""
    return _columns(generation) | {
        "members": list(generation.members),
        "state": generation.state.value,
        "cause": clean(generation.cause),
    }


def generation_of(row: RowMapping) -> Generation:
    """Return the generation that a row holds."""
    columns = {field.name: row[field.name] for field in fields(Generation)}
    columns.update(members=tuple(row["members"]), state=GenerationState(row["state"]))
    return Generation(**columns)


def event_row(event: Event) -> Row:
    """Return the columns of a numbered event."""
    return _columns(event) | {
        "kind": event.kind.value,
        "message": clean(event.message),
        "data": _numbers_out(event.data),
    }


def event_of(row: RowMapping) -> Event:
    """Return the event that a row holds."""
    columns = {field.name: row[field.name] for field in fields(Event)}
    columns.update(kind=EventKind(row["kind"]), data=_numbers_in(row["data"]))
    return Event(**columns)


def metric_row(metric: Metric) -> Row:
    """Return the columns of a point."""
    return _columns(metric) | {"value": None if math.isnan(metric.value) else metric.value}


def metric_of(row: RowMapping) -> Metric:
    """Return the point that a row holds."""
    columns = {field.name: row[field.name] for field in fields(Metric)}
    columns["value"] = math.nan if row["value"] is None else row["value"]
    return Metric(**columns)


def usage_row(usage: Usage) -> Row:
    """Return the columns of a usage point, but for its ordinal."""
    return _columns(usage)


def usage_of(row: RowMapping) -> Usage:
    """Return the usage point that a row holds."""
    return Usage(at=row["at"], job_id=JobId(row["job_id"]), num_slots=row["num_slots"])


def capacity_row(span: CapacitySpan) -> Row:
    """Return the columns of a span of capacity."""
    return _columns(span)


def _columns(
    noun: Job | DeletedJob | JobSpec | Progress | Task | Generation | Event | Metric | Usage | CapacitySpan,
) -> Row:
    return {_column(field): getattr(noun, field.name) for field in fields(noun)}


def _column(field: Field[Any]) -> str:
    return str(field.metadata.get("alias", field.name))


def _spec_json(spec: JobSpec) -> Row:
    lists = {name: list(getattr(spec, name)) for name in _LISTS}
    dicts = {name: dict(getattr(spec, name)) for name in _DICTS}
    parts = {name: part.dump_python(getattr(spec, name)) for name, part in _PARTS.items()}
    return _columns(spec) | lists | dicts | parts


def _spec_of(document: Mapping[str, Any]) -> JobSpec:
    lists = {name: tuple(document.get(name, ())) for name in _LISTS}
    parts = {name: part.validate_python(document.get(name)) for name, part in _PARTS.items()}
    return JobSpec(**{**document, **lists, **parts})


def _progress_json(progress: Progress) -> Row:
    lists = {"metrics": _numbers_out(progress.metrics), "shares": list(progress.shares)}
    return _numbers_out(_columns(progress)) | lists


def _progress_of(document: Mapping[str, Any] | None) -> Progress | None:
    if document is None:
        return None
    numbers = {name: value for name, value in document.items() if name not in ("metrics", "shares")}
    metrics, shares = _numbers_in(document["metrics"]), tuple(document.get("shares", ()))
    return Progress(**_numbers_in(numbers), metrics=metrics, shares=shares)


def _numbers_out(values: Mapping[str, Any]) -> Row:
    """Return a copy in which a number that JSON lacks is an object that names it: {"float": "NaN"}."""
    return {name: _number_out(value) for name, value in values.items()}


def _number_out(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": next(name for name, number in _NON_FINITE.items() if _same(number, value))}
    return value


def _numbers_in(values: Mapping[str, Any]) -> Row:
    """Undo `_numbers_out`."""
    return {
        name: _NON_FINITE[value["float"]] if isinstance(value, dict) and set(value) == {"float"} else value
        for name, value in values.items()
    }


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def clean(text: str) -> str:
    """Return a text without what no database holds."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\N{REPLACEMENT CHARACTER}")
