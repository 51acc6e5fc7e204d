"""The network, on its own so that trained weights can be loaded into it anywhere: it needs torch alone."""

from torch import nn


def make_network(num_classes, size=32, width=32, dropout=0.0):
    """Return a convolutional network for pictures of three channels and `size` x `size` pixels, 8 at least."""
    return nn.Sequential(
        nn.Conv2d(3, width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2 * width, 2 * width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * width * (size // 8) ** 2, num_classes),
    )
