"""What all systems train: two models, their data, and the log of steps that tells how long training stood still.

Imports torch alone, so that it runs in the peers' environment as well as in Pliant's.

- `cnn`: 1-32-64 3×3 convolutions and 9216-128-10 on pictures of 28×28; 1.2 M parameters, 4.8 MB.
- `mlp`: 784-4096-4096-1198-10; 24.9 M parameters, 99.6 MB.
- `adam5`, `adam100`, `adam500`, `adam1000`: 784-H-H-10; parameters and Adam's moments are as many MB together. Pliant
  alone.

The first two are trained by SGD without momentum, so that the state is the parameters; the global batch is 64 samples;
one thread computes.
"""

import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

BATCH_SIZE = 64
NUM_SAMPLES = 6400
SIDE = 28
WIDTHS = {"adam5": 360, "adam100": 2520, "adam500": 6073, "adam1000": 8739}


def build(name: str) -> nn.Module:
    """Return a model with weights that are the same everywhere."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
        )  # fmt: skip
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE * SIDE, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, 1198), nn.ReLU(), nn.Linear(1198, 10),
        )  # fmt: skip
    if width := WIDTHS.get(name):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE * SIDE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 10),
        )  # fmt: skip
    raise ValueError(f"no model is named {name!r}; there are cnn, mlp, {', '.join(WIDTHS)}")


def optimizer_of(model: nn.Module, name: str = "") -> torch.optim.Optimizer:
    """Return the optimizer: it has no state of its own, but for the models that say so."""
    if name in WIDTHS:
        return torch.optim.Adam(model.parameters(), lr=1e-4)
    return torch.optim.SGD(model.parameters(), lr=0.01)


def num_state_elements(name: str) -> int:
    """Return how many float32 elements the state of a training has."""
    num_parameters = sum(parameter.numel() for parameter in build(name).parameters())
    return num_parameters * (3 if name in WIDTHS else 1)


def data() -> TensorDataset:
    """Return the samples: noise, the same everywhere."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(NUM_SAMPLES, 1, SIDE, SIDE, generator=generator)
    return TensorDataset(x, torch.randint(0, 10, (NUM_SAMPLES,), generator=generator))


class StepLog:
    """One worker's file of completed steps: a line `TIME STEP SIZE RANK` each, by the machine's monotonic clock.

    Its name is the worker's host and number there.
    """

    def __init__(self, folder: Path) -> None:
        self._file = os.open(
            folder / f"{os.uname().nodename}-{os.getpid()}.steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )

    def note(self, step: int, *, size: int, rank: int) -> None:
        """Tell that the optimizer's step with this number, counted from one, is done."""
        os.write(self._file, f"{time.monotonic():.6f} {step} {size} {rank}\n".encode())
