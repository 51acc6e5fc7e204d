"""What the processes of a crew run, by name."""

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tests.train.cases import CASES, averaged, float16_autocast
from tests.train.loops import Points, make, mlp, run_of, sgd, train
from torch import nn

from pliant.core.link import FromTask
from pliant.train.context import TRAIN_CONTEXT

VIRTUAL_WORKERS = 4


def train_cases(names: Sequence[str] = tuple(CASES), mode: str = "exact") -> dict[str, str]:
    """Return loss, claim and digest of every case at its end."""
    found = {}
    for name in names:
        run = train(CASES[name](), virtual_workers=VIRTUAL_WORKERS, mode="exact" if mode == "exact" else "fast")
        found[name] = f"{run.claim} {run.last['loss']!r} {run.digest()}"
    return found


def train_compiled(backend: str | None) -> str:
    """Return the digest of a model that was compiled, or not."""
    model = mlp()
    forward: Any = model if backend is None else torch.compile(model, backend=backend)
    case = make(forward, sgd(model))
    return train(case, num_epochs=1, virtual_workers=VIRTUAL_WORKERS).digest()


def resume(result_dir: str, stops: Sequence[int]) -> tuple[int, str, float, list[list[float]]]:
    """Train up to an epoch, from the newest checkpoint; return steps, digest, scale and the averaged weights."""
    context = TRAIN_CONTEXT.get()
    context.result_dir, context.checkpoint_freq = Path(result_dir), 1
    case, average = float16_autocast(), averaged().state["average"]
    assert case.scaler is not None
    case.state, case.after_step = {"average": average}, lambda: average.update_parameters(case.model)
    [optimizer] = case.optimizers.values()
    case.schedulers = [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]
    run = run_of(case, virtual_workers=VIRTUAL_WORKERS)
    for epoch in run.epochs(stops[0] + 1):
        if epoch == stops[0]:
            break
        for batch in run:
            run.step(case.loss(batch))
        run.evaluate(range(10), lambda numbers: {"mean": numbers.float().mean()})
    for clean_up in reversed(context.cleanups):
        clean_up()
    averages = [parameter.flatten().tolist() for parameter in average.parameters()]
    return run.num_steps_done, run.digest(), case.scaler.get_scale(), averages


def count_collectives(mode: str) -> dict[str, int]:
    """Return what 50 steps in the middle of a training start and send, while nothing is due to be reported."""
    context = TRAIN_CONTEXT.get()
    context.now = lambda: 0.0
    sent, send = [], context.membership.send

    def count(message: FromTask) -> None:
        sent.append(message)
        send(message)

    context.membership.send = count
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2).double(), nn.Linear(2, 2).bfloat16())
    optimizer = sgd(model)

    def loss_of(batch: Any) -> torch.Tensor:
        outputs = model[3](model[2](model[1](model[0](batch[1])).double()).bfloat16())
        return nn.functional.cross_entropy(outputs.float(), batch[2])

    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    case = make(model, optimizer, loss_of, schedulers=[schedule], clip_norm=1.0)
    data: Any = torch.utils.data.ConcatDataset([Points()] * 16)  # 60 steps in one epoch
    run = run_of(case, data=data, virtual_workers=VIRTUAL_WORKERS, mode="exact" if mode == "exact" else "fast")
    found: dict[str, int] = {}
    for _ in run.epochs(1):
        before, step = (0, 0), -1
        for batch in run:
            if run.num_steps_done != step:
                step = run.num_steps_done
                now = run._engine.membership.group.num_started, len(sent)
                if step == 5:
                    before, run._trainer._rendezvous = now, None  # the store that the tasks met at is gone
                    gc.collect()
                if step == 55:
                    found = {"collectives": now[0] - before[0], "messages": now[1] - before[1], "steps": step - 5}
            loss = case.loss(batch)
            run.step(loss, twice=2 * loss, ones=1.0)
    return found
