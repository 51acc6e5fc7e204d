"""A training of one worker that says when its first step was done: `first_step.py HOW FILE`.

HOW is `pliant` (a task's script) or `plain` (a loop without Pliant). Writes the machine's monotonic clock.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from bench.peers.scripts.workload import BATCH_SIZE, build, data, optimizer_of


def main() -> None:
    how, report = sys.argv[1], Path(sys.argv[2])
    model = build("cnn")
    optimizer = optimizer_of(model)
    if how == "pliant":
        from pliant.train import Run  # the plain loop does without

        run = Run(model, optimizer, data(), batch_size=BATCH_SIZE)
        for _epoch in run.epochs(1):
            for x, y in run:
                run.step(cross_entropy(model(x), y))
                if run.num_steps_done:
                    tell(report)
                    return
    loader: DataLoader[Any] = DataLoader(data(), batch_size=BATCH_SIZE, shuffle=True)
    for x, y in loader:
        cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        tell(report)
        return


def tell(report: Path) -> None:
    """Write the time, whole or not at all."""
    whole = report.with_suffix(".new")
    whole.write_text(str(time.monotonic()))
    os.replace(whole, report)


if __name__ == "__main__":
    main()
