"""A search of many trials: what asking, deciding, reporting and listing take, on SQLite, with jobs that are played."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bench._report import Claim, spread, table
from bench.tune.part import Part
from bench.tune.played import PlayedJobs
from pliant.core.access import Principal, Role
from pliant.core.job import JobId, JobSpec
from pliant.core.search import (
    Decision,
    Halving,
    Objective,
    Sampler,
    Search,
    SearchSettings,
    SearchWrites,
    Trial,
    TrialState,
)
from pliant.core.space import SearchParameter, Values
from pliant.store.sql import SqlStore
from pliant.tune.advice import Adviser, AdviserInput
from pliant.tune.adviser_process import AdviserProcess, own_program
from pliant.tune.searches.archives import SearchArchives
from pliant.tune.searches.asking import Asker
from pliant.tune.searches.book import SearchBook
from pliant.tune.searches.keeper import SearchKeeper
from pliant.tune.searches.ports import SearchPorts
from pliant.tune.searches.use_cases import SearchRequests

MAX_ASK_MS: Final = 50.0
ASK_AT: Final = 1000
"""The claim about asking is made with so many trials."""
MAX_LIST_MS: Final = 100.0
MAX_STEP_MS: Final = 100.0
NUM_PLACES: Final = 8
NUM_EPOCHS: Final = 10
ADMIN: Final = Principal(name="admin", role=Role.ADMIN)
NAME: Final = "many"
_BATCH: Final = 1000
SEARCHES: Final[Mapping[str, Halving | None]] = {
    "without rungs": None,
    "halving by whole rungs": Halving(min=1, max=9, size=1000),
    "halving by arrival": Halving(min=1, max=9, order="arrival"),
}


def measure(num_trials: int, num_calls: int) -> Part:
    """Return what calls take when a search has so many trials, each timed so many times, milliseconds."""
    rows: list[Sequence[str]] = [("", "median [min max], ms")]
    claims: list[Claim] = []
    for count in sorted({min(ASK_AT, num_trials), num_trials}):
        times = _asked(count, num_calls)
        rows.append((f"ask TPE, {count:,} trials, through the adviser's process", spread(times)))
        if count == ASK_AT:
            claims.append(_claim(f"TPE answers within {MAX_ASK_MS:.0f} ms with {ASK_AT:,} trials", times, MAX_ASK_MS))
    for what, halving in SEARCHES.items():
        for name, times in _kept(num_trials, num_calls, halving).items():
            rows.append((f"{name}; {what}", spread(times)))
            if name.startswith("list"):
                claims.append(_claim(f"{name}, {what}: {MAX_LIST_MS:.0f} ms", times, MAX_LIST_MS))
            elif name.startswith("step"):
                claims.append(_claim(f"{name}, {what}: {MAX_STEP_MS:.0f} ms", times, MAX_STEP_MS))
    how = f"A search of {num_trials:,} trials of {NUM_EPOCHS} epochs on SQLite; all but {NUM_PLACES} have ended."
    return Part(title="Many trials", text=f"{how}\n\n{table(*rows)}", claims=claims)


def _claim(text: str, times: Sequence[float], limit_ms: float) -> Claim:
    found = statistics.median(times)
    return Claim(text=text, found=f"{found:.1f} ms", holds=found <= limit_ms)


def _timed(call: Callable[[int], object], num_calls: int) -> list[float]:
    """Return how long a call took, milliseconds; the first is not counted."""
    times = []
    for number in range(num_calls + 1):
        began = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - began) * 1000)
    return times[1:]


def settings_of(num_trials: int, sampler: Sampler, halving: Halving | None = None) -> SearchSettings:
    """Return the settings of the search."""
    return SearchSettings(
        parameters={
            "lr": SearchParameter(kind="float", low=1e-5, high=0.1, log=True),
            "momentum": SearchParameter(kind="float", low=0.0, high=0.99),
            "width": SearchParameter(kind="int", low=8, high=256),
            "act": SearchParameter(kind="choice", choices=("relu", "gelu", "tanh")),
        },
        objectives=(Objective(metric="val_loss", direction="minimize"),),
        sampler=sampler,
        halving=halving,
        max_trials=num_trials,
        parallel=NUM_PLACES,
    )


def values_of(number: int) -> Values:
    """Return the values of a trial that was not asked for."""
    unit = (number * 0.6180339887498949) % 1
    act = ("relu", "gelu", "tanh")[number % 3]
    return {"lr": 1e-5 * 10 ** (4 * unit), "momentum": 0.99 * unit, "width": 8 + number % 249, "act": act}


def ended(number: int, bracket: int = 0) -> Trial:
    """Return a trial that has ended: two of three at the first rung."""
    reports = tuple((epoch, (1 + number * 7919 % 1000) / 1000 / epoch) for epoch in range(1, NUM_EPOCHS + 1))
    is_pruned = number % 3 != 0
    last = reports[0] if is_pruned else reports[-1]
    return Trial(
        search=NAME,
        number=number,
        values=values_of(number),
        state=TrialState.PRUNED if is_pruned else TrialState.COMPLETED,
        job_id=JobId(f"job-{number + 1}"),
        bracket=bracket,
        rung=0 if is_pruned else 2,
        reports=reports[:1] if is_pruned else reports,
        results=(last[1],),
        begun_at=float(number),
        ended_at=number + 1.0,
    )


def _asked(num_trials: int, num_calls: int) -> list[float]:
    """Return how long an answer of TPE takes that knows so many trials."""
    trials = [ended(number) for number in range(num_trials)]
    settings = settings_of(2 * num_trials, Sampler(name="tpe", seed=1))
    adviser = _open_adviser(AdviserInput(name=NAME, settings=settings, trials=tuple(trials)))
    try:
        return _timed(lambda turn: adviser.ask(num_trials + turn, [ended(num_trials + turn - 1)]), num_calls)
    finally:
        adviser.close()


@dataclass(slots=True)
class Kept:
    """A search with all that keeps it going, but for threads."""

    store: SqlStore
    jobs: PlayedJobs
    book: SearchBook
    keeper: SearchKeeper
    requests: SearchRequests
    asker: Asker


@dataclass(slots=True)
class _Nobody:
    """Asks nothing: asking is timed by itself."""

    asker: Asker
    has_ended: bool = field(default=False)

    def wake(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def _open(num_trials: int, halving: Halving | None) -> Iterator[Kept]:
    with tempfile.TemporaryDirectory(prefix="plb-") as folder:
        store = SqlStore(f"sqlite:///{folder}/pliant.db")
        jobs = PlayedJobs(most=NUM_PLACES, num_epochs=NUM_EPOCHS, num_reserved=num_trials)
        ports = SearchPorts(
            searches=store.searches,
            jobs=jobs,
            open_adviser=_open_adviser,
            problems_of=lambda _settings: (),
            unknown_users=lambda _names: (),
            now=time.time,
            changed=lambda _search: None,
        )
        book = SearchBook(store.searches, ports.changed)
        archives = SearchArchives(Path(folder) / "searches")
        _fill(store, num_trials, halving)
        try:
            yield Kept(
                store=store,
                jobs=jobs,
                book=book,
                keeper=SearchKeeper(book=book, archives=archives, ports=ports, run_asker=_Nobody),
                requests=SearchRequests(book=book, archives=archives, ports=ports, new_name=lambda: NAME),
                asker=Asker(NAME, book, ports),
            )
        finally:
            store.close()


def _open_adviser(opening: AdviserInput) -> Adviser:
    return AdviserProcess(opening, own_program(opening, os.environ))


def _fill(store: SqlStore, num_trials: int, halving: Halving | None) -> None:
    settings = settings_of(2 * num_trials, Sampler(name="random", seed=1), halving)
    job = JobSpec(name="digits", script="train.py", virtual_workers=8, max_tasks=4)
    search = Search(
        name=NAME, owner="admin", settings=settings, job=job, checksum="0" * 64, created_at=0.0, running_since=0.0
    )
    store.searches.add(search)
    size = num_trials if halving is None or halving.size is None else halving.size
    for start in range(0, num_trials, _BATCH):
        trials = [ended(number, number // size) for number in range(start, min(start + _BATCH, num_trials))]
        search = replace(search, position=trials[-1].number + 1, num_trials=trials[-1].number + 1)
        decisions = [
            Decision(search=NAME, position=one.number + 1, at=0.0, kind="ask", trial=one.number, reason="chosen")
            for one in trials
        ]
        store.searches.write(SearchWrites(search=search, trials=tuple(trials), decisions=tuple(decisions)))


def _kept(num_trials: int, num_calls: int, halving: Halving | None) -> Mapping[str, list[float]]:
    """Return what a search with so many trials takes to be kept and shown."""
    with _open(num_trials, halving) as kept:
        began = time.perf_counter()
        kept.keeper.look()
        found = {"the first look after a start reads all trials": [(time.perf_counter() - began) * 1000]}
        try:
            found["ask (random) and write the trial"] = _timed(lambda _: _ask(kept), NUM_PLACES - 1)
            kept.keeper.look()
            found["step: nothing new"] = _timed(lambda _: kept.keeper.look(), num_calls)
            found[f"step: {NUM_PLACES} trials report"] = _timed(lambda _: _report(kept), min(num_calls, NUM_EPOCHS - 2))
            found["step: a trial ends, another begins"] = _timed(lambda _: _turn(kept), NUM_PLACES - 1)
        finally:
            kept.asker.drop()
        found.update(_listed(kept, num_trials, num_calls))
        return found


def _ask(kept: Kept) -> None:
    assert kept.asker.ask_next(), "there is a place for another trial"


def _report(kept: Kept) -> None:
    kept.jobs.train()
    kept.keeper.look()


def _turn(kept: Kept) -> None:
    kept.jobs.end_one()
    kept.keeper.look()
    kept.asker.ask_next()
    kept.keeper.look()


def _listed(kept: Kept, num_trials: int, num_calls: int) -> Iterator[tuple[str, list[float]]]:
    def trials(after: int, *states: TrialState) -> Callable[[int], object]:
        return lambda _: kept.requests.trials(ADMIN, NAME, after=after, limit=100, states=states)

    middle = num_trials // 2
    yield "list the first 100 trials", _timed(trials(-1), num_calls)
    yield "list 100 in the middle", _timed(trials(middle), num_calls)
    yield "list 100 that completed", _timed(trials(middle, TrialState.COMPLETED), num_calls)
    yield "list the best 10", _timed(lambda _: kept.requests.best(ADMIN, NAME, 10), num_calls)
    yield "list 100 decisions", _timed(lambda _: kept.requests.decisions(ADMIN, NAME, middle, 100), num_calls)
    yield "list how many are in each state", _timed(lambda _: kept.requests.num_trials(NAME), num_calls)
