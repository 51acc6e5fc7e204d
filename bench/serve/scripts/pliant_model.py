"""What Pliant serves: the same as the peers, as a Python class; written to `serve.py` of a folder that is deployed."""

ECHO = """
class Model:
    inputs = [{"name": "x", "datatype": "BYTES", "shape": [-1]}]

    def predict(self, batch):
        return list(batch)
"""
CNN = """
import numpy as np
import torch
from net import build


class Model:
    def load(self):
        self.net = build()

    def predict(self, batch):
        images = torch.from_numpy(np.stack([one["x"] for one in batch])).view(-1, 1, 28, 28)
        with torch.inference_mode():
            return [{"y": scores} for scores in self.net(images).numpy()]
"""
SLOW = """
import time


class Model:
    raw = True

    def predict(self, batch):
        time.sleep({seconds} * len(batch))
        return list(batch)
"""
