"""A training on machines of different speed: every second task needs three times as long for a part.

A part takes as long as the file PACE says at least.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run

NUM_SAMPLES = 333


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=Path)
    args = parser.parse_args()
    is_slow = int(os.environ["PLIANT_TASK_ID"].rpartition(".")[2]) % 2 == 0
    torch.manual_seed(1)
    x = torch.randn(NUM_SAMPLES, 12)
    data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.BatchNorm1d(24), torch.nn.Linear(24, 2))
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), data, batch_size=32)
    for _ in run.epochs(40):
        for inputs, labels in run:
            time.sleep(float(args.pace.read_text()) * (3 if is_slow else 1))
            run.step(torch.nn.functional.cross_entropy(model(inputs), labels))


if __name__ == "__main__":
    main()
