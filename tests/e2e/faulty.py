"""A training that hurts itself where the plan FAULTS says, and tells when it committed which step.

A step sleeps as long as the file PACE says, once, whatever the number of tasks. Every task appends a line
`time step rank size starved` to BEATS/TASK after each of its steps. What its state has of MARKER no gradient has.
"""

import argparse
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from tests.contracts.faults import Faults, Place
from tests.contracts.starvation import starved_s
from torch.utils.data import TensorDataset

from pliant.train import Run

NUM_SAMPLES = 500
MARKER = b"nobody on the network may read this"


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(NUM_SAMPLES, 12, generator=generator)
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--evaluate", type=int, default=5, help="epochs between evaluations")
    parser.add_argument("--virtual-workers", type=int)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--pace", type=Path)
    parser.add_argument("--faults", type=Path, default=Path("/nonexistent"))
    parser.add_argument("--beats", type=Path)
    return parser.parse_args()


def main() -> None:
    args = options()
    task_id = os.environ.get("PLIANT_TASK_ID", "alone.0")
    result = os.environ.get("RESULT_DIR")
    faults = Faults(args.faults, task_id=task_id, watched=Path(result) if result else None)
    faults.at(Place.START)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(12, args.width), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(args.width, 2)
    )
    model.register_buffer("marker", torch.frombuffer(bytearray(MARKER * 200), dtype=torch.uint8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    faults.install(optimizer)
    run = Run(
        model,
        optimizer,
        data(),
        batch_size=args.batch_size,
        virtual_workers=args.virtual_workers,
        state={"faults": faults},
    )
    faults.at(Place.BUILT)

    def measure(part: Any) -> dict[str, torch.Tensor]:
        faults.at(Place.EVALUATING)
        return {"accuracy_of_all": (model(part[0]).argmax(1) == part[1]).float().mean()}

    beats = (args.beats / task_id).open("a", buffering=1) if args.beats else None
    begun = -1
    for epoch in run.epochs(args.epochs):
        for x, y in run:
            step = run.num_steps_done
            if step != begun and args.pace is not None:
                time.sleep(float(args.pace.read_text()))
            begun = step
            faults.at(Place.STEP, rank=run.rank, step=step)
            output = model(x)
            loss = torch.nn.functional.cross_entropy(output, y)
            run.step(loss, accuracy=(output.argmax(1) == y).float().mean())
            if beats is not None and run.num_steps_done > step:
                with suppress(OSError):  # the disk may be full on purpose
                    starved = starved_s(os.getpid())
                    beats.write(f"{time.time():.6f} {run.num_steps_done} {run.rank} {run.size} {starved:.6f}\n")
        if epoch % args.evaluate == args.evaluate - 1:
            run.log(**run.evaluate(data(), measure, batch_size=20))
        print(f"epoch {epoch}: loss {run.last['loss']:.6f}", flush=True)
    print(f"digest {run.digest()}")


if __name__ == "__main__":
    main()
