"""The training under Pliant: a task's script, `by_pliant.py MODEL FOLDER_OF_STEP_LOGS exact|fast [DEVICE]`."""

import os
import sys
from pathlib import Path
from typing import Literal

import torch
from torch.nn.functional import cross_entropy

from bench.peers.scripts.workload import BATCH_SIZE, StepLog, build, data, optimizer_of
from pliant.train import Run


def main() -> None:
    device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    if device == "cuda" and not os.environ.get("CUDA_VISIBLE_DEVICES"):
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"  # slots are shares of the processors: all tasks share the first GPU
    model = build(sys.argv[1]).to(device)
    mode: Literal["exact", "fast"] = "fast" if sys.argv[3] == "fast" else "exact"
    run = Run(model, optimizer_of(model, sys.argv[1]), data(), batch_size=BATCH_SIZE, mode=mode)
    log = StepLog(Path(sys.argv[2]))
    for _epoch in run.epochs(1_000_000):
        for x, y in run:
            before = run.num_steps_done
            run.step(cross_entropy(model(x.to(device)), y.to(device)))
            if run.num_steps_done > before:
                if device == "cuda":
                    torch.cuda.synchronize()  # the host is ahead of it
                log.note(run.num_steps_done, size=run.size, rank=run.rank)


if __name__ == "__main__":
    main()
