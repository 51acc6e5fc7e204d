"""Train a network on scikit-learn's handwritten digits."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from fabric_model import FabricModel
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

MAX_WORKERS = 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def get_datasets():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    test, train = order[:360], order[360:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one optimizer step")
    parser.add_argument("--lr", type=float, default=0.003)
    args = parser.parse_args()
    torch.manual_seed(1)

    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    edt = FabricModel(model, get_datasets, F.cross_entropy, optimizer)
    edt.train(args.epochs, args.batch_size // MAX_WORKERS, MAX_WORKERS)


if __name__ == "__main__":
    main()
