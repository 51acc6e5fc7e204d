"""A trial on scikit-learn's digits: a small convolutional network that reports its loss on the test set each epoch.

With `--sample-s` every part of a batch takes so long per sample besides, in which its process waits: as a host does
while its accelerator computes. So a machine of two cores has as many accelerators as it has slots.
"""

import argparse
import time

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from pliant.train import Run

NUM_TEST_SAMPLES = 360


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """Return the training and the test set; the split is always the same."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    test, train = order[:NUM_TEST_SAMPLES], order[NUM_TEST_SAMPLES:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def main() -> None:
    """Train as many epochs as the search has."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--sample-s", type=float, default=0.0)
    given = parser.parse_args()
    torch.manual_seed(0)
    train, test = load_data()
    width = given.width
    model = nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * width, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    run = Run(model, torch.optim.Adam(model.parameters(), lr=given.lr), train, batch_size=128)
    for _epoch in run.epochs(given.epochs):
        for x, y in run:
            time.sleep(given.sample_s * len(x))
            run.step(F.cross_entropy(model(x), y))
        measured = run.evaluate(
            test, lambda batch: {"loss": F.cross_entropy(model(batch[0]), batch[1])}, batch_size=NUM_TEST_SAMPLES // 8
        )
        run.log(val_loss=measured["loss"])


if __name__ == "__main__":
    main()
