"""A folder like the published `cifar-10-batches-py`, with fewer pictures: of every class another colour."""

import pickle
from pathlib import Path
from typing import Final

import numpy

CLASSES: Final = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES: Final = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
SIDE: Final = 32


def write_batches(folder: Path, *, num_pictures: int) -> None:
    """Write six batches of so many pictures, and `batches.meta`."""
    folder.mkdir()
    names = {b"label_names": [name.encode() for name in CLASSES], b"num_cases_per_batch": num_pictures}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    random = numpy.random.default_rng(7)
    for name in BATCHES:
        labels = [number % len(CLASSES) for number in range(num_pictures)]
        batch = {b"batch_label": name.encode(), b"labels": labels, b"data": _pixels(labels, random)}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))


def _pixels(labels: list[int], random: numpy.random.Generator) -> numpy.ndarray:
    """Return pictures as rows of bytes: all of red, then green, then blue; a disc before a paler ground, and noise."""
    colours = numpy.random.default_rng(3).integers(30, 225, (len(CLASSES), 3))[labels]
    across, down = numpy.meshgrid(numpy.arange(SIDE), numpy.arange(SIDE))
    centres = random.integers(10, 22, (len(labels), 2))
    discs = (across - centres[:, :1, None]) ** 2 + (down - centres[:, 1:, None]) ** 2 < 81
    pictures = numpy.where(discs[:, None], colours[:, :, None, None], 255 - (255 - colours[:, :, None, None]) // 4)
    noise = random.integers(-16, 17, pictures.shape)
    return numpy.clip(pictures + noise, 0, 255).astype(numpy.uint8).reshape(len(labels), -1)
