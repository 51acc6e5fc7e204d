"""The trainings whose steps are timed at a fixed number of workers; imports torch alone.

| name | model | optimizer | global batch |
|---|---|---|---|
| `mlp` | 784-2048-2048-10, 5.8 M parameters | SGD | 1024 |
| `mlp100` | 784-4096-4096-1198-10, 24.9 M parameters | SGD | 64 |
| `transformer` | 4 pre-norm blocks, width 128, 4 heads, 64 tokens, 0.86 M parameters | AdamW | 64 |
| `cnn` | 1-32-64 convolutions, 9216-128-10, 1.2 M parameters | SGD | 64 |
| `digits` | 64-128-64-10 on pictures of 8×8, 17 k parameters | SGD with momentum | 64 |
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from bench.peers.scripts import workload

TOKENS, VOCABULARY, WIDTH, HEADS, BLOCKS = 64, 256, 128, 4, 4


class Block(nn.Module):
    """One pre-norm block: attention that sees no later token, then two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        num, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(num, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(num, length, WIDTH))
        down: Tensor = self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return x + down


class Transformer(nn.Module):
    """A small language model."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        logits: Tensor = self.head(self.norm(self.blocks(inside)))
        return logits.transpose(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A model, how it is trained, and on what."""

    name: str
    batch_size: int
    build: Callable[[], nn.Module]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    data: Callable[[], TensorDataset]

    def loss(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        """Return the mean loss over a batch."""
        return cross_entropy(model(x), y)


def _texts() -> TensorDataset:
    text = torch.randint(0, VOCABULARY, (4096, TOKENS + 1), generator=torch.Generator().manual_seed(7))
    return TensorDataset(text[:, :-1].contiguous(), text[:, 1:].contiguous())


def _whole_batches() -> TensorDataset:
    """Return samples for six batches: of a smaller last batch not every worker has a part, so it would not count it."""
    return TensorDataset(*(tensor[: 6 * 1024] for tensor in workload.data().tensors))


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    )


def _small_pictures() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    return TensorDataset(torch.randn(1797, 64, generator=generator), torch.randint(0, 10, (1797,), generator=generator))


def _digits() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


TRAININGS = {
    training.name: training
    for training in (
        Training(
            name="mlp",
            batch_size=1024,
            build=_mlp,
            optimizer=workload.optimizer_of,
            data=_whole_batches,
        ),
        Training(
            name="transformer",
            batch_size=64,
            build=Transformer,
            optimizer=lambda model: torch.optim.AdamW(model.parameters(), lr=1e-4),
            data=_texts,
        ),
        Training(
            name="cnn",
            batch_size=64,
            build=lambda: workload.build("cnn"),
            optimizer=workload.optimizer_of,
            data=workload.data,
        ),
        Training(
            name="mlp100",
            batch_size=64,
            build=lambda: workload.build("mlp"),
            optimizer=workload.optimizer_of,
            data=workload.data,
        ),
        Training(
            name="digits",
            batch_size=64,
            build=_digits,
            optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
            data=_small_pictures,
        ),
    )
}
