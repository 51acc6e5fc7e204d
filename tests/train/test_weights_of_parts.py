"""Parts that count by something else than their samples, and what is called after a commit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.crew import run_in
from tests.train.loops import training_context
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from pliant.train import Run, TrainingError
from pliant.train.context import TrainContext

NUM_SAMPLES, BATCH, LENGTH = 24, 8, 5


@pytest.fixture(autouse=True)
def context() -> Iterator[TrainContext]:
    with training_context() as found:
        yield found


def data() -> TensorDataset:
    """Rows of which some places count and some do not; one row has none."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(NUM_SAMPLES, LENGTH, generator=generator)
    counts = torch.rand(NUM_SAMPLES, LENGTH, generator=generator) < torch.rand(NUM_SAMPLES, 1, generator=generator)
    counts[3] = False
    return TensorDataset(x, counts)


def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(LENGTH, LENGTH)
    with torch.no_grad():
        model.weight.copy_(torch.eye(LENGTH) * 0.3)
        model.bias.zero_()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(model: torch.nn.Module, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    errors: torch.Tensor = (model(x) - x).square()[counts]
    return errors.sum() / max(1, len(errors))


def train(way: str = "step", virtual_workers: int = 8) -> tuple[list[float], list[float], str]:
    model, optimizer = build()
    losses: list[float] = []

    def note() -> None:
        losses.append(run.last["loss"])
        assert len(losses) == run.num_steps_done

    run = Run(
        model,
        optimizer,
        data(),
        batch_size=BATCH,
        shuffle=False,
        virtual_workers=virtual_workers,
        clip_norm=0.5,
        after_commit=note,
    )
    for _ in run.epochs(2):
        for x, counts in run:
            loss = loss_of(model, x, counts)
            if way == "step":
                run.step(loss, weight=int(counts.sum()))
            else:
                loss.backward()  # type: ignore[no-untyped-call]
                run.take(loss, weight=int(counts.sum()))
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(), losses, run.digest()


def train_plain() -> tuple[list[float], list[float]]:
    model, optimizer = build()
    losses = []
    for _ in range(2):
        for start in range(0, NUM_SAMPLES, BATCH):
            x, counts = data()[start : start + BATCH]
            optimizer.zero_grad()
            loss = loss_of(model, x, counts)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(), losses


@pytest.mark.parametrize("way", ["step", "take"])
def test_weights_give_the_mean_over_all_that_counts(way: str) -> None:
    weights, losses, _ = train(way)

    expected_weights, expected_losses = train_plain()
    assert weights == pytest.approx(expected_weights, rel=1e-4, abs=1e-6)
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    assert train(way, virtual_workers=1)[:2] == (expected_weights, expected_losses)


def test_weights_keep_the_bits_for_any_number_of_tasks() -> None:
    [one] = run_in(1, train)

    assert run_in(3, train) == [one] * 3


def first_part(run: Run) -> Any:
    next(run.epochs(1))
    return next(iter(run))


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_no_amount_is_refused(weight: float) -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=BATCH)
    x, _counts = first_part(run)
    with pytest.raises(TrainingError, match=f"weight is {weight}; give the number that the mean"):
        run.step(F.mse_loss(model(x), x), weight=weight)


def test_a_weight_of_a_sum_is_refused() -> None:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=BATCH)
    x, _counts = first_part(run)
    with pytest.raises(TrainingError, match="leave it out with reduction"):
        run.step(F.mse_loss(model(x), x, reduction="sum"), reduction="sum", weight=1.0)


def test_a_training_is_finished_after_any_step(context: TrainContext, tmp_path: Path) -> None:
    context.result_dir = tmp_path
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=BATCH)
    prepared: list[int] = []
    for _ in run.epochs(3):
        for x, _counts in run:
            if run.step(F.mse_loss(model(x), x)) and run.num_steps_done == 2:
                break
        break
    run.finish(lambda: prepared.append(run.num_steps_done))

    assert prepared == [2]
    assert (tmp_path / "model" / "digest").read_text().strip() == run.digest()
