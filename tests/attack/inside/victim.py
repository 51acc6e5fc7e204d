"""Ada's training: two tasks, for as long as nobody stops it; its secret is in its results and its environment."""

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from pliant.train import Run

SECRET = json.loads(sys.argv[1])["secret"]
os.environ["ADAS_SECRET"] = SECRET
(Path(os.environ["RESULT_DIR"]) / "secret.txt").write_text(SECRET)
(Path("/tmp") / "adas-secret").write_text(SECRET)
(Path("/dev/shm") / "adas-secret").write_text(SECRET)

model = torch.nn.Linear(4, 2)
rows = TensorDataset(torch.randn(4096, 4), torch.zeros(4096, dtype=torch.long))
run = Run(model, torch.optim.SGD(model.parameters(), 0.1), rows, batch_size=16, checkpoint_freq=0)
for _epoch in run.epochs(1_000_000):
    for x, y in run:
        time.sleep(0.005)
        run.step(torch.nn.functional.cross_entropy(model(x), y))
