"""A small elastic training for populations: a learning rate on a schedule, and a loss reported after each epoch."""

import argparse

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(160, 12, generator=generator)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    run = Run(model, optimizer, data(), batch_size=40, state={"schedule": schedule})
    for _ in run.epochs(args.epochs):
        for x, y in run:
            run.step(torch.nn.functional.cross_entropy(model(x), y))
        schedule.step()
        run.log(
            val_loss=run.evaluate(
                data(), lambda batch: {"loss": torch.nn.functional.cross_entropy(model(batch[0]), batch[1])}
            )["loss"],
            lr_now=optimizer.param_groups[0]["lr"] / args.lr,
        )


if __name__ == "__main__":
    main()
