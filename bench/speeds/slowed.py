"""A training whose tasks need a given time for each part; it reports how long its last steps took."""

import argparse
import os
import statistics
import time
from itertools import pairwise

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run

BATCH_SIZE, STEPS_PER_EPOCH = 256, 16
MEASURED = 0.3
"""So much of all steps is measured, at the end."""


def main() -> None:
    """Train so many epochs; the task that is the k-th to start needs the k-th of `--seconds` for a part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--seconds", type=float, nargs="+", required=True)
    args = parser.parse_args()
    of_part = args.seconds[int(os.environ["PLIANT_TASK_ID"].rpartition(".")[2]) - 1]
    torch.manual_seed(1)
    x = torch.randn(BATCH_SIZE * STEPS_PER_EPOCH, 32)
    data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data, batch_size=BATCH_SIZE)
    done_at: list[float] = []
    for _ in run.epochs(args.epochs):
        for inputs, labels in run:
            time.sleep(of_part)  # what a slower processor would need; two of them fit on any machine so
            if run.step(torch.nn.functional.cross_entropy(model(inputs), labels)):
                done_at.append(time.monotonic())
        last = done_at[-int(MEASURED * len(done_at)) :]
        run.log(step_s=statistics.median(after - before for before, after in pairwise(last)))


if __name__ == "__main__":
    main()
