"""A training with Lightning whose speed a test sets while it runs, as `paced.py` does."""

import time
from pathlib import Path
from sys import argv
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from pliant.integrations.lightning import ElasticStrategy

PACE = Path(argv[1])


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(200, 12, generator=generator)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


class Paced(L.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 24), nn.Dropout(0.2), nn.Tanh(), nn.Linear(24, 2))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        time.sleep(float(PACE.read_text()))
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.9, patience=0, threshold=0.9)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


def main() -> None:
    L.seed_everything(3)
    trainer = L.Trainer(
        strategy=ElasticStrategy(),
        max_epochs=30,
        accelerator="cpu",
        logger=CSVLogger("logs"),
        enable_progress_bar=False,
        callbacks=[
            EarlyStopping("val_loss", min_delta=100.0, patience=9),
            ModelCheckpoint(monitor="val_loss", save_top_k=1, mode="max"),
        ],
    )
    trainer.fit(Paced(), DataLoader(data(), batch_size=50, shuffle=True), DataLoader(data(), batch_size=50))
    print(f"stopped after epoch {trainer.current_epoch}, step {trainer.global_step}", flush=True)


if __name__ == "__main__":
    main()
