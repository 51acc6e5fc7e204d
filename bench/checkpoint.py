"""How long training waits for a checkpoint, in steps, against what Pliant 0.1 did in the same run.

A step is forward, backward and Adam on a batch of 64 through linear layers; the state is parameters and Adam's moments.
Pliant 0.1 copied the state into new memory and wrote it with `torch.save` in a thread. The kinds are measured in turns,
with one thread for training, which is what Pliant gives a task that has one of two slots on two cores.

    python -m bench.checkpoint [--rounds 12] [--out bench/results/checkpoint.md]
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import pliant
from bench._report import finish
from pliant.train.state import checkpoint
from pliant.train.state.checkpoint_writer import CheckpointWriter, CommittedStep

SIZES_MB = (5, 100)
BATCH = 64
LAYERS = 6
SHARED_MEMORY = Path("/dev/shm")
Commit = Callable[[], tuple[float, Callable[[], bool]]]
"""Begins a checkpoint; returns how long that took, and what tells whether it is still being written."""


@dataclass(slots=True)
class Times:
    """What was measured of one kind, seconds."""

    pauses: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    """Steps that ran while a checkpoint was being written."""
    written: list[float] = field(default_factory=list)


class Training:
    """A model with its optimizer."""

    def __init__(self, megabytes: int) -> None:
        width = round((megabytes * 1e6 / 12 / LAYERS) ** 0.5)
        layers: list[torch.nn.Module] = []
        for _ in range(LAYERS):
            layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-5)
        self.batch = torch.randn(BATCH, width)

    def step(self) -> float:
        began = time.perf_counter()
        self.optimizer.zero_grad()
        self.model(self.batch).square().mean().backward()
        self.optimizer.step()
        return time.perf_counter() - began

    def capture(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}


class Nobody:
    """Listens to what becomes of checkpoints, and does nothing."""

    def __init__(self) -> None:
        self.last: tuple[Path, CommittedStep, int, float] | None = None

    def on_saved(self, path: Path, position: CommittedStep, *, num_bytes: int, seconds: float) -> None:
        self.last = (path, position, num_bytes, seconds)

    def on_failed(self, position: CommittedStep, error: str) -> None:
        raise SystemExit(f"step {position.step} could not be saved: {error}")

    def on_no_room(self, reason: str) -> None:
        raise SystemExit(reason)


@contextmanager
def pliant_now(training: Training, folder: Path, num_kept: int) -> Iterator[Commit]:
    """Checkpoints as they are."""
    writer = CheckpointWriter(folder=folder, every_s=1.0, num_kept=num_kept, clock=time.monotonic, listener=Nobody())
    steps = iter(range(1, 1_000_000))

    def commit() -> tuple[float, Callable[[], bool]]:
        began = time.perf_counter()
        writer.take(training.capture, CommittedStep(step=next(steps), epoch=0))
        return time.perf_counter() - began, lambda: not writer.is_idle

    yield commit
    writer.close()


@contextmanager
def pliant_before(training: Training, folder: Path) -> Iterator[Commit]:
    """Checkpoints as Pliant 0.1 made them."""
    thread = ThreadPoolExecutor(1)
    steps = iter(range(1, 1_000_000))

    def write(state: Any, step: int) -> None:
        checkpoint.write(folder / f"step-{step:012d}.pt", state)
        (folder / f"step-{step - 2:012d}.pt").unlink(missing_ok=True)

    def commit() -> tuple[float, Callable[[], bool]]:
        began = time.perf_counter()
        work: Future[None] = thread.submit(write, copied(training.capture()), next(steps))
        return time.perf_counter() - began, lambda: not work.done()

    yield commit
    thread.shutdown(wait=True)


def copied(tree: Any) -> Any:
    match tree:
        case torch.Tensor():
            return tree.detach().to("cpu", copy=True)
        case Mapping():
            return {key: copied(value) for key, value in tree.items()}
        case list() | tuple():
            return type(tree)(copied(value) for value in tree)
        case _:
            return tree


def one(training: Training, commit: Commit, times: Times) -> None:
    """Take a checkpoint and train beside it until it is written."""
    training.step()
    pause, writing = commit()
    began = time.perf_counter()
    times.pauses.append(pause)
    while True:
        seconds = training.step()
        if not writing():
            break
        times.beside.append(seconds)
    times.written.append(time.perf_counter() - began)


def measure(megabytes: int, rounds: int, folder: Path, memory: Path) -> tuple[list[float], dict[str, Times]]:
    training = Training(megabytes)
    kinds = {name: Times() for name in ("shared memory", "disk", "disk, Pliant 0.1")}
    alone: list[float] = []
    for _ in range(20):
        training.step()
    with (
        pliant_now(training, memory, 1) as to_memory,
        pliant_now(training, folder / "now", 2) as to_disk,
        pliant_before(training, folder / "before") as before,
    ):
        for commit in (to_memory, to_disk, before):
            one(training, commit, Times())  # the first one allocates
        for _ in range(rounds):
            alone += [training.step() for _ in range(10)]
            for commit, times in zip((to_memory, to_disk, before), kinds.values(), strict=True):
                one(training, commit, times)
    return alone, kinds


def rows(megabytes: int, alone: list[float], kinds: Mapping[str, Times]) -> Iterator[str]:
    step = statistics.median(alone)
    for name, times in kinds.items():
        pause = statistics.median(times.pauses)
        beside = f"{max(times.beside) / step:.1f}" if times.beside else "none ran"
        yield (
            f"| {megabytes} MB | {step * 1e3:.1f} | {name} | {pause * 1e3:.2f} | **{pause / step:.2f}** | "
            f"{max(times.pauses) / step:.2f} | {statistics.median(times.beside or [0]) / step:.2f} | {beside} | "
            f"{max(alone) / step:.1f} | {statistics.median(times.written) * 1e3:.0f} |"
        )


def page(rounds: int, table: list[str]) -> str:
    lines = [
        "# How long training waits for a checkpoint",
        "",
        f"`python -m bench.checkpoint --rounds {rounds}` · Python {platform.python_version()}, "
        f"torch {version('torch')}, Pliant {pliant.__version__}, Linux {platform.release()}, "
        f"{len(os.sched_getaffinity(0))} CPUs",
        "",
        "A step is forward, backward and Adam on a batch of 64 through six linear layers, in one thread; the state is",
        "the parameters and Adam's moments. The pause is what the training thread waits. Columns in steps are",
        "multiples of the median step with nothing beside it. The kinds were measured in turns, in one run.",
        "",
        "| state | step, ms | checkpoint to | pause, ms | pause, steps | longest pause, steps |"
        " step beside writing, steps | slowest such, steps | slowest without, steps | written in, ms |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *table,
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12, help="how many checkpoints of each kind (default 12)")
    parser.add_argument("--out", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table: list[str] = []
    for megabytes in SIZES_MB:
        with tempfile.TemporaryDirectory() as disk, tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
            table += rows(megabytes, *measure(megabytes, options.rounds, Path(disk), Path(memory)))
    text = page(options.rounds, table)
    finish(text, (), options.out)


if __name__ == "__main__":
    main()
