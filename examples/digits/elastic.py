"""Train a network on scikit-learn's handwritten digits."""

import argparse

import torch
import torch.nn.functional as F
from pliant.train import Run
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

SPLIT_SEED = 0
NUM_TEST_SAMPLES = 360


def load_data():
    """Return the training and the test set; the split is always the same."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SPLIT_SEED))
    test, train = order[:NUM_TEST_SAMPLES], order[NUM_TEST_SAMPLES:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def make_model(width):
    """Return a small convolutional network; `width` is the number of channels of its first layer."""
    return nn.Sequential(
        nn.Conv2d(1, width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * width, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def evaluate(model, dataset):
    """Return the share of samples that the model gets right."""
    images, labels = dataset.tensors
    device = next(model.parameters()).device
    with torch.no_grad():
        return (model(images.to(device)).argmax(1).cpu() == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one optimizer step")
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--width", type=int, default=32, help="channels; more take longer")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_set, test_set = load_data()
    model = make_model(args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    run = Run(model, optimizer, train_set, batch_size=args.batch_size, seed=args.seed)
    for epoch in run.epochs(args.epochs):
        for x, y in run:
            outputs = model(x)
            loss = F.cross_entropy(outputs, y)
            run.step(loss, accuracy=(outputs.argmax(1) == y).float().mean())
        print(f"epoch {epoch}: test accuracy {evaluate(model, test_set):.4f}")
    print(f"test accuracy {evaluate(model, test_set):.4f}")


if __name__ == "__main__":
    main()
