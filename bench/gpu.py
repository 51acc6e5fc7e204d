"""On a GPU: what a step costs alone and against DDP, and how long changes of size stop a training.

Alone: the same model, data and optimizer in a plain loop and in Pliant, in one process; `fast`, and `exact` with one
part, compute the same operations as the plain loop (`exact` with deterministic kernels). They take turns step by step,
and each step is compared with the plain one beside it: within seconds a host may become a third faster or slower, and
most of such a step is the host's.

Against DDP: the trainings of `bench.steps` with one worker and two, `exact` with the V that a job gets if it asks for
none. Changes: a job under a real server goes 2 → 4 → 2 → 3 tasks, and one of three is killed by SIGKILL in the middle
of a step, as in `bench.elastic`; a CNN of 5 MB, and an MLP whose parameters and moments of Adam are 1 GB. The figure is
the longest gap between steps beyond the usual step. Where there are fewer GPUs than workers, all share the first, and
gradients travel through the host's memory: over gloo, DDP's too. Else each has its own, and it is NCCL.

Claims: alone, at most 1.02 of the plain loop's step; `exact` at most 1.05 of DDP's; a change at most 0.5 s.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.utils.data import TensorDataset

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.fixed.contest import Contender, contest
from bench.fixed.worker import Device
from bench.peers.page import MODELS
from bench.peers.scripts.workload import WIDTHS
from bench.peers.server import OPEN, Server
from bench.peers.session import EVENTS, Outcome, play
from bench.peers.sides import KINDS, Place, Pliant
from bench.steps import DDP, EXACT, FAST, Results, default_parts, ratio
from pliant.core.job import Mode
from pliant.train import Run

PARTS: Final = ("alone", "ddp", "changes")
TRAININGS: Final = ("cnn", "mlp", "mlp100", "transformer")
BATCH, WIDTH = 512, 2048
MODES: tuple[Mode, ...] = ("fast", "exact")
MOST_ALONE, MOST_EXACT, MOST_CHANGE_S = 1.02, 1.05, 0.5
MOST_TASKS: Final = 4
ROUNDS: Final = 2
"""Of all changes, in one session of a model."""
SESSION_S: Final = 300.0
WARM_UP = 5


def build(width: int = WIDTH) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return a model on the GPU, the same every time; of 10 million parameters, if its layers are not wider."""
    torch.manual_seed(1)
    sizes = [784, width, width, width, 10]
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers[:-1]).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def data(num_steps: int) -> TensorDataset:
    """Return a data set of so many global batches, on the GPU, so that no copying is timed."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(num_steps * BATCH, 784, generator=generator).cuda()
    return TensorDataset(x, torch.randint(0, 10, (len(x),), generator=generator).cuda())


def collate(samples: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    return [torch.stack(column) for column in zip(*samples, strict=True)]


def plain_steps(samples: TensorDataset, width: int) -> Iterator[None]:
    """Train one epoch in a plain loop, a step for every value that is asked for."""
    model, optimizer = build(width)
    order = torch.randperm(len(samples)).tolist()
    for first in range(0, len(samples), BATCH):
        x, y = collate([samples[index] for index in order[first : first + BATCH]])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield


def pliant_steps(samples: TensorDataset, width: int, mode: Mode) -> Iterator[None]:
    """Train the same in Pliant alone."""
    model, optimizer = build(width)
    run = Run(model, optimizer, samples, batch_size=BATCH, virtual_workers=1, mode=mode, collate_fn=collate)
    for _ in run.epochs(1):
        for x, y in run:
            run.step(nn.functional.cross_entropy(model(x), y))
            yield


def alone(num_steps: int, width: int) -> dict[str, list[float]]:
    """Return the seconds of every step by who made it; the steps of one place were made one after the other."""
    samples = data(num_steps + WARM_UP)
    loops = {"plain loop": plain_steps(samples, width)}
    loops |= {mode: pliant_steps(samples, width, mode) for mode in MODES}
    times: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(num_steps + WARM_UP):
        turn = number % len(loops)
        for name in (*list(loops)[turn:], *list(loops)[:turn]):
            torch.use_deterministic_algorithms(name == "exact", warn_only=True)
            torch.cuda.synchronize()
            began = time.perf_counter()
            next(loops[name])
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - began)
    for loop in loops.values():
        assert next(loop, "the end") == "the end"
    return {name: steps[WARM_UP:] for name, steps in times.items()}


# -- against DDP, and changes of size ---------------------------------------------------------------------------------


def against_ddp(sizes: Iterable[int], rounds: int, device: Device) -> Results:
    """Return the paces of DDP and of both modes with so many workers, by training and number of workers."""
    found: Results = {}
    for training, size in product(TRAININGS, sizes):
        exact = Contender(name=EXACT, how="exact", num_parts=default_parts(training))
        found[training, size] = paces = contest(
            training, size, (DDP, FAST, exact), num_blocks=2 * rounds, block_s=1.0, device=device
        )
        print(training, size, {who: f"{pace.median * 1000:.2f} ms" for who, pace in paces.items()}, flush=True)
    return found


def changes(model: str, device: Device) -> Outcome:
    """Let a training on this machine's GPUs change its size, and lose a task, under a real server."""

    def side(place: Place) -> Pliant:
        slots = None if device == "cuda" and torch.cuda.device_count() >= MOST_TASKS else MOST_TASKS
        server = Server(place.steps.parent, place.processes, slots=slots, options=OPEN)
        return Pliant(place, server=server, device=device)

    kind = replace(KINDS[0], make=side, limit_s=SESSION_S)
    return play(kind, model, Path(sys.executable), rounds=ROUNDS)


def rows_of_changes(model: str, outcome: Outcome) -> tuple[list[tuple[str, ...]], list[Claim]]:
    """Return the rows of the table and the claims for one model."""
    rows: list[tuple[str, ...]] = []
    claims = []
    for event in EVENTS:
        lost = outcome.lost.get(event, [])
        text = f"{model}, {event}: at most {MOST_CHANGE_S:g} s"
        if not lost:
            rows.append((model, event, "not reached", ""))
            claims.append(Claim(text=text, found="", holds=None))
            continue
        usual = statistics.median(cost.usual_s for cost in lost)
        rows.append((model, event, spread([cost.lost_s * 1000 for cost in lost]), f"{usual * 1000:.1f}"))
        seconds = statistics.median(cost.lost_s for cost in lost)
        claims.append(Claim(text=text, found=f"{seconds:.3f} s", holds=seconds <= MOST_CHANGE_S))
    return rows, claims


def middle_half(values: list[float]) -> str:
    """Return the median, and the range of the half of all values around it.

    >>> middle_half([1.0, 2.0, 3.0, 4.0, 50.0])
    '3.00 [2.00 4.00]'
    """
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.2f} [{low:.2f} {high:.2f}]"


def page_alone(rounds: int, num_steps: int, width: int) -> tuple[str, list[Claim]]:
    """Measure a step alone, and return its table and its claims."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read once, for all of them: `exact` needs it
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, steps in alone(num_steps, width).items():
            found.setdefault(name, []).extend(steps)
    claims = []
    for mode in MODES:
        ratio_alone = statistics.median(a / b for a, b in zip(found[mode], found["plain loop"], strict=True))
        text = f"alone, `{mode}`: at most {MOST_ALONE:.2f} of the plain loop's step"
        claims.append(Claim(text=text, found=f"{ratio_alone:.3f}", holds=ratio_alone <= MOST_ALONE))
    rows = [(name, middle_half([1000 * value for value in values])) for name, values in found.items()]
    return table(("alone", "ms a step: median [middle half]"), *rows), claims


def page_against_ddp(sizes: Iterable[int], rounds: int, device: Device) -> tuple[str, list[Claim]]:
    """Measure steps against DDP, and return their table and their claims."""
    rows, claims = [], []
    for (training, size), paces in against_ddp(sizes, rounds, device).items():
        for name, pace in paces.items():
            times = spread([block * 1000 for block in pace.blocks], 2)
            rows.append((training, str(size), name, times, f"{ratio(paces, name, DDP.name):.2f}"))
        found = ratio(paces, EXACT, DDP.name)
        text = f"{training}, N = {size}: `exact` with the default V at most {MOST_EXACT:.2f} of DDP's step"
        claims.append(Claim(text=text, found=f"{found:.3f}", holds=round(found, 2) <= MOST_EXACT))
    return table(("training", "N", "who", "ms a step", "of DDP's"), *rows), claims


def page_changes(models: Sequence[str], device: Device) -> tuple[str, list[Claim]]:
    """Play the changes of size, and return their table and their claims."""
    rows: list[tuple[str, ...]] = []
    claims: list[Claim] = []
    troubles = []
    for model in models:
        outcome = changes(model, device)
        print(model, f"{outcome.took_s:.0f} s", outcome.trouble, flush=True)
        more_rows, more_claims = rows_of_changes(model, outcome)
        rows += more_rows
        claims += more_claims
        if outcome.trouble:
            troubles.append(f"{model} went no further: {outcome.trouble}\n")
    columns = ("model", "event", "ms that training stood still", "usual step, ms")
    return "\n".join([table(columns, *rows), *troubles]), claims


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="alone, in a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="alone; against DDP, two turns each (%(default)s)")
    parser.add_argument("--width", type=int, default=WIDTH, help="of the layers; 8192 keeps the GPU busy, not the host")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what is measured (all of it)")
    names = [*MODELS, *WIDTHS]
    parser.add_argument("--models", nargs="+", choices=names, default=["cnn", "adam1000"], help="of the changes")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try out all but `alone`")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        print("no GPU: nothing was measured")
        return 0
    command = f"python -m bench.gpu --steps {given.steps} --rounds {given.rounds} --parts {' '.join(given.parts)}"
    if given.width != WIDTH:
        command += f" --width {given.width}"
    where = "no GPU: the benchmark was tried out"
    if given.device == "cuda":
        where = f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    found = []
    if "alone" in given.parts and given.device == "cuda":
        found.append(page_alone(given.rounds, given.steps, given.width))
    if "ddp" in given.parts:
        sizes = (1, 2, MOST_TASKS) if torch.cuda.device_count() >= MOST_TASKS else (1, 2)
        found.append(page_against_ddp(sizes, given.rounds, given.device))
    if "changes" in given.parts:
        found.append(page_changes(given.models, given.device))
    claims = [claim for _, judged in found for claim in judged]
    tables = [text for text, _ in found]
    text = "\n".join([head("Pliant on a GPU", command), f"{where}\n", *tables, verdicts(claims)])
    return finish(text, claims, given.out)


if __name__ == "__main__":
    sys.exit(main())
