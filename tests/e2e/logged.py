"""A training that says its hyperparameters, and whose speed a test sets; with --fail it raises in its last epoch."""

import argparse
import time
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(500, 12, generator=generator)
    return TensorDataset(x, (x[:, 0] > 0).long())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--pace", type=Path)
    parser.add_argument("--fail", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = torch.nn.Linear(12, 2)
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), data(), batch_size=50)
    run.log_params({"epochs": args.epochs, "model": "linear", "width": torch.tensor(12)})
    for epoch in run.epochs(args.epochs):
        if args.fail and epoch == args.epochs - 1:
            raise RuntimeError("it was asked to fail")
        for x, y in run:
            time.sleep(float(args.pace.read_text()))
            run.step(torch.nn.functional.cross_entropy(model(x), y))
        run.log(done=epoch)


if __name__ == "__main__":
    main()
