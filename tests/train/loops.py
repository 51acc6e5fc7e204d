"""Trainings as people write them, each once as a plain loop of PyTorch and once with `Run`.

A case is built anew for every training; the order of samples is the data set's, so that both see the same batches.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from pliant.core.job import JobId, TaskId
from pliant.core.link import Form, FromTask, Ready
from pliant.train import Run
from pliant.train.context import TRAIN_CONTEXT, TrainContext, standalone_context
from pliant.train.group.membership import TaskMembership

NUM_SAMPLES, BATCH, NUM_EPOCHS = 60, 16, 3
STEPS_PER_EPOCH = 4

Optimizer = torch.optim.Optimizer


class Points(Dataset[Any]):
    """Samples of (index, x, y); the index tells what a sample is there for."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(5)
        self.x = torch.randn(NUM_SAMPLES, 6, generator=generator)
        self.y = (self.x.sum(dim=1) > 0).long()

    def __len__(self) -> int:
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor, torch.Tensor]:
        return index, self.x[index], self.y[index]


Loss = Callable[[Any], torch.Tensor]


@dataclass(kw_only=True)
class Case:
    """What a training is made of."""

    model: nn.Module
    optimizers: Mapping[str, Optimizer]
    loss: Loss
    """Takes a batch."""
    schedulers: Sequence[Any] = ()
    scaler: torch.amp.GradScaler | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    accumulate: int = 1
    state: Mapping[str, Any] = field(default_factory=dict)
    collate_fn: Callable[[list[Any]], Any] | None = None
    before_step: Callable[[], object] | None = None
    after_step: Callable[[], object] | None = None
    after_epoch: Callable[[int, float], object] = lambda _epoch, _loss: None
    """Gets the number of the epoch and the loss of its last batch."""


def make(model: nn.Module, optimizer: Optimizer | None = None, loss: Loss | None = None, **options: Any) -> Case:
    """Return a case of one optimizer and the usual loss, where nothing else is said."""
    return Case(
        model=model,
        optimizers={"0": optimizer or sgd(model)},
        loss=loss or (lambda batch: F.cross_entropy(model(batch[1]), batch[2])),
        **options,
    )


def mlp() -> nn.Sequential:
    """Return a small model; its weights come from a generator of its own, so that tasks may be threads."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


def sgd(model: nn.Module, lr: float = 0.1) -> Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=0.01)


def train_plain(case: Case, num_epochs: int = NUM_EPOCHS) -> Case:
    """Train in one process, without Pliant."""
    points = Points()
    collate = case.collate_fn or torch.utils.data.default_collate
    for epoch in range(num_epochs):
        loss = torch.zeros(())
        for start in range(0, NUM_SAMPLES, BATCH):
            indices = range(start, min(start + BATCH, NUM_SAMPLES))
            for optimizer in case.optimizers.values():
                optimizer.zero_grad()
            num_pieces = -(-len(indices) // -(-BATCH // case.accumulate))
            total = 0.0
            for piece in torch.tensor(indices).tensor_split(num_pieces):
                loss = case.loss(collate([points[index] for index in piece.tolist()]))
                loss = loss * (len(piece) / len(indices))
                total += loss.item()
                (loss if case.scaler is None else case.scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]
            _step_plain(case)
        case.after_epoch(epoch, total)
    return case


def _step_plain(case: Case) -> None:
    if case.scaler is not None:
        for optimizer in case.optimizers.values():
            case.scaler.unscale_(optimizer)
    if case.clip_norm is not None:
        nn.utils.clip_grad_norm_(case.model.parameters(), case.clip_norm)
    if case.clip_value is not None:
        nn.utils.clip_grad_value_(case.model.parameters(), case.clip_value)
    if case.before_step is not None:
        case.before_step()
    for optimizer in case.optimizers.values():
        if case.scaler is not None:
            case.scaler.step(optimizer)
        else:
            optimizer.step()
    if case.scaler is not None:
        case.scaler.update()
    for scheduler in case.schedulers:
        scheduler.step()
    if case.after_step is not None:
        case.after_step()


def run_of(case: Case, **options: Any) -> Run:
    """Return the `Run` of a case."""
    return Run(
        case.model,
        case.optimizers,
        options.pop("data", None) or Points(),
        batch_size=BATCH,
        shuffle=False,
        accumulate=case.accumulate,
        collate_fn=case.collate_fn,
        schedulers=case.schedulers,
        scaler=case.scaler,
        clip_norm=case.clip_norm,
        clip_value=case.clip_value,
        before_step=case.before_step,
        after_step=case.after_step,
        state=case.state,
        **options,
    )


def train(case: Case, num_epochs: int = NUM_EPOCHS, **options: Any) -> Run:
    """Train with Pliant."""
    run = run_of(case, **options)
    for epoch in run.epochs(num_epochs):
        for batch in run:
            run.step(case.loss(batch))
        case.after_epoch(epoch, run.last["loss"])
    return run


@contextmanager
def training_context(heard: list[FromTask] | None = None) -> Iterator[TrainContext]:
    """Be the only task of a job of V = 1 meanwhile, for any number of trainings one after the other."""
    num_formed = 0

    def send(message: FromTask) -> None:
        nonlocal num_formed
        if heard is not None:
            heard.append(message)
        if isinstance(message, Ready):
            num_formed += 1
            membership.deliver(Form(generation=num_formed, members=(me,), host="", port=0))

    me = TaskId("job-1.1")
    membership = TaskMembership(
        job_id=JobId("job-1"), task_id=me, pid=1, host="127.0.0.1", key=b"the key of job-1", send=send
    )
    context = standalone_context()
    context.membership, context.result_dir, context.standalone = membership, None, False
    context.virtual_workers = 1
    token = TRAIN_CONTEXT.set(context)
    try:
        yield context
    finally:
        for clean_up in reversed(context.cleanups):
            clean_up()
        TRAIN_CONTEXT.reset(token)
