"""HPO tasks: the searches that somebody sees, each with its experiments and with what IBM's API has kept of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from pliant.core.access import Principal
from pliant.core.errors import Conflict, NotFound, Unavailable
from pliant.core.job import Job, JobId
from pliant.core.search import Search
from pliant.ibm.rest.lookup import PAGE, read_pages
from pliant.ibm.rest.translate.hpo.record import HpoRecord
from pliant.ibm.rest.translate.hpo.shapes import RECOVERING, Series, Tried, hpo_json
from pliant.server.context import Context
from pliant.tune.searches.result_file import read_results
from pliant.tune.searches.use_cases import SearchRequests

_MAX_POINTS: Final = 2000
"""Of a metric besides the objective so many are looked at."""


def searches_of(context: Context) -> SearchRequests:
    """Return the use cases.

    Raises:
        Unavailable: this server has none.
    """
    if context.searches is None:
        raise Unavailable("this server keeps no searches; start one that does")
    return context.searches


def list_hpo(context: Context, caller: Principal) -> list[dict[str, Any]]:
    """Return the descriptions of all searches that somebody sees."""
    found = read_pages(lambda after, limit: searches_of(context).page(caller, after, limit))
    return [describe(context, caller, search, extra=False) for search in found]


def own_hpo(context: Context, caller: Principal) -> list[str]:
    """Return the names of the searches that somebody has begun through this API."""
    found = read_pages(lambda after, limit: searches_of(context).page(caller, after, limit))
    return [one.name for one in found if one.owner == caller.name and find_record(context, one) is not None]


def show_hpo(context: Context, caller: Principal, name: str) -> dict[str, Any]:
    """Return the description of a search.

    Raises:
        NotFound: none that they see.
    """
    return describe(context, caller, searches_of(context).get(caller, name), extra=True)


def keep_record(context: Context, record: HpoRecord) -> None:
    """Keep what was sent; in the place of what a removed search of the same name has left."""
    try:
        context.registry.add(record, at=record.made_at)
    except Conflict:
        context.registry.replace(record, at=record.made_at)


def forget_record(context: Context, name: str) -> None:
    """Forget what was sent; nothing is fine."""
    try:
        context.registry.remove(HpoRecord, name)
    except NotFound:
        return


def jobs_under_way(context: Context, caller: Principal, name: str) -> Iterator[Job]:
    """Yield the jobs of trials that hold slots, or wait for them.

    Raises:
        NotFound: no search of that name that they see.
    """
    for one in _tried(context, caller, searches_of(context).get(caller, name)):
        if one.job is not None and not one.job.ended:
            yield one.job


def find_record(context: Context, search: Search) -> HpoRecord | None:
    """Return what was sent; None if it was begun otherwise."""
    kept = context.registry.get(HpoRecord, search.name)
    return None if kept is None or kept.noun.made_at != search.created_at else kept.noun


def describe(context: Context, caller: Principal, search: Search, *, extra: bool) -> dict[str, Any]:
    """Return the description of a search; metrics besides the objective are looked for only if asked."""
    record = find_record(context, search)
    if record is None:
        record = HpoRecord(name=search.name, owner=search.owner, made_at=search.created_at)
    tried = _tried(context, caller, search)
    names = record.algorithm.get("additionalMetrics")
    if extra and isinstance(names, Mapping) and names:
        tried = (replace(one, series=_series(context, one.trial.job_id, tuple(names))) for one in tried)
    requests = searches_of(context)
    found = hpo_json(search, tuple(tried), record, requests.now())
    return found | {"state": RECOVERING} if requests.is_recovering(search) else found


def _tried(context: Context, caller: Principal, search: Search) -> Iterator[Tried]:
    requests, after = searches_of(context), -1
    last: int | None = after
    while last is not None:
        trials, last = requests.trials(caller, search.name, after=after, limit=PAGE, states=())
        for trial in trials:
            if trial.number < search.num_trials:  # later ones were chosen since it was looked up
                yield Tried(trial=trial, job=_find_job(context, trial.job_id))
        after = last if last is not None else after


def _find_job(context: Context, job_id: JobId) -> Job | None:
    try:
        return context.control.queries.job(job_id)
    except NotFound:
        return None


def _series(context: Context, job_id: JobId, names: Sequence[str]) -> Series:
    """Return what a job has reported, or left in its file; the latest, as a search looks at it."""
    left = read_results(context.control.settings.folders(job_id).result)
    points = context.control.trials.reports(job_id, names, -1)[-_MAX_POINTS:]
    reported: dict[str, list[float]] = {}
    for point in points:
        reported.setdefault(point.name, []).append(point.value)
    filed = {name: [point.value for point in left[name]] for name in names if name in left}
    return dict(chain(filed.items(), reported.items()))
