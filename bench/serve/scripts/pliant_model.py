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
        pixels = [one["x"] if "x" in one else np.asarray(one["inputs"][0]["data"], "float32") for one in batch]
        images = torch.from_numpy(np.stack(pixels)).view(-1, 1, 28, 28)
        with torch.inference_mode():
            return [{"y": scores} for scores in self.net(images).tolist()]
"""
SLOW = """
import time


class Model:
    raw = True

    def predict(self, batch):
        time.sleep({seconds} * len(batch))
        return list(batch)
"""
