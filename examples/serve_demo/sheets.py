"""What is asked for: sheets of handwritten digits that no training has seen, with the answers of plain PyTorch."""

from pathlib import Path
from random import Random
from typing import Final

import numpy as np
import torch

from examples.demo.report import Data

NUM_SHEETS: Final = 8
"""They hold the same digits in different orders: an answer to another request is wrong."""


def write_sheets(data: Data, model_file: Path, path: Path) -> Path:
    """Write requests and their right answers; return the path.

    The file holds `images` (sheets, digits, 1, 8, 8) and `scores` (sheets, digits, 10), both float32.
    """
    images = data.test_set.tensors[0]
    orders = [Random(number).sample(range(len(images)), len(images)) for number in range(NUM_SHEETS)]
    model = data.model(model_file)
    with torch.inference_mode():
        scores = [model(images[order]).numpy() for order in orders]
    np.savez(path, images=np.stack([images[order].numpy() for order in orders]), scores=np.stack(scores))
    return path
