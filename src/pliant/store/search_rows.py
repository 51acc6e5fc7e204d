"""Turns searches, their trials and decisions into rows and back. Knows the columns, no queries.

What comes out equals what went in, by value and by type: NaN and infinities are there, True is not 1, and 1 not 1.0.
Lists come out as tuples. Bodies are JSON with these three numbers in it, so their columns are text.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json
from sqlalchemy import RowMapping

from pliant.core.job import JobId
from pliant.core.search import Decision, Search, Trial, TrialState
from pliant.store.rows import Row, clean


def search_row(search: Search) -> Row:
    """Return the columns of a search, but for what its sampler continues from."""
    return {
        "name": search.name,
        "owner": search.owner,
        "state": search.state.value,
        "created_at": search.created_at,
        "revision": search.revision,
        "body": _text(_adapter().dump_python(search)),
    }


def search_of(row: RowMapping) -> Search:
    """Return the search that a row holds."""
    search: Search = _adapter().validate_python(from_json(row["body"]))
    return search


def trial_row(trial: Trial) -> Row:
    """Return the columns of a trial."""
    return {
        "search": trial.search,
        "number": trial.number,
        "state": trial.state.value,
        "job_id": trial.job_id,
        "result": _result_that_counts(trial),
        "body": _text({field.name: _plain(getattr(trial, field.name)) for field in fields(trial)}),
    }


def trial_of(row: RowMapping) -> Trial:
    """Return the trial that a row holds."""
    body = from_json(row["body"])
    columns = {
        "values": _tuples(body["values"]),
        "state": TrialState(body["state"]),
        "job_id": JobId(body["job_id"]),
        "reports": tuple(map(tuple, body["reports"])),
        "results": _tuples(body["results"]),
        "violations": _tuples(body.get("violations", [])),
        "rung_violations": _tuples(body.get("rung_violations", [])),
        "attributes": _tuples(body["attributes"]),
    }
    return Trial(**{**body, **columns})


def decision_row(decision: Decision) -> Row:
    """Return the columns of a decision."""
    columns = {field.name: getattr(decision, field.name) for field in fields(decision)}
    return columns | {"reason": clean(decision.reason)}


def decision_of(row: RowMapping) -> Decision:
    """Return the decision that a row holds."""
    return Decision(**{field.name: row[field.name] for field in fields(Decision)})


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Search)


def _result_that_counts(trial: Trial) -> float | None:
    if not trial.is_feasible:
        return None
    first = trial.results[0] if trial.results else math.nan
    return None if math.isnan(first) else first


def _text(document: Row) -> str:
    """Return JSON in which paths stand as they are, so that a backup finds those that lead into its home."""
    return clean(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _tuples(value: Any) -> Any:
    """Return what was read from JSON with tuples in place of its lists."""
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    if isinstance(value, dict):
        return {name: _tuples(one) for name, one in value.items()}
    return value
