"""Searches as the answers of the REST API."""

from collections.abc import Sequence
from dataclasses import replace

from pliant.api.searches import SearchPage, SearchView
from pliant.api.view import fill
from pliant.core.access import Principal
from pliant.core.search import ENDED, Search, SearchState, Trial
from pliant.core.secret_names import hide_secrets
from pliant.tune.searches.use_cases import SearchRequests


def page_of(requests: SearchRequests, caller: Principal, after: str, limit: int) -> SearchPage:
    """Return searches that somebody sees, in the order of their names."""
    found, last = requests.page(caller, after, limit)
    return SearchPage(searches=tuple(view_of(requests, search) for search in found), next=last)


def view_of(requests: SearchRequests, search: Search, notes: Sequence[str] = ()) -> SearchView:
    """Return a search with how far it is, without its secrets."""
    counts = requests.num_trials(search.name)
    num_ended = sum(number for state, number in counts.items() if state in ENDED)
    progress = None if search.settings.max_trials is None else min(1.0, num_ended / search.settings.max_trials)
    return fill(
        SearchView,
        search,
        job=replace(search.job, env=hide_secrets(search.job.env)),
        trials=counts,
        best=_best(requests, search),
        progress=progress,
        eta_s=_eta_s(requests, search, progress),
        ran_s=requests.ran_s(search),
        notes=tuple(notes),
    )


def _best(requests: SearchRequests, search: Search) -> Trial | None:
    return None if search.best is None else requests.find_trial(search.name, search.best)


def _eta_s(requests: SearchRequests, search: Search, progress: float | None) -> float | None:
    """Return how long it takes at the pace so far; None if nobody knows."""
    if search.state is not SearchState.RUNNING or not progress:
        return None
    return requests.ran_s(search) * (1 - progress) / progress
