"""Train a network that tells pictures apart: CLASS/PICTURE.png in the folder of each part of the data set."""

from pathlib import Path

import numpy
import pth_parameter_mgr
import torch
import torch.nn.functional as F
from fabric_model import FabricModel
from network import make_network
from PIL import Image
from torch.utils.data import Dataset

SIZE = pth_parameter_mgr.getParameter("size", 32)


class Pictures(Dataset):
    """The pictures of one part of a data set, each with the number of its class."""

    def __init__(self, folder, classes):
        self.files = [
            (path, label) for label, name in enumerate(classes) for path in sorted((folder / name).glob("*.*"))
        ]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        with Image.open(path) as picture:
            pixels = numpy.asarray(picture.convert("RGB").resize((SIZE, SIZE)), dtype=numpy.float32)
        return torch.from_numpy(pixels).permute(2, 0, 1) / 127.5 - 1, label


def classes_in(folder):
    """Return the names of the classes in the order of their numbers."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def get_datasets():
    """Return the pictures for training and those for test, if the data set has some."""
    train, test = Path(pth_parameter_mgr.getTrainData(False)), Path(pth_parameter_mgr.getTestData(False))
    classes = classes_in(train)
    has_test = test != train and set(classes_in(test)) <= set(classes)
    return Pictures(train, classes), Pictures(test, classes) if has_test else None


def main():
    torch.manual_seed(1)
    classes = classes_in(Path(pth_parameter_mgr.getTrainData(False)))
    width, dropout = pth_parameter_mgr.getParameter("width", 32), pth_parameter_mgr.getParameter("dropout", 0.0)
    model = make_network(len(classes), SIZE, width, dropout)
    optimizer = pth_parameter_mgr.getOptimizer(model)
    edt = FabricModel(
        model,
        get_datasets,
        F.cross_entropy,
        optimizer,
        epoch_schedulers=[pth_parameter_mgr.getLearningRate(optimizer)],
    )
    batch_size = pth_parameter_mgr.getTrainBatchSize()
    edt.train(pth_parameter_mgr.getEpoch(), batch_size, effective_batch_size=batch_size)


if __name__ == "__main__":
    main()
