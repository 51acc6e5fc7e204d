"""One training of `faulty.py` on a running server, hurt by a plan of faults, and what must be true at its end."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import torch
from tests.contracts.faults import Claim, Fault, add, claims
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool, clean_env
from tests.train.test_elastic import samples_by_epoch
from tests.warm import run_script

from pliant.api.jobs import JobPatch, JobRequest
from pliant.client import Client
from pliant.core.event import Event
from pliant.core.job import Job, Task

SCRIPT = HERE / "faulty.py"
EPOCHS, STEPS_PER_EPOCH, NUM_SAMPLES, WIDTH = 20, 10, 500, 24
PACE_S = 0.06
VIRTUAL_WORKERS = 5
"""As many as a trial may have tasks."""
ALONE = ("--virtual-workers", str(VIRTUAL_WORKERS))
BACK_AFTER_KILL_S = 1.0
LEASE_S = 2.0
BACK_AFTER_HANG_S = LEASE_S + 1.0
_STEPS_AFTER = 5
_STEPS_CALM = 10
"""So many steps the ordinary ones are measured by after something was hurt, before the next thing is."""
_STEPS_ALLOWED = 6
"""What this machine's other work may cost, in the longest steps of an ordinary second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One committed step, as one of its workers saw it."""

    at: float
    step: int
    rank: int
    size: int
    starved_s: float
    """So long this worker had waited for a processor by then."""
    task: int


@dataclass(slots=True, kw_only=True)
class Trial:
    """A job that is hurt on purpose."""

    pool: Pool
    client: Client
    folder: Path
    epochs: int = EPOCHS
    width: int = WIDTH
    job_id: str = ""
    _server_starved_s: float = 0.0
    """So long the server had waited for a processor when something was hurt last."""
    _calm_at: float = 0.0
    """When it had recovered from what was hurt before."""

    @property
    def num_steps(self) -> int:
        return self.epochs * STEPS_PER_EPOCH

    @property
    def plan(self) -> Path:
        return self.folder / "plan"

    @classmethod
    def begin(cls, pool: Pool, client: Client, folder: Path, *faults: Fault, **options: Any) -> Self:
        """Submit the job; `options` are those of a `JobRequest`, and `epochs`, `width` and `pace` of the script."""
        trial = cls(pool=pool, client=client, folder=folder)
        trial._server_starved_s = pool.starved_s()
        trial.epochs, trial.width = options.pop("epochs", EPOCHS), options.pop("width", WIDTH)
        folder.mkdir(parents=True, exist_ok=True)
        trial.beats_folder.mkdir()
        trial.pace(options.pop("pace", PACE_S))
        add(trial.plan, *faults)
        given = {
            "--epochs": trial.epochs,
            "--width": trial.width,
            "--pace": folder / "pace",
            "--faults": trial.plan,
            "--beats": trial.beats_folder,
        }
        words = [str(word) for pair in given.items() for word in pair]
        request = {"script": SCRIPT.name, "args": words, "audit": True}
        defaults = {"checkpoint_freq": 0, "max_tasks": 3, "virtual_workers": VIRTUAL_WORKERS}
        job = client.submit(SCRIPT, JobRequest.model_validate({**request, **defaults, **options}))
        trial.job_id = job.id
        return trial

    # What a test does

    def pace(self, seconds: float) -> None:
        Pace(self.folder / "pace", seconds)

    def hurt(self, *faults: Fault) -> None:
        self._server_starved_s = self.pool.starved_s()
        add(self.plan, *faults)

    def resize(self, num_tasks: int) -> None:
        self.client.change(self.job_id, JobPatch(max_tasks=num_tasks))

    def kill(self, *tasks: Task, number: signal.Signals = signal.SIGKILL) -> float:
        """Signal processes; return when."""
        self._server_starved_s = self.pool.starved_s()
        at = time.time()
        for task in tasks:
            assert task.pid is not None
            os.kill(task.pid, number)
        return at

    def stop(self, *tasks: Task) -> float:
        """Let processes hang; return when."""
        return self.kill(*tasks, number=signal.SIGSTOP)

    @contextmanager
    def all_hurt(self, number: signal.Signals = signal.SIGKILL) -> Iterator[None]:
        """Kill or stop every worker; the server stands still in the block, so that nobody comes after them yet."""
        tasks, server = self.training(), self.pool.process
        assert server is not None
        server.send_signal(signal.SIGSTOP)
        try:
            self.kill(*tasks, number=number)
            Pool.until(lambda: not any(runs(task) for task in tasks), "nobody trains, nobody writes")
            yield
        finally:
            server.send_signal(signal.SIGCONT)

    def until(self, condition: Callable[[], Any], what: str, timeout_s: float = 45.0) -> Any:
        try:
            return Pool.until(condition, what, timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def until_size(self, size: int) -> list[Task]:
        return list(self.until(lambda: len(found := self.training()) == size and found, f"{size} tasks train"))

    def until_calm(self, size: int) -> list[Task]:
        """Wait until so many tasks train, and have for a few steps: by these an ordinary one is known."""
        tasks = self.until_size(size)
        self._calm_at = time.time()

        def is_known() -> bool:
            return sum(beat.rank == 0 and beat.at > self._calm_at for beat in self.beats()) > _STEPS_CALM

        self.until(is_known, "ordinary steps")
        return tasks

    def until_claimed(self, *ids: str) -> list[Claim]:
        """Wait until these faults have happened; return them in order."""
        self.until(lambda: set(ids) <= {claim.id for claim in self.claims()}, f"faults {', '.join(ids)} happen")
        return [claim for claim in self.claims() if claim.id in ids]

    def until_trains_after(self, at: float, *, size: int | None = None) -> Beat:
        """Wait for the first step that was committed after this instant (by so many tasks); return it."""

        def found() -> Beat | None:
            later = (beat for beat in self.beats() if beat.at > at and size in (None, beat.size))
            return next(later, None)

        beat: Beat = self.until(found, "it trains again")
        return beat

    def until_step(self, step: int) -> int:
        """Wait until the server was told of so many committed steps; return them."""

        def reached() -> int:
            progress = self.job().progress
            return progress.step if progress is not None and progress.step >= step else 0

        return int(self.until(reached, f"step {step}"))

    def end(self, *, samples: bool = True) -> Job:
        """Let it train to its end as fast as it can and check what must be true of every training."""
        self.pace(0)
        job = self.client.wait(self.job_id, timeout_s=90, poll_s=0.1)
        assert job.state == "completed", f"{job.reason}\n{self.story()}"
        self.check(job, samples=samples)
        return job

    def check(self, job: Job, *, samples: bool = True) -> None:
        """Check what a completed training has left behind."""
        assert job.progress is not None
        assert job.progress.step == self.num_steps
        if samples:
            check_samples(self.result, self.epochs)
        check_weights(self.result, self.epochs, self.width)
        assert (job.claim, job.claim_reason) == ("exact", "")
        assert job.digest == undisturbed(self.epochs, self.width).digest

    # What a test sees

    @property
    def result(self) -> Path:
        return self.pool.home / "jobs" / self.job_id / "result"

    def checkpoints(self) -> list[Path]:
        """Return those on disk, oldest first."""
        return sorted((self.result / "checkpoint").glob("step-*"))

    def memory_checkpoints(self) -> list[Path]:
        """Return those in shared memory."""
        named = self.pool.home / "agent" / "memory"
        owner = named.read_text() if named.exists() else "none"
        return sorted(Path("/dev/shm").glob(f"*/{owner}/{self.job_id}/step-*"))

    def newest_checkpoint(self) -> int:
        """Return the step of the newest one, wherever it is."""
        return max(step_of(path) for path in (*self.checkpoints(), *self.memory_checkpoints()))

    @property
    def beats_folder(self) -> Path:
        return self.folder / "beats"

    def job(self) -> Job:
        return self.client.job(self.job_id).job

    def training(self) -> list[Task]:
        return self.pool.training(self.client, self.job_id)

    def leader(self) -> Task:
        """Return the task of rank 0 in the generation that trains."""
        detail = self.client.job(self.job_id)
        active = [generation for generation in detail.generations if generation.state == "active"]
        return next(task for task in detail.tasks if task.id == active[-1].members[0])

    def task(self, number: int) -> Task:
        """Return the task whose id ends with this number."""
        return next(task for task in self.client.job(self.job_id).tasks if task.id == f"{self.job_id}.{number}")

    def next_task(self) -> int:
        """Return the number of the task that is started next."""
        return max(int(task.id.rpartition(".")[2]) for task in self.client.job(self.job_id).tasks) + 1

    def num_redone_since(self, at: float) -> int:
        """Return how many steps were done again by the generations that began after an instant."""
        switched = (event for event in self.events("generation.switched") if event.at > at)
        return sum(int(event.data["redone_steps"] or 0) for event in switched)

    def claims(self) -> tuple[Claim, ...]:
        return claims(self.plan)

    def events(self, *kinds: str) -> list[Event]:
        found = self.client.events(job_id=self.job_id, limit=10_000).events
        return [event for event in found if not kinds or event.kind in kinds]

    def lost_since(self, at: float) -> list[Event]:
        """Wait until a task was lost after an instant; return all such events."""
        found = self.until(lambda: [one for one in self.events("task.lost") if one.at > at], "it is lost")
        return list(found)

    def starts(self) -> list[Event]:
        """Return when it began to train without anybody who trained before."""
        return [event for event in self.events("generation.switched") if event.data["from_size"] == 0]

    def beats(self) -> list[Beat]:
        """Return all committed steps in order of time."""
        found = []
        for path in self.beats_folder.iterdir():
            task = int(path.name.rpartition(".")[2])
            for line in path.read_text().rpartition("\n")[0].splitlines():  # the last one may be half written
                at, step, rank, size, starved = line.split()
                ranked = {"step": int(step), "rank": int(rank), "size": int(size), "task": task}
                found.append(Beat(at=float(at), starved_s=float(starved), **ranked))
        return sorted(found, key=lambda beat: beat.at)

    def usual_gap_s(self, before: float) -> float:
        """Return the longest time between two steps of an ordinary second before an instant: how busy it is."""
        times = [beat.at for beat in self.beats() if beat.rank == 0 and self._calm_at < beat.at < before][-20:]
        return max((b - a for a, b in pairwise(times)), default=PACE_S)

    def pause_s(self, at: float) -> float:
        """Return how long training stood still at an instant: the longest time between two steps around it."""
        self.until(lambda: self.pause_if_over(at) is not None, "it trains again")
        pause_s = self.pause_if_over(at)
        assert pause_s is not None
        return pause_s

    def pause_if_over(self, at: float) -> float | None:
        """Return how long training stood still at an instant; None if it does still, or never had begun.

        The step during which something happened may be committed by those who live and stand still after it, so that
        the longest time is looked for until a few steps were committed.
        """
        times = [beat.at for beat in self.beats() if beat.rank == 0]
        before, after = [t for t in times if t <= at], [t for t in times if t > at][:_STEPS_AFTER]
        if not before or (len(after) < _STEPS_AFTER and not self.job().ended):
            return None
        around = [before[-1], *after]
        return max((b - a for a, b in pairwise(around)), default=0.0)

    def starved_since_s(self, at: float) -> float:
        """Return how long server and workers waited for a processor after an instant, until they trained again."""
        waited_s = [0.0]
        for task in {beat.task for beat in self.beats()}:
            mine = [beat for beat in self.beats() if beat.task == task]
            before, after = [b for b in mine if b.at <= at], [b for b in mine if b.at > at][:_STEPS_AFTER]
            if before and after:
                waited_s.append(after[-1].starved_s - before[-1].starved_s)
        return max(waited_s) + max(0.0, self.pool.starved_s() - self._server_starved_s)

    def assert_back_within(self, limit_s: float, at: float) -> None:
        """Training goes on within the limit, and what this machine's other work costs."""
        pause_s = self.pause_s(at)
        allowed_s = limit_s + _STEPS_ALLOWED * self.usual_gap_s(at) + self.starved_since_s(at)
        assert pause_s < allowed_s, f"it stood still for {pause_s:.2f} s, allowed {allowed_s:.2f} s\n{self.story()}"

    def assert_trains_within(self, limit_s: float, at: float) -> None:
        """Training, which stands still for want of the server, goes on so long after it could at the latest."""
        waited_s = self.until_trains_after(at).at - at
        allowed_s = limit_s + _STEPS_ALLOWED * self.usual_gap_s(at) + self.starved_since_s(at)
        assert waited_s < allowed_s, f"it trained {waited_s:.2f} s later, allowed {allowed_s:.2f} s\n{self.story()}"

    def story(self) -> str:
        """Return what happened, for a failed test."""
        first = self.events()[0].at
        told = [(event.at, f"{event.kind}: {event.message}") for event in self.events()]
        told += [(claim.at, f"FAULT {claim}") for claim in self.claims()]
        return "\n".join(f"{at - first:8.3f} {what}" for at, what in sorted(told))


def step_of(path: Path) -> int:
    """Return the step of a checkpoint."""
    return int(path.stem.removeprefix("step-"))


def runs(task: Task) -> bool:
    """Tell whether a thread of a task has neither ended nor been stopped."""
    threads = Path(f"/proc/{task.pid}/task")
    try:
        states = {(path / "stat").read_text().rpartition(")")[2].split()[0] for path in threads.iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return threads.exists()  # one has just ended, or all
    return not states <= {"T", "Z", "X"}


def check_samples(result: Path, epochs: int) -> None:
    """Every sample was used exactly once an epoch, every step was committed."""
    used, steps = samples_by_epoch(result)
    assert steps == set(range(epochs * STEPS_PER_EPOCH)), "steps are missing"
    wrong = [epoch for epoch in range(epochs) if sorted(used[epoch]) != list(range(NUM_SAMPLES))]
    assert not wrong, f"samples of the epochs {wrong[:9]} were not used exactly once each"


def check_weights(result: Path, epochs: int, width: int) -> None:
    """The trained model is the one that an undisturbed run makes, bit for bit."""
    model = torch.load(result / "model" / "model.pt", weights_only=True)
    for name, value in undisturbed(epochs, width).model.items():
        torch.testing.assert_close(model[name], value, rtol=0, atol=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """What one process alone comes to."""

    model: dict[str, torch.Tensor]
    digest: str


@cache
def undisturbed(epochs: int, width: int = WIDTH) -> Undisturbed:
    """Train alone."""
    with TemporaryDirectory() as folder:
        done = run_script(
            SCRIPT,
            *ALONE,
            "--epochs",
            str(epochs),
            "--width",
            str(width),
            folder=Path(folder),
            env={**clean_env(), "RESULT_DIR": folder, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        model = torch.load(Path(folder) / "model" / "model.pt", weights_only=True)
    return Undisturbed(model=model, digest=done.stdout.split()[-1])
