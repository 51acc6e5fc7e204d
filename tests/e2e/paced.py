"""A training whose speed a test sets while it runs: before every batch it sleeps as long as the file PACE says."""

import argparse
import time
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run

NUM_SAMPLES = 500


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(NUM_SAMPLES, 12, generator=generator)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--pace", type=Path)
    args = parser.parse_args()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = Run(model, optimizer, data(), batch_size=args.batch_size)
    for epoch in run.epochs(args.epochs):
        for x, y in run:
            if args.pace is not None:
                time.sleep(float(args.pace.read_text()))
            output = model(x)
            loss = torch.nn.functional.cross_entropy(output, y)
            run.step(loss, accuracy=(output.argmax(1) == y).float().mean())
        print(f"epoch {epoch}: loss {run.last['loss']:.6f}", flush=True)


if __name__ == "__main__":
    main()
