"""Keeps searches going: takes in what their jobs say, decides what follows, and brings the jobs in line with that.

One thread, which looks whenever something has happened, and once a second. It decides nothing itself (`policy.tuning`).
What it was about to do when a server died, the next one's does: trials and jobs say all that it has to know.

    trial running, its job not there      the job is queued, under the id that the trial has had from the beginning
    trial paused, its job not held        the job is held: it leaves its slots at a step boundary
    trial running, its job held           the job goes on
    trial ended, its job not              the job is stopped
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, PliantError, Unavailable, UserError
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState
from pliant.core.search import SearchSettings, SearchState, Trial, TrialState
from pliant.policy.tuning.advance import advance, bracket_to_ask
from pliant.policy.tuning.constraints import is_measured
from pliant.policy.tuning.intake import JobNews
from pliant.policy.tuning.rungs import chosen, due_to_go_on, has_arrived, is_to_begin, rungs_of, unended
from pliant.tune.searches.archives import SearchArchives
from pliant.tune.searches.asking import Asker, num_places
from pliant.tune.searches.asking_thread import AskerThread, RunningAsker
from pliant.tune.searches.book import OpenSearch, SearchBook
from pliant.tune.searches.ports import LiveTrial, SearchPorts
from pliant.tune.searches.trial_job import spec_of

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
_REST_S: Final = 0.02
"""Between two looks: events come in bursts."""


_Key = tuple[str, JobId]
"""A job of a trial, after the name of its search, which another search may have later."""


class SearchKeeper:
    """Keeps all searches of a server going.

    Args:
        run_asker: lets somebody ask for a search from now on.
    """

    def __init__(
        self,
        *,
        book: SearchBook,
        archives: SearchArchives,
        ports: SearchPorts,
        run_asker: Callable[[Asker], RunningAsker] = AskerThread,
    ) -> None:
        self._book = book
        self._archives = archives
        self._ports = ports
        self._run_asker = run_asker
        self._askers: dict[str, RunningAsker] = {}
        self._queued: set[_Key] = set()
        """Jobs that are known to have been queued."""
        self._read: dict[_Key, int] = {}
        """Up to which step the values of each are known."""
        self._used: dict[_Key, float] = {}
        """Slot hours of those that have ended, in searches with a limit of them."""
        self._looked_at: Collection[str] = ()
        """Searches that ran at the last look, or had jobs: what these came to since is still to be taken in."""
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._said = ""

    def run(self) -> None:
        """Look until `close`."""
        while not self._closed.is_set():
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            if not self._closed.is_set():
                self._look_safely()
            self._closed.wait(_REST_S)
        for asker in self._askers.values():
            asker.close()

    def wake(self) -> None:
        """Look now; from any thread."""
        self._wake.set()

    def close(self) -> None:
        """End `run`."""
        self._closed.set()
        self._wake.set()

    def look(self) -> None:
        """Bring all searches in line once."""
        live: dict[str, list[LiveTrial]] = {}
        for one in self._ports.jobs.live():
            live.setdefault(one.search, []).append(one)
        going = {*self._book.running(), *live}
        names = {*going, *self._looked_at}
        self._forget_all_but(names)
        for name in sorted(names):
            found = self._book.find(name)
            if found is None:
                for one in live.get(name, ()):
                    self._ports.jobs.stop(one.job_id, "its search is over")
            else:
                self._look_at(name, found, {one.job_id for one in live.get(name, ())})
                self._align(name, live.get(name, []))
        self._looked_at = going

    def _forget_all_but(self, names: Collection[str]) -> None:
        """Forget what is known of searches that are at rest."""
        self._book.keep_open(names)
        self._queued = {key for key in self._queued if key[0] in names}
        self._read = {key: step for key, step in self._read.items() if key[0] in names}
        self._used = {key: hours for key, hours in self._used.items() if key[0] in names}

    def _look_safely(self) -> None:
        try:
            self.look()
            self._said = ""
        except PliantError as error:
            if str(error) != self._said:
                log.warning("searches cannot be looked after now, it is tried again: %s", error)
            self._said = str(error)
        except Exception:
            log.exception("searches could not be looked after; it is tried again")

    def _look_at(self, name: str, found: OpenSearch, live: Collection[JobId]) -> None:
        """Take in what the jobs of a search say, and decide what follows."""
        search = found.search
        going = unended(found.trials)
        news = {trial.number: self._news(found, trial) for trial in _may_have_news(search.settings, going)}
        news |= {trial.number: one for trial in going if (one := self._at_rung(found, trial)) is not None}
        limit = search.settings.max_slot_hours
        used = 0.0 if limit is None else self._slot_hours(found, live)
        places = num_places(found, self._ports)
        with self._book.lock:
            now = self._book.find(name)
            if now is None or now.search.created_at != search.created_at:
                return  # it was removed meanwhile, and perhaps another one was begun
            step = self._book.begin(now, self._ports.now())
            job_ids = (self._ports.jobs.reserve() for _ in count())
            advance(step, news, num_places=places, slot_hours=used, job_ids=job_ids)
            if self._book.commit(step):
                self.wake()  # what follows from it for jobs is done at the next look at the latest
            self._book.take_up(name)
        for number, one in news.items():
            if points := one.series.get(search.settings.objectives[0].metric):
                self._read[name, found.trials[number].job_id] = points[-1].step
        self._ask(name, now, places)

    def _slot_hours(self, found: OpenSearch, live: Collection[JobId]) -> float:
        """Return what the jobs of a search have used; those that have ended are asked for once."""
        used = 0.0
        for trial in tuple(chosen(found.trials)):
            if is_to_begin(trial, found.search.settings):
                continue
            key = (trial.search, trial.job_id)
            hours = self._used.get(key)
            if hours is None:
                hours = self._ports.jobs.slot_hours([trial.job_id])
                if trial.ended and trial.job_id not in live:
                    self._used[key] = hours
            used += hours
        return used

    def _news(self, found: OpenSearch, trial: Trial) -> JobNews:
        search = found.search
        try:
            self._ensure_queued(found, trial)
        except Unavailable:
            raise
        except UserError as error:
            return JobNews(state=JobState.FAILED, reason=f"its job could not be queued: {error}")
        read = self._read.get((trial.search, trial.job_id), -1)
        settings = search.settings
        return self._ports.jobs.news(trial.job_id, (*settings.objectives, *settings.constraints), read)

    def _at_rung(self, found: OpenSearch, trial: Trial) -> JobNews | None:
        """Return what of a trial that waits at a rung is still to be known there; None: nothing, or it is not there."""
        settings = found.search.settings
        if trial.state is not TrialState.PAUSED or is_measured(settings, trial):
            return None
        rungs = rungs_of(settings, trial.bracket)
        if not has_arrived(trial, rungs):
            return None
        values = self._ports.jobs.values_at_rung(trial.job_id, settings, rungs[trial.rung])
        return None if values is None else JobNews(state=JobState.PAUSED, at_rung=values)

    def _ensure_queued(self, found: OpenSearch, trial: Trial) -> None:
        key = (trial.search, trial.job_id)
        if key in self._queued:
            return
        search, parent = found.search, None if trial.parent is None else found.trials[trial.parent]
        self._ports.jobs.submit(
            trial.job_id,
            spec_of(search, trial, parent),
            self._archives.path(search.checksum),
            search.owner,
            VisibleJobs(owner=search.owner),
        )
        self._queued.add(key)

    def _align(self, name: str, live: Sequence[LiveTrial]) -> None:
        """Bring the jobs of a search in line with its trials."""
        found = self._book.find(name)
        if found is None:
            return
        is_stopped = found.search.state is SearchState.STOPPED
        for one in live:
            trial = found.trials[one.number] if one.number < len(found.trials) else None
            if trial is None or trial.job_id != one.job_id or trial.ended:
                self._ports.jobs.stop(one.job_id, _why(name, trial))
                continue
            hold = is_stopped or trial.state is TrialState.PAUSED
            if hold and not one.held:
                with suppress(Conflict):  # a fixed job cannot pause: it trains on to its end
                    self._ports.jobs.hold(one.job_id, f"the search {name} is stopped" if is_stopped else trial.reason)
            elif one.held and not hold:
                self._ports.jobs.release(one.job_id, trial.reason or f"the search {name} goes on")

    def _ask(self, name: str, found: OpenSearch, places: int) -> None:
        """Have somebody ask if there is something to ask."""
        asker, search = self._askers.get(name), found.search
        if search.state is not SearchState.RUNNING:
            if asker is not None:
                self._askers.pop(name).close()
            return
        has_pruner = search.settings.pruner is not None
        if not has_pruner and bracket_to_ask(search, found.trials, num_places=places) is None:
            return
        if asker is None or asker.has_ended:
            asker = self._askers[name] = self._run_asker(Asker(name, self._book, self._ports))
        asker.wake()


def _may_have_news(settings: SearchSettings, trials: Sequence[Trial]) -> Sequence[Trial]:
    """Return the trials whose jobs may have come to something: not those that wait at a rung, or have no job yet."""
    training = [trial for trial in trials if trial.state is TrialState.RUNNING]
    return [*training, *(trial for trial in due_to_go_on(settings, trials) if not is_to_begin(trial, settings))]


def _why(name: str, trial: Trial | None) -> str:
    because = f": {trial.reason.splitlines()[0]}" if trial is not None and trial.reason else ""
    return f"the search {name} stopped it{because}"
