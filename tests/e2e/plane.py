"""Fit a plane to a table with DistributedDataParallel: an ordinary script for torchrun, of a model's template.

Its numbers come from `parameters.json`, its table from TRAIN_DATA_DIR; rank 0 leaves the state_dict in SAVED_MODEL_DIR.
"""

import csv
import json
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def load_table(path: str) -> TensorDataset:
    """Return the rows of a table with the columns a, b and y."""
    with open(path, newline="") as file:
        rows = [[float(row[name]) for name in ("a", "b", "y")] for row in csv.DictReader(file)]
    table = torch.tensor(rows)
    return TensorDataset(table[:, :2], table[:, 2:])


def train(entered: dict[str, Any]) -> None:
    """Train over all processes of the group."""
    numbers = entered["hyperparameters"]
    rank, size = dist.get_rank(), dist.get_world_size()
    plane = nn.Linear(2, 1)
    if "PLIANT_WEIGHTS" in os.environ:
        plane.load_state_dict(torch.load(os.environ["PLIANT_WEIGHTS"], weights_only=True))
    model = DistributedDataParallel(plane)
    optimizer = torch.optim.SGD(model.parameters(), lr=numbers["learning_rate"])
    rows = load_table(os.environ["TRAIN_DATA_DIR"])
    sampler: DistributedSampler[Any] = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=numbers["batch_size"] // size, sampler=sampler)
    for epoch in range(numbers["epochs"]):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    print(f"rank {rank} of {size}: {entered['engine']}, {len(sampler)} rows", flush=True)
    if rank == 0:
        torch.save(plane.state_dict(), Path(os.environ["SAVED_MODEL_DIR"]) / "model.pt")


def main() -> None:
    dist.init_process_group("gloo")
    train(json.loads(Path("parameters.json").read_text()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
