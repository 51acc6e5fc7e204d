"""One worker of a training whose number of workers does not change: DDP, a plain loop, or Pliant's `Run`.

DDP may cut the batch into the same parts as `exact`, and accumulate their gradients.

Runs in a process of its own and steps only when it is told to: a block of steps at a time, so that contenders take
turns and whoever does not have its turn does nothing. No server runs; what one would tell the tasks of a first
generation comes through the pipe, and what they report is dropped.
"""

import os
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, repeat
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from bench.fixed.models import TRAININGS, Training
from pliant.core.confinement import Confinement, RunAs
from pliant.core.job import JobId, TaskId
from pliant.core.link import Form, FromTask, Ready
from pliant.isolation.enter import enter
from pliant.isolation.users import FIRST_UID
from pliant.train import Run
from pliant.train.context import TRAIN_CONTEXT, TrainContext
from pliant.train.data.sharding import cut
from pliant.train.group.membership import TaskMembership

LOOPBACK = "127.0.0.1"
MANY_EPOCHS = 1_000_000
Device = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Which worker of which contender this is."""

    how: Literal["plain", "ddp", "fast", "exact"]
    training: str
    rank: int
    size: int
    num_parts: int | None = None
    """See `Contender`."""
    device: Device = "cpu"
    """On `cuda` each has a GPU of its own where there are as many, else all share the first."""
    store: str = ""
    """A file at which DDP's workers meet."""
    is_walled: bool = False
    """It enters the walls that a task of a server enters."""


class _Over(BaseException):
    """The last block is done."""


@dataclass(slots=True)
class Gate:
    """Lets a block of steps through, times each, and then waits for the next block."""

    pipe: Connection
    device: torch.device
    left: int = 0
    times: list[float] = field(default_factory=list)
    since: float = 0.0

    def open(self) -> None:
        """Wait for the first block."""
        self._wait()

    def passed(self) -> None:
        """Take note that one step is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)  # the host is ahead of it
        now = time.perf_counter()
        self.times.append(now - self.since)
        self.since = now
        self.left -= 1
        if self.left == 0:
            self.pipe.send(self.times)
            self._wait()

    def _wait(self) -> None:
        self.left = self.pipe.recv()
        if self.left == 0:
            raise _Over
        self.times, self.since = [], time.perf_counter()


def work(seat: Seat, pipe: Connection) -> None:
    """Be that worker until the pipe says that it is over."""
    if seat.is_walled:
        _enter(Path(seat.store).parent, seat.rank)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    training = TRAININGS[seat.training]
    gate = Gate(pipe, _device(seat))
    try:
        if seat.how == "plain":
            _plain(training, gate)
        elif seat.how == "ddp":
            _ddp(training, gate, seat)
        else:
            _pliant(training, gate, seat)
    except _Over:
        pipe.send(None)
    os._exit(0)  # threads that close connections have nothing to save


def _device(seat: Seat) -> torch.device:
    if seat.device == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", seat.rank if _have_own_gpus(seat.size) else 0)
    torch.cuda.set_device(device)
    return device


def _have_own_gpus(size: int) -> bool:
    return torch.cuda.device_count() >= size


def _enter(folder: Path, rank: int) -> None:
    """Enter walls as a person's task does, as a user of its own where that can be."""
    user = RunAs(uid=FIRST_UID) if os.geteuid() == 0 else None
    temporary = folder / f"tmp-{rank}"
    temporary.mkdir()
    enter(Confinement(user=user, reads=(os.getcwd(),), hides=(str(folder),), temporary=str(temporary)))


def _plain(training: Training, gate: Gate) -> None:
    model = training.build().to(gate.device)
    loader = DataLoader(training.data(), batch_size=training.batch_size, shuffle=True, drop_last=True)
    _loop(training, model, model, loader, gate)


def _ddp(training: Training, gate: Gate, seat: Seat) -> None:
    """As PyTorch's documentation teaches it, with the option that saves a copy of the gradients."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    backend = "nccl" if seat.device == "cuda" and _have_own_gpus(seat.size) else "gloo"
    dist.init_process_group(
        backend,
        init_method=f"file://{seat.store}",
        rank=seat.rank,
        world_size=seat.size,
        timeout=timedelta(seconds=300),
    )
    data, inner = training.data(), training.build().to(gate.device)
    sampler: DistributedSampler[Any] = DistributedSampler(data, drop_last=True)
    all_parts = seat.num_parts or seat.size
    loader = DataLoader(data, batch_size=training.batch_size // all_parts, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(inner, gradient_as_bucket_view=True)
    _loop(training, inner, model, loader, gate, len(cut(range(all_parts), seat.size, seat.rank)))


def _loop(
    training: Training,
    inner: torch.nn.Module,
    model: torch.nn.Module,
    loader: "DataLoader[Any]",
    gate: Gate,
    num_parts: int = 1,
) -> None:
    """Step after so many batches; DDP sums with the last of them."""
    optimizer = training.optimizer(inner)
    batches = chain.from_iterable(repeat(loader))
    gate.open()
    while True:
        optimizer.zero_grad()
        for left in reversed(range(num_parts)):
            x, y = next(batches)
            with model.no_sync() if left and isinstance(model, DistributedDataParallel) else nullcontext():
                loss = training.loss(model, x.to(gate.device), y.to(gate.device))
                if num_parts > 1:
                    loss = loss / num_parts
                loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        gate.passed()


def _pliant(training: Training, gate: Gate, seat: Seat) -> None:
    _surround(seat, gate.pipe)
    model = training.build().to(gate.device)
    mode: Literal["fast", "exact"] = "fast" if seat.how == "fast" else "exact"
    run = Run(model, training.optimizer(model), training.data(), batch_size=training.batch_size, mode=mode)
    for x, y in _entered(_batches(run), gate):
        before = run.num_steps_done
        run.step(training.loss(model, x.to(gate.device), y.to(gate.device)))
        if run.num_steps_done > before:
            gate.passed()


def _batches(run: Run) -> Iterator[Any]:
    for _epoch in run.epochs(MANY_EPOCHS):
        yield from run


def _entered(batches: Iterator[Any], gate: Gate) -> Iterator[Any]:
    """Yield the batches; wait at the gate when the first one has shown that the generation is whole."""
    first = next(batches)
    gate.open()
    yield first
    yield from batches


def _surround(seat: Seat, pipe: Connection) -> None:
    """Do what a task's process does before its script, with the pipe in the place of the server."""
    me = TaskId(f"job-1.{seat.rank + 1}")
    members = tuple(TaskId(f"job-1.{rank + 1}") for rank in range(seat.size))

    def send(message: FromTask) -> None:
        if isinstance(message, Ready):
            pipe.send((message.host, message.port))
            host, port = pipe.recv()
            membership.deliver(Form(generation=1, members=members, host=host, port=port))

    membership = TaskMembership(
        job_id=JobId("job-1"), task_id=me, pid=os.getpid(), host=LOOPBACK, key=b"bench", send=send
    )
    TRAIN_CONTEXT.set(
        TrainContext(membership=membership, clock=time.monotonic, now=time.time, virtual_workers=seat.num_parts or 4)
    )
