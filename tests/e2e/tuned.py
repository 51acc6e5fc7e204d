"""A small elastic training that reports a loss each epoch; before every batch it sleeps as long as the file PACE says.

What is wrong with it on request (WRONG): it raises at once, or it never reports.
"""

import argparse
import time
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run

NUM_SAMPLES = 160


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(NUM_SAMPLES, 12, generator=generator)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pace", type=Path)
    parser.add_argument("--wrong", choices=("raises", "silent"))
    args = parser.parse_args()
    if args.wrong == "raises":
        raise LookupError("there is no data")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(12, args.width), torch.nn.Tanh(), torch.nn.Linear(args.width, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    run = Run(model, optimizer, data(), batch_size=40)
    for _ in run.epochs(args.epochs):
        for x, y in run:
            if args.pace is not None:
                time.sleep(float(args.pace.read_text()))
            run.step(torch.nn.functional.cross_entropy(model(x), y))
        if args.wrong != "silent":
            size = sum(one.numel() for one in model.parameters())
            run.log(val_loss=run.evaluate(data(), lambda batch: measure(model, *batch))["loss"], size=size)


def measure(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"loss": torch.nn.functional.cross_entropy(model(x), y)}


if __name__ == "__main__":
    main()
