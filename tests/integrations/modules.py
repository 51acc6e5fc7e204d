"""A small LightningModule with everything that has a state, its data, and Trainers that say nothing."""

from collections.abc import Callable
from typing import Any, Final

import lightning as L
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy

from pliant.train.state.pytree import digest

NUM_SAMPLES, BATCH, STEPS_PER_EPOCH = 60, 16, 4
HUSHED: Final = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in (
        ".*does not have many workers",
        "The number of training batches",
        ".*treespec, LeafSpec.* is deprecated",
        "You defined a .validation_step. but have no",
        "You called .self.log.* but have no logger configured",
    )
]
"""What Lightning itself says of small trainings, and of a newer torch than it knows."""


def samples(num_samples: int = NUM_SAMPLES) -> TensorDataset:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(num_samples, 6, generator=generator)
    return TensorDataset(x, (x.sum(dim=1) > 0).long())


def loader(num_samples: int = NUM_SAMPLES, batch_size: int = BATCH, **options: Any) -> DataLoader[Any]:
    return DataLoader(samples(num_samples), batch_size=batch_size, **options)


class Net(L.LightningModule):
    """Logs in both steps, and counts with a metric in validation."""

    def __init__(self, lr: float = 0.1, schedule: Callable[[torch.optim.Optimizer], Any] | None = None) -> None:
        super().__init__()
        self.save_hyperparameters(ignore=["schedule"])
        self.lr = lr
        self.schedule = schedule
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
        generator = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in self.net.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
        self.accuracy = BinaryAccuracy()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        out = self.net(batch[0])
        self.accuracy(out.argmax(dim=1), batch[1])
        self.log("val_accuracy", self.accuracy)
        self.log("val_loss", F.cross_entropy(out, batch[1]))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
        return (
            optimizer if self.schedule is None else {"optimizer": optimizer, "lr_scheduler": self.schedule(optimizer)}
        )


class Count(Callback):
    """Counts hooks, and tells what it saw at each; its counts are state."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.seen: list[Any] = []

    def note(self, hook: str, *what: Any) -> None:
        self.counts[hook] = self.counts.get(hook, 0) + 1
        self.seen.append((hook, *what))

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.seen.append(("train start", trainer.current_epoch))

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.note("epoch start", trainer.current_epoch, trainer.global_step)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.note("batch start", batch_idx, trainer.global_step)

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.note("zero grad")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self.note("after backward")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.note("before step", trainer.global_step, sum(float(p.grad.sum()) for p in pl_module.parameters()))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.note("batch end", batch_idx, trainer.global_step, float(outputs["loss"]), metrics(trainer))

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.note("validation end", trainer.global_step, metrics(trainer))

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.note("epoch end", trainer.current_epoch, trainer.global_step, metrics(trainer))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.seen.append(("train end", trainer.current_epoch))

    def state_dict(self) -> dict[str, Any]:
        return dict(self.counts)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.counts = dict(state_dict)


def metrics(trainer: Any) -> dict[str, float]:
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


def quiet(**options: Any) -> dict[str, Any]:
    """Return arguments of a Trainer that prints and writes nothing."""
    found = {
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
    }
    return found | options


def make_trainer(**options: Any) -> Any:
    return L.Trainer(**quiet(**options))


def digest_of(module: Any, trainer: Any) -> str:
    """Return the SHA-256 of parameters and optimizer state."""
    return digest([module.state_dict(), [optimizer.state_dict() for optimizer in trainer.optimizers]])
