"""Plays a soak: jobs that train, moves that hurt them, and what must be true when each has ended.

The first part kills the server now and then; in the second the same server lives from a first count of its threads,
files and processes to a second one, and nothing may be left that was not there before. If endpoints serve beside the
jobs, the gateway counts, too, and no memory may grow steadily while they are asked.
"""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from tests.e2e.pool import Pool
from tests.e2e.trial import WIDTH, Trial, undisturbed
from tests.soak import census
from tests.soak.growth import Rise, Sample, find_rise
from tests.soak.hurt import TO_SERVER, UNHURT, hurt
from tests.soak.record import Record
from tests.soak.script import CALM, SERVE_WEIGHTS, WEIGHTS, Move, moves
from tests.soak.serving import MOVES, Serving

from pliant.client import Client

EPOCHS = (30, 60, 150)
"""Lengths of the jobs."""
PACE_S = 0.02
NUM_SLOTS = 8
PATIENCE_S = 60.0
"""A job that has not trained for this long, though nobody hurts it, is stuck."""
CLEAR_S = 40.0
"""All that belongs to a job is gone this long after its end: a worker that is stopped between its goodbye and its exit
is killed after 15 leases, 30 s."""
SERVER_SHARE = 0.4
"""This part of the time the server is killed too."""
GROWS_NOT = ("server", "zygote", "gateway")


@dataclass(slots=True, kw_only=True)
class Soak:
    """One soak in its own folder."""

    folder: Path
    seed: int
    num_jobs: int
    serves: bool = False
    """Endpoints are asked beside the jobs."""
    num_gateways: int = 1
    """Processes that answer them."""
    without: frozenset[str] = frozenset()
    """Kinds of moves that are left out."""
    record: Record
    script: TextIO
    """Gets every move as it is made."""
    pool: Pool = field(init=False)
    client: Client = field(init=False)
    serving: Serving = field(init=False)
    trials: list[Trial] = field(default_factory=list)
    _dice: random.Random = field(init=False)
    _num_begun: int = 0
    _hurt_at: list[tuple[str, Trial, float]] = field(default_factory=list)
    _in_trouble: set[str] = field(default_factory=set)
    """Jobs that were hurt and not waited for."""
    _watched: dict[int, str] = field(default_factory=dict)
    """Processes whose memory must not grow, and what they are."""
    _memory: dict[str, list[Sample]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        server = self.folder / "server"
        server.mkdir()
        options = ("--serve-processes", str(self.num_gateways)) if self.num_gateways > 1 else ()
        self.pool = Pool(server / "home", slots=NUM_SLOTS, options=options)
        self.serving = Serving(
            folder=self.folder / "serve", pool=self.pool, client=lambda: self.client, record=self.record
        )
        self.serving.folder.mkdir()
        self._dice = random.Random(-self.seed - 1)

    def play(self, minutes: float) -> None:
        """Hurt jobs for so many minutes, then let the last ones end."""
        self.record.tell(f"undisturbed runs of {', '.join(map(str, EPOCHS))} epochs, to compare with")
        for epochs in EPOCHS:
            undisturbed(epochs, WIDTH)  # as `Trial` asks, or its cache would not find it
        shared_memory = census.count(self.pool.home).shared_memory
        with self._server(), self._endpoints():
            self._hurt_for(minutes * 60 * SERVER_SHARE, (*WEIGHTS, *SERVE_WEIGHTS), self.seed)
        if self.record.wrong:
            return
        with self._server():
            self._warm_up()
            before = census.count(self.pool.home)
            with self._endpoints():
                if self.serves:
                    self.serving.fill()
                self._watched = {
                    process.pid: process.role
                    for role in GROWS_NOT
                    for process in census.count(self.pool.home).role(role)
                }
                self._hurt_for(minutes * 60 * (1 - SERVER_SHARE), CALM, self.seed + 1)
            self._see_nothing_left(before)
            self._see_no_growth()
        self._see_all_gone(shared_memory)

    @contextmanager
    def _server(self) -> Iterator[None]:
        self.pool.up()
        try:
            with self.pool.client() as self.client:
                yield
        finally:
            self.pool.close()

    @contextmanager
    def _endpoints(self) -> Iterator[None]:
        """Let endpoints serve beside the jobs of the block, if they are asked for."""
        with ExitStack() as stack:
            if self.serves:
                stack.enter_context(self.serving.going())
            yield

    def _hurt_for(self, seconds: float, kinds: tuple[str, ...], seed: int) -> None:
        until = time.monotonic() + seconds
        without = self.without if self.serves else {*self.without, *SERVE_WEIGHTS}
        for move in moves(seed, kinds=tuple(kind for kind in kinds if kind not in without)):
            self._measure_memory()
            if time.monotonic() > until or self.record.wrong:
                break
            self._replace_ended()
            time.sleep(move.after_s)
            self._make(move)
        for trial in list(self.trials):
            trial.pace(0)
            self._end(trial)

    def _make(self, move: Move) -> None:
        if move.kind in MOVES:
            print(asdict(move), file=self.script, flush=True)
            self.serving.make(move)
            return
        trial = self.trials[move.job % len(self.trials)]
        if trial.job_id in self._in_trouble and move.kind not in UNHURT:
            self._await_progress(trial)
            if self.record.wrong:
                return
        print(asdict(move), file=self.script, flush=True)
        reached, training = _reached(trial), len(trial.training())
        began_at = time.time()
        did, hurt_at = hurt(move, self.pool, trial)
        if move.kind in TO_SERVER:
            self.record.away.append((began_at, time.time()))
        self.record.num_moves[move.kind] += 1
        where = "" if move.kind in TO_SERVER else f" {trial.job_id} ({training} train, step {reached})"
        self.record.tell(f"{move.number:4} {move.kind}{where}: {did}")
        if move.at_once:
            self._in_trouble.add(trial.job_id)
        else:
            self._await_progress(trial, reached)
        if hurt_at is not None:
            self._hurt_at.append((move.kind, trial, hurt_at))

    def _await_progress(self, trial: Trial, reached: int | None = None) -> bool:
        """Wait until a job commits a step that it never had committed, or has ended."""
        start = _reached(trial) if reached is None else reached
        deadline = time.monotonic() + PATIENCE_S
        while _reached(trial) <= start:
            if trial.job().ended:
                return False
            if time.monotonic() > deadline:
                self.record.complain(f"{trial.job_id} has not trained for {PATIENCE_S:g} s\n{trial.story()}")
                return False
            time.sleep(0.02)
        self._in_trouble.discard(trial.job_id)
        return True

    def _replace_ended(self) -> None:
        for trial in list(self.trials):
            if trial.job().ended:
                self._end(trial)
        while len(self.trials) < self.num_jobs:
            self.trials.append(self._begin())

    def _begin(self) -> Trial:
        self._num_begun += 1
        options: dict[str, Any] = {
            "epochs": self._dice.choice(EPOCHS),
            "max_tasks": self._dice.randint(1, 5),
            "checkpoint_freq": self._dice.choice([0, 1, 3]),
            "pace": PACE_S,
        }
        trial = Trial.begin(self.pool, self.client, self.folder / f"trial-{self._num_begun}", **options)
        self.record.tell(f"{trial.job_id} begins: {options}")
        return trial

    def _end(self, trial: Trial) -> None:
        """Wait for the end of a job and check everything that must be true of it."""
        self.trials.remove(trial)
        self._in_trouble.discard(trial.job_id)
        try:
            job = self.client.wait(trial.job_id, timeout_s=2 * PATIENCE_S, poll_s=0.1)
        except TimeoutError:
            self.record.complain(f"{trial.job_id} does not end\n{trial.story()}")
            return
        self.record.ended(trial, job)
        for kind, _, at in [hurt_at for hurt_at in self._hurt_at if hurt_at[1] is trial]:
            self.record.measure(kind, trial, at)
        if job.state != "completed":
            self.record.complain(f"{trial.job_id} {job.state}: {job.reason}\n{trial.story()}")
            return
        try:
            trial.check(job)
        except AssertionError as error:
            self.record.complain(f"{trial.job_id}: {error}\n{trial.story()}")
        self._see_gone(trial.job_id)
        lost = len(trial.events("task.lost"))
        self.record.tell(f"{trial.job_id} is whole: {job.progress.step if job.progress else 0} steps, {lost} losses")

    def _see_gone(self, job_id: str) -> None:
        """No process, zombie or shared memory outlives a job."""

        def left() -> list[str]:
            there = census.count(self.pool.home)
            processes = [f"{p.role} (process {p.pid}, state {p.state})" for p in there.tasks if _of(p.role, job_id)]
            return processes + [name for name in there.shared_memory if _of(name, job_id)]

        self._see_none(left, f"{job_id} has ended")

    def _warm_up(self) -> None:
        """Let everything that a server opens once be open: one job after the other, and calls side by side.

        It opens connections to its database by how many ask at once; 15 were there after 32, and never more.
        """
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(lambda _: self._ask_on_its_own(), range(120)))
        for number in range(2):
            with self._endpoints():
                trial = Trial.begin(self.pool, self.client, self.folder / f"warm-{number}", epochs=EPOCHS[0], pace=0.0)
                self.client.wait(trial.job_id, timeout_s=2 * PATIENCE_S, poll_s=0.05)
                if self.serves:
                    kinds = [kind for kind in CALM if kind in MOVES and kind not in self.without]
                    self.serving.warm_up(lambda kind: next(moves(self.seed, kinds=(kind,))), kinds)
            self._see_gone(trial.job_id)

    def _ask_on_its_own(self) -> None:
        with self.pool.client() as client:
            client.events(limit=1)

    def _see_nothing_left(self, before: census.Census) -> None:
        """The server and its zygote hold no more than before all these jobs."""

        def left() -> list[str]:
            after = census.count(self.pool.home)
            found = [f"{p.role} (process {p.pid}, state {p.state})" for p in after.tasks]
            found += sorted(after.shared_memory - before.shared_memory)
            for role in GROWS_NOT:
                pairs = zip(before.role(role), after.role(role), strict=True)
                found += [line for was, now in pairs for line in census.more(was, now)]
            return found

        self._see_none(left, "all jobs have ended")

    def _measure_memory(self) -> None:
        for pid, role in self._watched.items():
            who = f"{role} {pid}" if role == "gateway" and self.num_gateways > 1 else role
            self._memory.setdefault(who, []).append((time.monotonic(), census.resident_bytes(pid)))

    def _see_no_growth(self) -> None:
        for role, samples in self._memory.items():
            rise = find_rise(samples)
            first, last = samples[0][1] / 1e6, samples[-1][1] / 1e6
            how = "too short to say more" if rise is None else f"by MB an hour: {_rise_in_words(rise)}"
            self.record.tell(f"memory of the {role}: {first:.1f} MB, at the end {last:.1f} MB; {how}")
            if rise is not None and rise.is_leak:
                self.record.complain(f"the memory of the {role} grows, by MB an hour: {_rise_in_words(rise)}")

    def _see_all_gone(self, shared_memory: frozenset[str]) -> None:
        """Nothing outlives the server when no job runs."""

        def left() -> list[str]:
            after = census.count(self.pool.home)
            return [f"{p.role} (process {p.pid})" for p in after.processes] + sorted(
                after.shared_memory - shared_memory
            )

        self._see_none(left, "the server has ended")

    def _see_none(self, left: Callable[[], list[str]], when: str) -> None:
        deadline = time.monotonic() + CLEAR_S
        while found := left():
            if time.monotonic() > deadline:
                self.record.complain(f"{CLEAR_S:g} s after {when} this is left: " + "; ".join(found))
                return
            time.sleep(0.1)


def _of(name: str, job_id: str) -> bool:
    return f"{name}.".startswith(f"{job_id}.") or f"{job_id}." in name or name.endswith(job_id)


def _rise_in_words(rise: Rise) -> str:
    mostly = "" if rise.mostly is None else f", {rise.mostly / 1e6:+.1f} in most"
    return f"{rise.steadily / 1e6:+.1f} in every window at least{mostly}"


def _reached(trial: Trial) -> int:
    """Return how many steps were ever committed."""
    return max((beat.step for beat in trial.beats()), default=0)
