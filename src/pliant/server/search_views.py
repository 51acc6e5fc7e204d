"""Searches as the answers of the REST API."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pliant.api.searches import SearchPage, SearchView, SearchWhy, TrialWhy, search_view
from pliant.core.access import Principal
from pliant.core.job import Job
from pliant.core.search import Search, SearchState, Trial
from pliant.tune.searches.use_cases import SearchRequests


def page_of(
    requests: SearchRequests, caller: Principal, after: str, limit: int, states: Sequence[SearchState]
) -> SearchPage:
    """Return searches that somebody sees, in the order of their names."""
    found, last = requests.page(caller, after, limit, states)
    return SearchPage(searches=tuple(view_of(requests, search) for search in found), next=last)


def view_of(requests: SearchRequests, search: Search, notes: Sequence[str] = ()) -> SearchView:
    """Return a search with how far it is, without its secrets."""
    best = None if search.best is None else requests.find_trial(search.name, search.best)
    counts = requests.num_trials(search.name)
    best = None if best is None else best.without_attributes()
    eta_s = requests.outlook.seconds_left(search.name)
    view = search_view(search, trials=counts, best=best, eta_s=eta_s, now=requests.now())
    places = requests.outlook.places(search)
    if places is not None:
        view = replace(view, num_at_once=places.num, why_at_once=places.reason)
    return replace(view, notes=tuple(notes), colour=requests.outlook.colour(search.name))


def why_of(requests: SearchRequests, name: str, jobs_of: Callable[[str], Iterable[Job]]) -> SearchWhy:
    """Return why a search has the slots it has.

    Args:
        jobs_of: returns the jobs of a search that have not ended, as far as the caller sees them.
    """
    standing = requests.outlook.explain(name)
    jobs = {job.id: job for job in jobs_of(name)}
    return SearchWhy(
        name=name,
        state=standing.search.state,
        num_slots=sum(job.num_slots for job in jobs.values()),
        sentences=standing.sentences,
        trials=tuple(_why_of_trial(trial, jobs.get(trial.job_id)) for trial in standing.training),
        remark=standing.search.remark,
    )


def _why_of_trial(trial: Trial, job: Job | None) -> TrialWhy:
    return TrialWhy(
        number=trial.number,
        job_id=trial.job_id,
        job_state=None if job is None else job.state,
        num_slots=0 if job is None else job.num_slots,
        sentence=(job.why or job.reason) if job is not None else "its job is not queued yet, or not yours to see",
    )
