"""Train a network on handwritten digits."""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset


def load_data():
    """Return the training and the test set."""
    with np.load(Path(os.environ["DATA_DIR"]) / "digits.npz") as arrays:
        images, labels = torch.tensor(arrays["images"]), torch.tensor(arrays["labels"])
    return TensorDataset(images[360:], labels[360:]), TensorDataset(images[:360], labels[:360])


def make_model():
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def accuracy(model, dataset):
    """Return the share of samples that the model gets right."""
    images, labels = dataset.tensors
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.001)
    args = parser.parse_args()
    torch.manual_seed(0)

    train_set, test_set = load_data()
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loader = torch.utils.data.DataLoader(train_set, batch_size=64, shuffle=True)
    for epoch in range(args.epochs):
        for x, y in loader:
            outputs = model(x)
            loss = F.cross_entropy(outputs, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: test accuracy {accuracy(model, test_set):.4f}")


if __name__ == "__main__":
    main()
