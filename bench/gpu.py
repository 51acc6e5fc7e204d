"""On a GPU: what a step costs alone against plain PyTorch, and how long a change of members stops a training.

Alone: the same model, data and optimizer in a plain loop and in Pliant, in one process; `fast`, and `exact` with one
part, compute the same operations as the plain loop (`exact` with deterministic kernels). They take turns step by step,
and each step is compared with the plain one beside it: within seconds a host may become a third faster or slower, and
most of such a step is the host's. Change of members: a
training with one task gets a second one on the same GPU and loses it again; the figure is how long the first stood
still. No server runs.

    python -m bench.gpu [--steps 100] [--rounds 5] [--width 2048] [--out bench/results/gpu.md]

Claim: alone, at most 1.02 of the plain loop's step.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from bench._report import Claim, finish, head, spread, table, verdicts
from pliant.core.job import JobId, Mode, TaskId
from pliant.core.link import Form, FromTask, Note, Ready, Switched
from pliant.train import Run
from pliant.train.context import TRAIN_CONTEXT, standalone_context
from pliant.train.errors import Departed
from pliant.train.group.membership import TaskMembership

BATCH, WIDTH = 512, 2048
MODES: tuple[Mode, ...] = ("fast", "exact")
MOST_ALONE = 1.02
PATIENCE_S = 180.0
WARM_UP = 5


def build(width: int = WIDTH) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return a model on the GPU, the same every time; of 10 million parameters, if its layers are not wider."""
    torch.manual_seed(1)
    sizes = [784, width, width, width, 10]
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers[:-1]).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def data(num_steps: int) -> TensorDataset:
    """Return a data set of so many global batches, on the GPU, so that no copying is timed."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(num_steps * BATCH, 784, generator=generator).cuda()
    return TensorDataset(x, torch.randint(0, 10, (len(x),), generator=generator).cuda())


def collate(samples: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    return [torch.stack(column) for column in zip(*samples, strict=True)]


def plain_steps(samples: TensorDataset, width: int) -> Iterator[None]:
    """Train one epoch in a plain loop, a step for every value that is asked for."""
    model, optimizer = build(width)
    order = torch.randperm(len(samples)).tolist()
    for first in range(0, len(samples), BATCH):
        x, y = collate([samples[index] for index in order[first : first + BATCH]])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield


def pliant_steps(samples: TensorDataset, width: int, mode: Mode) -> Iterator[None]:
    """Train the same in Pliant alone."""
    model, optimizer = build(width)
    run = Run(model, optimizer, samples, batch_size=BATCH, virtual_workers=1, mode=mode, collate_fn=collate)
    for _ in run.epochs(1):
        for x, y in run:
            run.step(nn.functional.cross_entropy(model(x), y))
            yield


def alone(num_steps: int, width: int) -> dict[str, list[float]]:
    """Return the seconds of every step by who made it; the steps of one place were made one after the other."""
    samples = data(num_steps + WARM_UP)
    loops = {"plain loop": plain_steps(samples, width)}
    loops |= {mode: pliant_steps(samples, width, mode) for mode in MODES}
    times: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(num_steps + WARM_UP):
        turn = number % len(loops)
        for name in (*list(loops)[turn:], *list(loops)[:turn]):
            torch.use_deterministic_algorithms(name == "exact", warn_only=True)
            torch.cuda.synchronize()
            began = time.perf_counter()
            next(loops[name])
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - began)
    for loop in loops.values():
        assert next(loop, "the end") == "the end"
    return {name: steps[WARM_UP:] for name, steps in times.items()}


# -- a change of members --------------------------------------------------------------------------------------------


def task(name: str, pipe: Connection) -> None:
    """The program of a task: train until the generation leaves it out."""

    def send(message: FromTask) -> None:
        if isinstance(message, Ready | Switched | Note):
            pipe.send((name, message))

    def listen() -> None:
        while True:
            membership.deliver(pipe.recv())

    membership = TaskMembership(
        job_id=JobId("bench"), task_id=TaskId(name), pid=os.getpid(), host="127.0.0.1", key=b"bench", send=send
    )
    threading.Thread(target=listen, daemon=True).start()
    context = standalone_context()
    context.membership, context.standalone = membership, False
    TRAIN_CONTEXT.set(context)
    model, optimizer = build()
    run = Run(model, optimizer, data(8), batch_size=BATCH, virtual_workers=2, mode="fast", collate_fn=collate)
    try:
        for _ in run.epochs(1_000_000):
            for x, y in run:
                run.step(nn.functional.cross_entropy(model(x), y))
    except Departed:
        os._exit(0)


class Coordinator:
    """Forms generations of tasks on this machine; the first task is in all of them."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._pipes: dict[str, Connection] = {}
        self._processes: dict[str, Any] = {}
        self._members: tuple[str, ...] = ()
        self._ready: dict[str, Ready] = {}
        self._generation = 0
        self.notes: set[str] = set()

    def start(self, name: str) -> None:
        """Start a task and wait until it is ready."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=task, args=(name, theirs), daemon=True)
        process.start()
        theirs.close()  # so that its end is heard
        self._processes[name] = process
        self._pipes[name] = ours
        self._until(lambda: name in self._ready)

    def form(self, *names: str) -> float:
        """Let these train together; return how long the first one stood still, seconds."""
        self._generation += 1
        self._members = names
        members, first = tuple(map(TaskId, names)), self._ready[names[0]]
        switched: dict[str, Switched] = {}
        form = Form(generation=self._generation, members=members, host=first.host, port=first.port)
        for pipe in self._pipes.values():
            pipe.send(form)
        self._until(lambda: set(names) <= set(switched) and set(self._pipes) == set(names), switched)
        return switched[names[0]].pause_s

    def _until(self, condition: Callable[[], bool], switched: dict[str, Switched] | None = None) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            heard = wait(list(self._pipes.values()), timeout=max(0.0, deadline - time.monotonic()))
            if not heard:
                sys.exit(f"the tasks said nothing for {PATIENCE_S:g} s")
            for task_name, pipe in list(self._pipes.items()):
                if pipe in heard:
                    try:
                        name, message = pipe.recv()
                    except EOFError:
                        self._part_with(task_name)
                    else:
                        self._hear(name, message, {} if switched is None else switched)

    def _part_with(self, name: str) -> None:
        """Take note that a task has ended: it has left, or something went wrong."""
        self._pipes.pop(name).close()
        process = self._processes[name]
        process.join()
        if name in self._members or process.exitcode:
            sys.exit(f"{name} has ended with code {process.exitcode}")

    def _hear(self, name: str, message: FromTask, switched: dict[str, Switched]) -> None:
        if isinstance(message, Ready):
            self._ready[name] = message
        elif isinstance(message, Note):
            self.notes.add(message.message)
        elif isinstance(message, Switched) and message.generation == self._generation:
            switched[name] = message

    def close(self) -> None:
        """End all tasks."""
        for process in self._processes.values():
            process.kill()
            process.join()


def pauses(rounds: int) -> tuple[list[float], list[float], set[str]]:
    """Return how long growing and shrinking stopped the first task, seconds, and what was said of the connection."""
    coordinator = Coordinator()
    grown, shrunk = [], []
    try:
        coordinator.start("bench.0")
        coordinator.form("bench.0")
        for number in range(1, rounds + 1):
            coordinator.start(f"bench.{number}")
            grown.append(coordinator.form("bench.0", f"bench.{number}"))
            shrunk.append(coordinator.form("bench.0"))
    finally:
        coordinator.close()
    return grown, shrunk, coordinator.notes


def middle_half(values: list[float]) -> str:
    """Return the median, and the range of the half of all values around it.

    >>> middle_half([1.0, 2.0, 3.0, 4.0, 50.0])
    '3.00 [2.00 4.00]'
    """
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.2f} [{low:.2f} {high:.2f}]"


def page(command: str, rounds: int, num_steps: int, width: int) -> tuple[str, list[Claim]]:
    """Measure, and return the report and the claims."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read once, for all of them: `exact` needs it
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, steps in alone(num_steps, width).items():
            found.setdefault(name, []).extend(steps)
    grown, shrunk, notes = pauses(rounds)
    claims = []
    for mode in MODES:
        ratio = statistics.median(a / b for a, b in zip(found[mode], found["plain loop"], strict=True))
        text = f"alone, `{mode}`: at most {MOST_ALONE:.2f} of the plain loop's step"
        claims.append(Claim(text=text, found=f"{ratio:.3f}", holds=ratio <= MOST_ALONE))
    rows = [(name, middle_half([1000 * value for value in values])) for name, values in found.items()]
    changes = [("1 → 2 tasks", grown), ("2 → 1 tasks", shrunk)]
    parts = [
        head("Pliant on a GPU", command),
        f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}\n",
        table(("alone", "ms a step: median [middle half]"), *rows),
        table(
            ("two tasks on this GPU", "ms that the first stood still"),
            *((n, spread([1000 * v for v in vs])) for n, vs in changes),
        ),
        *(f"{note}\n" for note in sorted(notes)),
        verdicts(claims),
    ]
    return "\n".join(parts), claims


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=WIDTH, help="of the layers; 8192 keeps the GPU busy, not the host")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU: nothing was measured")
        return 0
    command = f"python -m bench.gpu --steps {given.steps} --rounds {given.rounds}"
    if given.width != WIDTH:
        command += f" --width {given.width}"
    text, claims = page(command, given.rounds, given.steps, given.width)
    return finish(text, claims, given.out)


if __name__ == "__main__":
    sys.exit(main())
