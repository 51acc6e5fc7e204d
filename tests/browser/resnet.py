"""The code of a template: a small network for the CIFAR-10 pictures, trained as scripts for `FabricModel` are.

It sleeps before every loss as long as the file says that its parameter `pace` names.
"""

import time
from pathlib import Path
from typing import Any

import numpy
import pth_parameter_mgr  # type: ignore[import-not-found]
import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import Dataset

from fabric_model import FabricModel

NUM_PICTURES = 640
PACE = Path(pth_parameter_mgr.getParameter("pace", ""))


class Pictures(Dataset[Any]):
    """The first pictures of every class, turn about, each with the number of its class."""

    def __init__(self, folder: Path) -> None:
        classes = [sorted(path.iterdir()) for path in sorted(folder.iterdir())]
        turns = zip(*classes, strict=False)
        self.files = [(path, label) for turn in turns for label, path in enumerate(turn)][:NUM_PICTURES]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.files[index]
        with Image.open(path) as picture:
            pixels = numpy.asarray(picture, dtype=numpy.float32)
        return torch.from_numpy(pixels).permute(2, 0, 1) / 127.5 - 1, label


def get_datasets() -> tuple[Pictures, None]:
    return Pictures(Path(pth_parameter_mgr.getTrainData(False))), None


def paced_loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    time.sleep(float(PACE.read_text()))
    return F.cross_entropy(outputs, labels)


def main() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )
    batch_size = pth_parameter_mgr.getTrainBatchSize()
    edt = FabricModel(model, get_datasets, paced_loss, pth_parameter_mgr.getOptimizer(model))
    edt.train(pth_parameter_mgr.getEpoch(), batch_size, effective_batch_size=batch_size)


if __name__ == "__main__":
    main()
