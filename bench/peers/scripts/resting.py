"""A worker that trains ten steps and then rests, so that its memory can be looked at: `resting.py HOW MODEL FOLDER`.

HOW is `exact` or `fast` (a task's script) or `ddp` (a process of its own). Once it rests it writes its
process id to `FOLDER/PID.rests`, and it ends when `FOLDER/over` exists.
"""

import os
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from bench.peers.scripts.workload import BATCH_SIZE, build, data, optimizer_of

NUM_STEPS = 10
NUM_WORKERS = 2


def main() -> None:
    how, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if how == "ddp":
        by_ddp(build(name), folder)
    else:
        by_pliant(build(name), folder, how)


def by_pliant(model: torch.nn.Module, folder: Path, mode: Any) -> None:
    from pliant.train import Run  # not in the other processes: they would pay for it

    run = Run(model, optimizer_of(model), data(), batch_size=BATCH_SIZE, mode=mode)
    for _epoch in run.epochs(1_000_000):
        for x, y in run:
            run.step(cross_entropy(model(x), y))
            if run.num_steps_done >= NUM_STEPS and run.size == NUM_WORKERS:
                rest(folder)


def by_ddp(inner: torch.nn.Module, folder: Path) -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(inner, gradient_as_bucket_view=True)
    optimizer = optimizer_of(inner)
    loader: DataLoader[Any] = DataLoader(data(), batch_size=BATCH_SIZE // NUM_WORKERS)
    for x, y in islice(loader, NUM_STEPS):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    rest(folder)


def rest(folder: Path) -> None:
    """Say so and wait."""
    (folder / f"{os.getpid()}.rests").touch()
    while not (folder / "over").exists():
        time.sleep(0.05)
    os._exit(0)


if __name__ == "__main__":
    main()
