"""A training whose task 2 never comes back from the data of one step; the task that takes its place does."""

import os
import time

import torch
from torch.utils.data import Dataset

from pliant.train import Run

STUCK_AT = 40


class Slow(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01)
        if os.environ["PLIANT_TASK_ID"].endswith(".2") and run.num_steps_done >= STUCK_AT:
            time.sleep(1e5)  # here it is stuck
        return torch.full((1,), float(index))


torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
run = Run(model, torch.optim.SGD(model.parameters(), lr=1e-4), Slow(), batch_size=8, virtual_workers=4)
for _ in run.epochs(40):
    for x in run:
        run.step(((model(x) - x) ** 2).mean())
