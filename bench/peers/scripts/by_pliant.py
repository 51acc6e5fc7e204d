"""The training under Pliant: a task's script, `by_pliant.py MODEL FOLDER_OF_STEP_LOGS exact|fast`."""

import sys
from pathlib import Path
from typing import Literal

from torch.nn.functional import cross_entropy

from bench.peers.scripts.workload import BATCH_SIZE, StepLog, build, data, optimizer_of
from pliant.train import Run


def main() -> None:
    model = build(sys.argv[1])
    mode: Literal["exact", "fast"] = "fast" if sys.argv[3] == "fast" else "exact"
    run = Run(model, optimizer_of(model, sys.argv[1]), data(), batch_size=BATCH_SIZE, mode=mode)
    log = StepLog(Path(sys.argv[2]))
    for _epoch in run.epochs(1_000_000):
        for x, y in run:
            before = run.num_steps_done
            run.step(cross_entropy(model(x), y))
            if run.num_steps_done > before:
                log.note(run.num_steps_done, size=run.size, rank=run.rank)


if __name__ == "__main__":
    main()
