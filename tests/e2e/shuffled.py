"""One of the three trainings of `zoo.py`, at a speed that a test sets; prints its digest. Submitted with `zoo.py`."""

import argparse
import time
from pathlib import Path

import zoo  # type: ignore[import-not-found]
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR

from pliant.train import Run

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--pace", type=Path)
args = parser.parse_args()

model, optimizer, data = zoo.build(args.model)
run = Run(model, optimizer, data, batch_size=zoo.BATCH, schedulers=[StepLR(optimizer, 100)])
for _ in run.epochs(args.epochs):
    for x, y in run:
        if args.pace is not None:
            time.sleep(float(args.pace.read_text()) / len(x))
        run.step(F.cross_entropy(model(x), y))
    found = run.evaluate(data, lambda batch: {"accuracy": (model(batch[0]).argmax(1) == batch[1]).float().mean()})
print(f"{run.claim} {run.last['loss']!r} {found['accuracy']!r} {run.digest()}")
