"""A training of one step that notes when it began and when its step was done: `trial.py HOW FILE [--lr=LR]`.

HOW is `pliant` (a trial's script; FILE is in its result folder) or `plain`. "Began" is after torch is there, by the
clock of the day, which all processes of a machine share.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

BEGAN_AT = time.time()


def main() -> None:
    """Train one step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=("pliant", "plain"))
    parser.add_argument("file")
    parser.add_argument("--lr", type=float, default=0.01)
    given = parser.parse_args()
    if given.how == "pliant":
        by_pliant(Path(os.environ["RESULT_DIR"], given.file), BEGAN_AT)
    else:
        by_hand(Path(given.file), BEGAN_AT)


def by_pliant(file: Path, began_at: float) -> None:
    """Train one step of a `Run`."""
    from bench.peers.scripts.workload import BATCH_SIZE, build, optimizer_of
    from pliant.train import Run  # the plain loop does without

    model = build("cnn")
    run = Run(model, optimizer_of(model), samples(), batch_size=BATCH_SIZE)
    for _epoch in run.epochs(1):
        for x, y in run:
            run.step(cross_entropy(model(x), y))
            note(file, began_at)
        run.log(val_loss=run.last["loss"])


def by_hand(file: Path, began_at: float) -> None:
    """Train one step of a plain loop."""
    from bench.peers.scripts.workload import BATCH_SIZE, build, optimizer_of

    model = build("cnn")
    optimizer = optimizer_of(model)
    loader: DataLoader[Any] = DataLoader(samples(), batch_size=BATCH_SIZE, shuffle=True)
    for x, y in loader:
        cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        note(file, began_at)


def samples() -> Any:
    """Return as many samples as one step uses."""
    import torch

    from bench.peers.scripts.workload import BATCH_SIZE, SIDE

    generator = torch.Generator().manual_seed(7)
    x = torch.randn(BATCH_SIZE, 1, SIDE, SIDE, generator=generator)
    return torch.utils.data.TensorDataset(x, torch.randint(0, 10, (BATCH_SIZE,), generator=generator))


def note(file: Path, began_at: float) -> None:
    """Write both times, whole or not at all."""
    whole = file.with_suffix(".new")
    whole.write_text(json.dumps({"began_at": began_at, "stepped_at": time.time()}))
    os.replace(whole, file)


if __name__ == "__main__":
    main()
