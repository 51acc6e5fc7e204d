"""The training under torchrun: `by_torchrun.py MODEL FOLDER_OF_STEP_LOGS SNAPSHOT`.

As its documentation teaches: DDP, a distributed sampler, a snapshot that every start loads. The snapshot is written
after every step, so that none is lost, by the first worker, into memory. The global batch is kept: each worker takes
its share of it.
"""

import itertools
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from bench.peers.scripts.workload import BATCH_SIZE, StepLog, build, data, optimizer_of


def main() -> None:
    folder, snapshot = Path(sys.argv[2]), Path(sys.argv[3])
    inner, step = build(sys.argv[1]), 0
    optimizer = optimizer_of(inner)
    if snapshot.exists():
        saved = torch.load(snapshot, weights_only=True)
        inner.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(inner, gradient_as_bucket_view=True)
    samples = data()
    sampler: DistributedSampler[int] = DistributedSampler(samples, drop_last=True)
    share = BATCH_SIZE // size + (1 if rank < BATCH_SIZE % size else 0)
    loader = DataLoader(samples, batch_size=share, sampler=sampler, drop_last=True)
    steps_per_epoch = len(samples) // size // (BATCH_SIZE // size + 1)  # every worker has that many batches
    log = StepLog(folder)
    for epoch in itertools.count(step // steps_per_epoch):
        sampler.set_epoch(epoch)
        for x, y in itertools.islice(loader, steps_per_epoch):
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
            if rank == 0:
                save({"model": inner.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, snapshot)
            log.note(step, size=size, rank=rank)


def save(state: dict[str, object], snapshot: Path) -> None:
    """Write a snapshot so that a reader sees a whole one."""
    whole = snapshot.with_suffix(f".{os.getpid()}")  # for a moment there may be two first workers
    torch.save(state, whole)
    os.replace(whole, snapshot)


if __name__ == "__main__":
    main()
