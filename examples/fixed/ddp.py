"""Train on scikit-learn's digits with DistributedDataParallel: an ordinary script for torchrun, without Pliant.

torchrun --nproc-per-node 4 ddp.py
pliant submit ddp.py --fixed 4
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def load_data():
    """Return the training set."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).flatten(1) / 16
    return TensorDataset(images, torch.tensor(digits.target))


def save(path, **state):
    """Write a checkpoint so that a crash leaves the one before it."""
    draft = path.with_suffix(".draft")
    torch.save(state, draft)
    draft.replace(path)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one step over all processes")
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args()


def train(args):
    """Train over all processes of the group."""
    torch.manual_seed(0)
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    checkpoint = Path(os.environ.get("RESULT_DIR", ".")) / "ddp.pt"
    first = 0
    if checkpoint.exists():  # started again after a failure
        state = torch.load(checkpoint, weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1

    dataset = load_data()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=args.batch_size // size, sampler=sampler)
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            save(checkpoint, model=model.module.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch)
            print(f"epoch {epoch} on {size} processes: loss {total.item() / size / len(loader):.4f}")


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    train(args)
    # The model is gone by now. A DistributedDataParallel that outlives the group ends it while holding Python's lock,
    # for which gloo's threads may be waiting: torch 2.13 then hangs for ever (so does torchrun).
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
