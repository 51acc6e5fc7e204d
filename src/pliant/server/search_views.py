"""Searches as the answers of the REST API."""

from collections.abc import Sequence
from dataclasses import replace

from pliant.api.searches import SearchPage, SearchView, search_view
from pliant.core.access import Principal
from pliant.core.search import Search, SearchState
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
    return replace(search_view(search, trials=counts, best=best, now=requests.now()), notes=tuple(notes))
