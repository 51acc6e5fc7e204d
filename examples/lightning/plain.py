"""Train a network on scikit-learn's handwritten digits with Lightning."""

import argparse

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

NUM_TEST_SAMPLES = 360


class Digits(L.LightningDataModule):
    """8 x 8 pixels; the split is always the same."""

    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
        labels = torch.tensor(digits.target)
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        test, train = order[:NUM_TEST_SAMPLES], order[NUM_TEST_SAMPLES:]
        self.train_set = TensorDataset(images[train], labels[train])
        self.test_set = TensorDataset(images[test], labels[test])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.test_set, batch_size=self.batch_size)


class Classifier(L.LightningModule):
    """A small convolutional network."""

    def __init__(self, width, lr):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(32 * width, 10),
        )
        self.accuracy = MulticlassAccuracy(num_classes=10)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        outputs = self.net(x)
        self.accuracy(outputs, y)
        self.log("val_loss", F.cross_entropy(outputs, y))
        self.log("val_accuracy", self.accuracy, prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of one optimizer step")
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--width", type=int, default=16, help="channels; more take longer")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    L.seed_everything(args.seed)

    trainer = L.Trainer(
        max_epochs=args.epochs,
        logger=False,
        enable_progress_bar=False,
        gradient_clip_val=1.0,
        callbacks=[EarlyStopping("val_loss", patience=4), ModelCheckpoint(monitor="val_loss")],
    )
    trainer.fit(Classifier(args.width, args.lr), datamodule=Digits(args.batch_size))
    print(f"test accuracy {trainer.callback_metrics['val_accuracy']:.4f}")


if __name__ == "__main__":
    main()
