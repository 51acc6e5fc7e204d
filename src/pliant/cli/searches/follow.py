"""Watches a search until it does not run any more: in a live table, or in one line for every change."""

import math
from typing import Final

import typer
from rich.live import Live

from pliant.api.searches import SearchView
from pliant.cli.screen import console, say
from pliant.cli.searches.frame import NUM_BEST, Going, SearchFrame, draw_search
from pliant.cli.session import all_jobs
from pliant.client import Client
from pliant.client.nouns.search_line import headline, news_of, outcome
from pliant.core.search import SearchState, TrialState

_POLL_S: Final = 1.0
_GOING: Final = (TrialState.RUNNING, TrialState.PAUSED)


def follow_search(client: Client, name: str, *, live: bool) -> SearchView:
    """Return a search when it does not run any more; say meanwhile how it is.

    Args:
        live: in a table that changes, if this is a terminal.
    """
    screen = console(stderr=True)
    try:
        if live and screen.is_terminal:
            with Live(console=screen, auto_refresh=False) as drawn:

                def draw(view: SearchView) -> None:
                    frame = look(client, view)
                    drawn.update(draw_search(frame, width=screen.width, height=screen.height), refresh=True)

                return client.searches.wait(name, timeout_s=math.inf, poll_s=_POLL_S, on_poll=draw)
        return client.searches.wait(name, timeout_s=math.inf, poll_s=_POLL_S, on_poll=ChangeLines().show)
    except KeyboardInterrupt:
        back = f"`pliant searches show {name}` shows it, `pliant searches stop {name}` pauses it"
        say(f"\n{name} goes on: {back}", stderr=True)
        raise


def look(client: Client, view: SearchView) -> SearchFrame:
    """Return what a frame shows of a search: those that train first, those that wait at a rung after them."""
    trials = sorted(client.searches.trials(view.name, states=_GOING), key=lambda one: one.state is TrialState.PAUSED)
    jobs = {job.id: job for job in all_jobs(client, ended=False, searches=[view.name])} if trials else {}
    best = client.searches.best(view.name, limit=NUM_BEST)
    going = tuple(Going(trial=one, job=jobs.get(one.job_id)) for one in trials)
    return SearchFrame(view=view, going=going, best=best)


class ChangeLines:
    """Says on stderr how a search is, whenever a trial has ended, or something else is otherwise than before."""

    def __init__(self) -> None:
        self._said: object = None

    def show(self, view: SearchView) -> None:
        """Say it, if it is news."""
        if view.state is SearchState.RUNNING and (news := news_of(view)) != self._said:
            self._said = news
            say(headline(view), stderr=True)


def report_end(view: SearchView) -> None:
    """Say how a search has come to rest; end with code 1 unless it completed."""
    for line in outcome(view):
        say(line, stderr=True)
    if view.best is not None:
        say(f"`pliant best {view.name}` fetches it, `pliant deploy {view.name}` serves it", stderr=True)
    elif view.state is SearchState.COMPLETED and len(view.settings.objectives) > 1 and view.nearest is None:
        say(f"`pliant searches best {view.name}` lists the trials that no other one beats", stderr=True)
    if view.state is not SearchState.COMPLETED:
        raise typer.Exit(1)
