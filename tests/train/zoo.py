"""Three small trainings that between them hold what makes results differ: BatchNorm, dropout, attention, clipping.

Every one is a function of its arguments alone; `train` returns the SHA-256 of what it ends with.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from pliant.train import Run

NUM_SAMPLES, BATCH = 100, 24


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        result: torch.Tensor = x + self.mlp(self.second(x))
        return result


class Reader(nn.Module):
    """A transformer over 6 tokens, its output tied to its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.blocks = nn.Sequential(Block(16), Block(16))
        self.norm = nn.LayerNorm(16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.linear(self.norm(self.blocks(self.embed(tokens))).mean(1), self.embed.weight)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 11))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(54, 11),
    )


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "cnn": cnn, "transformer": Reader}


def build(name: str) -> tuple[nn.Module, torch.optim.Optimizer, TensorDataset]:
    """Return model, optimizer and data of one training."""
    torch.default_generator.manual_seed(5)
    model = MODELS[name]()
    generator = torch.Generator().manual_seed(6)
    labels = torch.randint(0, 11, (NUM_SAMPLES,), generator=generator)
    if name == "transformer":
        inputs = torch.randint(0, 11, (NUM_SAMPLES, 6), generator=generator)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-2), TensorDataset(inputs, labels)
    inputs = torch.randn(NUM_SAMPLES, 1, 6, 6, generator=generator)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), TensorDataset(inputs, labels)


def train(
    name: str,
    *,
    num_epochs: int,
    mode: str = "exact",
    virtual_workers: int = 8,
    accumulate: int = 1,
    shares: tuple[int, ...] = (),
) -> str:
    """Train to the end; return the digest, and the claim before it."""
    model, optimizer, data = build(name)
    run = Run(
        model,
        optimizer,
        data,
        batch_size=BATCH,
        mode="exact" if mode == "exact" else "fast",
        virtual_workers=virtual_workers,
        accumulate=accumulate,
        clip_norm=1.0 if name == "transformer" else None,
        schedulers=[torch.optim.lr_scheduler.StepLR(optimizer, 5)],
    )
    for _ in run.epochs(num_epochs):
        run._engine.balance.shares = shares
        for x, y in run:
            run.step(F.cross_entropy(model(x), y))
        run.evaluate(data, lambda batch: {"loss": F.cross_entropy(model(batch[0]), batch[1])})
    assert len(run.last) == 1
    return f"{run.claim} {run.last['loss']!r} {run.digest()}"
