"""The cases of `loops` by what they are there for."""

from collections.abc import Callable
from typing import Any, Final

import torch
from tests.train.loops import BATCH, NUM_EPOCHS, STEPS_PER_EPOCH, Case, make, mlp, sgd
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint


def groups() -> Case:
    model = mlp()
    own: list[dict[str, Any]] = [
        {"params": model[0].parameters(), "lr": 0.03, "weight_decay": 0.1},
        {"params": model[2].parameters()},
    ]
    return make(model, torch.optim.AdamW(own, lr=0.01))


def two_optimizers() -> Case:
    model = mlp()
    case = make(model)
    case.optimizers = {
        "lower": torch.optim.AdamW(model[0].parameters(), lr=0.01),
        "upper": torch.optim.RMSprop(model[2].parameters(), lr=0.01, momentum=0.9),
    }
    return case


def schedule_by_steps() -> Case:
    model = mlp()
    optimizer = sgd(model)
    total = NUM_EPOCHS * STEPS_PER_EPOCH
    return make(model, optimizer, schedulers=[lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=total + 1)])


def schedule_by_epochs() -> Case:
    model = mlp()
    optimizer = sgd(model)
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, NUM_EPOCHS)
    return make(model, optimizer, state={"scheduler": scheduler}, after_epoch=lambda _epoch, _loss: scheduler.step())


def plateau() -> Case:
    model = mlp()
    optimizer = sgd(model, lr=2.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, threshold=0.5)
    return make(model, optimizer, state={"scheduler": scheduler}, after_epoch=lambda _epoch, loss: scheduler.step(loss))


def clipped_by_norm() -> Case:
    return make(mlp(), clip_norm=0.1)


def clipped_by_value() -> Case:
    return make(mlp(), clip_value=0.01)


def bfloat16_autocast() -> Case:
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.cross_entropy(model(batch[1]), batch[2])

    return make(model, loss=loss)


def float16_autocast(scale: float = 2.0**21) -> Case:
    """The scale is so large at first that steps overflow and are skipped."""
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            return F.cross_entropy(model(batch[1]), batch[2])

    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3)
    optimizer = sgd(model)
    return make(model, optimizer, loss, scaler=scaler, clip_norm=1.0)


def accumulated() -> Case:
    return make(mlp(), accumulate=2)


def own_collate() -> Case:
    model = mlp()

    def collate(samples: list[Any]) -> dict[str, torch.Tensor]:
        return {"x": torch.stack([x for _, x, _ in samples]) * 2, "y": torch.stack([y for _, _, y in samples])}

    return make(model, loss=lambda batch: F.cross_entropy(model(batch["x"]), batch["y"]), collate_fn=collate)


class Heads(nn.Module):
    """A trunk with two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor, use_second: bool) -> torch.Tensor:
        result: torch.Tensor = (self.second if use_second else self.first)(torch.tanh(self.trunk(x)))
        return result


def unused_by_all() -> Case:
    """Every step uses one of two heads; momentum and weight decay must leave the other one alone."""
    torch.default_generator.manual_seed(2)
    model = Heads()

    def loss(batch: Any) -> torch.Tensor:
        return F.cross_entropy(model(batch[1], bool(batch[0][0] // BATCH % 2)), batch[2])

    return make(model, loss=loss)


def unused_by_some() -> Case:
    """The second half of every global batch uses the second head."""
    torch.default_generator.manual_seed(2)
    model = Heads()

    def loss(batch: Any) -> torch.Tensor:
        index, x, y = batch
        second = index % BATCH >= BATCH // 2
        whole = x.new_zeros(())
        for use_second, mask in ((False, ~second), (True, second)):
            if mask.any():
                whole = whole + F.cross_entropy(model(x[mask], use_second), y[mask], reduction="sum")
        result: torch.Tensor = whole / len(index)
        return result

    return make(model, loss=loss)


def frozen() -> Case:
    model = mlp()
    model[0].requires_grad_(False)
    return make(model)


def frozen_later() -> Case:
    """The first layer rests in the second epoch."""
    model = mlp()
    return make(model, after_epoch=lambda epoch, _loss: model[0].requires_grad_(epoch != 0))


def tied() -> Case:
    torch.default_generator.manual_seed(2)
    first, second = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
    second.weight = first.weight
    return make(nn.Sequential(first, nn.Tanh(), second))


def averaged() -> Case:
    model = mlp()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))  # type: ignore[no-untyped-call]
    return make(model, state={"average": average}, after_step=lambda: average.update_parameters(model))


def batch_norm() -> Case:
    torch.default_generator.manual_seed(2)
    return make(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)))


def channels_last() -> Case:
    torch.default_generator.manual_seed(2)
    model: nn.Module = nn.Sequential(nn.Conv2d(2, 4, 2), nn.ReLU(), nn.Conv2d(4, 3, (1, 2)), nn.Flatten())
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss(batch: Any) -> torch.Tensor:
        images = batch[1].reshape(-1, 2, 1, 3).expand(-1, -1, 2, -1).to(memory_format=torch.channels_last)
        return F.cross_entropy(model(images), batch[2])

    return make(model, loss=loss)


def gradient_penalty() -> Case:
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        x = batch[1].requires_grad_()
        usual = F.cross_entropy(model(x), batch[2])
        [gradient] = torch.autograd.grad(usual * len(x), x, create_graph=True)
        result: torch.Tensor = usual + gradient.square().sum(dim=1).mean()
        return result

    return make(model, loss=loss)


def recomputed() -> Case:
    """Activation checkpointing of a layer that is used twice."""
    torch.default_generator.manual_seed(2)
    inner, outer = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.0)), nn.Linear(6, 2)

    def loss(batch: Any) -> torch.Tensor:
        x = checkpoint(inner, batch[1], use_reentrant=False)
        x = checkpoint(inner, x, use_reentrant=False)
        return F.cross_entropy(outer(x), batch[2])

    return make(nn.Sequential(inner, outer), loss=loss)


def in_dtype(dtype: torch.dtype) -> Case:
    model = mlp().to(dtype)
    return make(model, loss=lambda batch: F.cross_entropy(model(batch[1].to(dtype)), batch[2]))


def mixed_dtypes() -> Case:
    torch.default_generator.manual_seed(2)
    model = nn.Sequential(nn.Linear(6, 8).double(), nn.Linear(8, 8), nn.Linear(8, 2).bfloat16())

    def loss(batch: Any) -> torch.Tensor:
        hidden = torch.tanh(model[1](model[0](batch[1].double()).float()))
        return F.cross_entropy(model[2](hidden.bfloat16()).float(), batch[2])

    return make(model, loss=loss)


def sparse() -> Case:
    torch.default_generator.manual_seed(2)
    embed, upper = nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2)
    model = nn.Sequential(embed, upper)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return make(model, optimizer, lambda batch: F.cross_entropy(upper(embed(batch[0] % 7)), batch[2]))


class Waves(nn.Module):
    """Parameters of complex numbers, an odd number of real ones before them."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
        self.wave = nn.Parameter(torch.randn(6, 2, dtype=torch.complex64))
        self.phase = nn.Parameter(torch.randn((), dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = ((x.to(torch.complex64) @ self.wave) * self.phase).abs() + self.bias
        return result


def complex_numbers() -> Case:
    torch.default_generator.manual_seed(2)
    return make(Waves())


class Padded(nn.Module):
    """A model with parameters of no elements, one of them alone in its dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.none = nn.Parameter(torch.zeros(0, 3))
        self.nothing = nn.Parameter(torch.zeros(0, dtype=torch.float64))
        self.inner = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(x) + self.none.sum() + self.nothing.sum().float()
        return result


def no_elements() -> Case:
    return make(Padded())


CASES: Final[dict[str, Callable[[], Case]]] = {
    "parameter groups": groups,
    "two optimizers": two_optimizers,
    "schedule by steps": schedule_by_steps,
    "schedule by epochs": schedule_by_epochs,
    "plateau": plateau,
    "clip_norm": clipped_by_norm,
    "clip_value": clipped_by_value,
    "bfloat16 autocast": bfloat16_autocast,
    "float16 autocast": float16_autocast,
    "accumulate": accumulated,
    "collate_fn": own_collate,
    "unused by all": unused_by_all,
    "unused by some": unused_by_some,
    "frozen": frozen,
    "frozen later": frozen_later,
    "tied": tied,
    "averaged": averaged,
    "batch norm": batch_norm,
    "channels last": channels_last,
    "gradient penalty": gradient_penalty,
    "recomputed": recomputed,
    "bfloat16": lambda: in_dtype(torch.bfloat16),
    "float64": lambda: in_dtype(torch.float64),
    "mixed dtypes": mixed_dtypes,
    "sparse": sparse,
    "complex": complex_numbers,
    "no elements": no_elements,
}
