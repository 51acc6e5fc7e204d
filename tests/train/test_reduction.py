"""A loss that is a sum over its samples: trained on as one where the script says so, seen where it does not."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import torch
from tests.train.cases import CASES
from tests.train.loops import BATCH, NUM_SAMPLES, Points, make, mlp, run_of, training_context
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from pliant.core.link import FromTask, Note
from pliant.train import Run, TrainingError
from pliant.train.context import TRAIN_CONTEXT
from pliant.train.reduction import find_sum

N: Final = 8
"""Samples of a batch."""
Outputs = torch.Tensor
Loss = Callable[[Outputs, torch.Tensor, nn.Linear], torch.Tensor]
"""Takes outputs of shape (N, 5), one-hot labels, and the layer that they come from, which has a weight of (5, 6)."""


@pytest.fixture
def heard() -> Iterator[list[FromTask]]:
    messages: list[FromTask] = []
    with training_context(messages):
        yield messages


def entropy(reduction: str) -> Loss:
    return lambda x, y, _: F.cross_entropy(x, y.argmax(1), reduction=reduction)


def kld(x: torch.Tensor) -> torch.Tensor:
    return -0.5 * torch.sum(1 + x - x.pow(2) - x.exp())


def masked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    mask = torch.arange(N).remainder(3).eq(1).float()
    return ((x - y).square().mean(1) * mask).sum() / mask.sum()


def square_layer(_x: torch.Tensor) -> torch.Tensor:
    """Return what `N` rows of a parameter add up to."""
    weight = torch.ones(N, N, requires_grad=True)
    return (weight @ weight.T - torch.eye(N)).square().sum()


SUMS: Final[dict[str, Loss]] = {
    "cross entropy": entropy("sum"),
    "cross entropy, smoothed": lambda x, y, _: F.cross_entropy(x, y, reduction="sum", label_smoothing=0.1),
    "cross entropy of each, summed": lambda x, y, _: F.cross_entropy(x, y.argmax(1), reduction="none").sum(),
    "squares": lambda x, y, _: F.mse_loss(x, y, reduction="sum"),
    "squares by hand": lambda x, y, _: ((x - y) ** 2).sum(),
    "half of the squares": lambda x, y, _: 0.5 * ((x - y) ** 2).sum(),
    "squares over one side after the other": lambda x, y, _: ((x - y) ** 2).sum(1).sum(),
    "absolute": lambda x, y, _: F.l1_loss(x, y, reduction="sum"),
    "smooth": lambda x, y, _: F.smooth_l1_loss(x, y, reduction="sum"),
    "VAE": lambda x, y, _: F.binary_cross_entropy(x.sigmoid(), y, reduction="sum") + kld(x),
    "VAE, stacked": lambda x, y, _: torch.stack(
        [F.binary_cross_entropy(x.sigmoid(), y, reduction="sum"), kld(x)]
    ).sum(),
    "a sum beside a mean": lambda x, y, _: F.mse_loss(x, y) + kld(x),
    "weighted": lambda x, y, _: ((x - y).square().sum(1) * torch.linspace(0.2, 1, N)).sum(),
    "of a view": lambda x, y, _: F.mse_loss(x.flatten(), y.flatten(), reduction="sum").view(1).squeeze(),
    "in double": lambda x, y, _: F.mse_loss(x.double(), y.double(), reduction="sum").float(),
    "with a penalty": lambda x, y, layer: F.mse_loss(x, y, reduction="sum") + layer.weight.square().sum(),
}
MEANS: Final[dict[str, Loss]] = {
    "cross entropy": entropy("mean"),
    "cross entropy, smoothed": lambda x, y, _: F.cross_entropy(x, y.argmax(1), label_smoothing=0.1),
    "cross entropy of distributions": lambda x, y, _: F.cross_entropy(x, y),
    "squares": lambda x, y, _: F.mse_loss(x, y),
    "squares by hand": lambda x, y, _: ((x - y) ** 2).mean(),
    "a sum by the number of samples": lambda x, y, _: ((x - y) ** 2).sum() / len(x),
    "a sum times the inverse": lambda x, y, _: ((x - y) ** 2).sum() * (1 / len(x)),
    "a large multiple of a mean": lambda x, y, _: 100 * ((x - y) ** 2).sum() / len(x),
    "features summed, samples not": lambda x, y, _: ((x - y) ** 2).sum(1).mean(),
    "samples averaged, features summed": lambda x, y, _: ((x - y) ** 2).mean(0).sum(),
    "divided before": lambda x, y, _: ((x - y) ** 2 / len(x)).sum(),
    "weights that add up to 1": lambda x, y, _: ((x - y).square().mean(1) * torch.full((N,), 1 / N)).sum(),
    "by a mask": lambda x, y, _: masked(x, y),
    "by an index": lambda x, y, _: (x - y).square().mean(1)[:2].sum() / 2,
    "batchmean": lambda x, y, _: F.kl_div(x.log_softmax(1), y, reduction="batchmean"),
    "VAE by its samples": lambda x, y, _: (F.binary_cross_entropy(x.sigmoid(), y, reduction="sum") + kld(x)) / len(x),
    "a penalty": lambda x, y, layer: F.cross_entropy(x, y) + 1e-3 * sum(p.square().sum() for p in layer.parameters()),
    "a penalty of as many rows": lambda x, y, _: F.cross_entropy(x, y) + square_layer(x),
    "a distance of the weights": lambda x, y, layer: (
        F.mse_loss(x, y) + F.mse_loss(layer.weight, torch.zeros(5, 6), reduction="sum")
    ),
    "several means": lambda x, y, _: torch.stack([F.mse_loss(x, y)] * N).sum(),
    "balance of experts": lambda x, y, _: F.cross_entropy(x, y) + (x.softmax(1).mean(0) * y.mean(0)).sum() * 5,
    "a root": lambda x, y, _: F.mse_loss(x, y, reduction="sum").sqrt(),
    "bfloat16": lambda x, y, _: F.cross_entropy(x.bfloat16(), y.bfloat16()),
    "a function of one's own": lambda x, y, _: Own.apply((x - y).square()),  # type: ignore[no-untyped-call]
}


class Own(torch.autograd.Function):
    """A sum that cannot be seen."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx: Any, by: torch.Tensor) -> torch.Tensor:
        return by.expand(ctx.shape)


def computed(loss: Loss) -> tuple[nn.Linear, torch.Tensor]:
    """Return a layer and its loss on N samples."""
    generator = torch.Generator().manual_seed(3)
    layer = nn.Linear(6, 5)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(5, 6, generator=generator))
        layer.bias.zero_()
    y = F.one_hot(torch.arange(N) % 5, 5).float()
    return layer, loss(layer(torch.randn(N, 6, generator=generator)), y, layer)


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_seen(name: str) -> None:
    assert find_sum(computed(SUMS[name])[1], N) is not None


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_is_no_sum(name: str) -> None:
    assert find_sum(computed(MEANS[name])[1], N) is None


@pytest.mark.parametrize("num_samples", [2, 4, 8])
@pytest.mark.parametrize("name", CASES)
def test_no_training_of_real_scripts_is_taken_for_one_on_a_sum(name: str, num_samples: int) -> None:
    case, points = CASES[name](), Points()
    collate = case.collate_fn or torch.utils.data.default_collate

    assert find_sum(case.loss(collate([points[index] for index in range(num_samples)])), num_samples) is None


def test_words_of_a_sequence_are_summed_or_averaged() -> None:
    embed, lstm, head = nn.Embedding(20, 6), nn.LSTM(6, 6, batch_first=True), nn.Linear(6, 20)
    words = torch.arange(N * 3).reshape(N, 3) % 20
    logits = head(lstm(embed(words))[0]).reshape(-1, 20)

    assert find_sum(F.cross_entropy(logits, words.reshape(-1)), N) is None
    assert find_sum(F.cross_entropy(logits, words.reshape(-1), reduction="sum"), N) == "NllLoss"


def test_a_compiled_loss_is_left_alone() -> None:
    model = mlp()
    compiled = torch.compile(lambda x: model(x).square().sum(), backend="aot_eager")

    assert find_sum(compiled(torch.ones(N, 6)), N) is None


@pytest.mark.parametrize("name", SUMS)
def test_looking_changes_nothing(name: str) -> None:
    layer, loss = computed(SUMS[name])
    other, looked = computed(SUMS[name])
    before = torch.get_rng_state()
    find_sum(looked, N)

    assert torch.equal(torch.get_rng_state(), before)
    for one in (loss, looked):
        one.backward()  # type: ignore[no-untyped-call]
    assert layer.weight.grad is not None
    assert other.weight.grad is not None
    assert torch.equal(layer.weight.grad, other.weight.grad)
    assert find_sum(looked, N) in (None, find_sum(loss, N)), "less may be seen after backward"


@pytest.mark.parametrize(("factor", "found"), [(0.7, "Sum"), (torch.tensor(0.7), None)])
def test_what_is_recomputed_is_not_computed_for_the_look(factor: Any, found: str | None) -> None:
    num_calls = 0

    def scaled(x: torch.Tensor) -> torch.Tensor:
        nonlocal num_calls
        num_calls += 1
        return x.square().sum() * factor  # type: ignore[no-any-return]

    _, loss = computed(lambda x, _y, _layer: checkpoint(scaled, x, use_reentrant=False))
    assert find_sum(loss, N) == found
    assert num_calls == 1


# -- training on a sum ------------------------------------------------------------------------------------------------


def sum_of(model: nn.Module, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch[1]), batch[2], reduction="sum")


def train_on_sum(
    *, use_take: bool = False, plateau: bool = False, **options: Any
) -> tuple[nn.Module, Run, list[float]]:
    """Train on a sum; return the model, the run, and the loss of every step."""
    model = mlp()
    scaler = options.pop("scaler", None)
    case = make(model, torch.optim.SGD(model.parameters(), 0.01, 0.9), scaler=scaler, **options.pop("case", {}))
    run = run_of(case, **options)
    losses = []
    for _ in run.epochs(2):
        for batch in run:
            loss = sum_of(model, batch)
            if use_take:
                run.scale(loss).backward()  # type: ignore[no-untyped-call]
            if (run.take if use_take else run.step)(loss, reduction="sum"):
                losses.append(run.last["loss"])
    return model, run, losses


def plain(clip_norm: float | None = None) -> tuple[nn.Module, list[float]]:
    """Train on the same sum without Pliant."""
    model, points = mlp(), Points()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    losses = []
    for start in [*range(0, NUM_SAMPLES, BATCH)] * 2:
        indices = range(start, min(start + BATCH, NUM_SAMPLES))
        loss = sum_of(model, torch.utils.data.default_collate([points[index] for index in indices]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("use_take", [False, True])
def test_one_virtual_worker_trains_on_a_sum_to_the_bits_of_a_plain_loop(use_take: bool) -> None:
    model, run, losses = train_on_sum(use_take=use_take)
    expected, expected_losses = plain()

    torch.testing.assert_close(model.state_dict(), expected.state_dict(), rtol=0, atol=0)
    assert losses == pytest.approx(expected_losses)
    assert run.claim == "exact"


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("use_take", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"virtual_workers": 3},
        {"virtual_workers": 8},
        {"virtual_workers": 8, "mode": "fast"},
        {"virtual_workers": 2, "case": {"accumulate": 3}},
        {"virtual_workers": 4, "case": {"clip_norm": 0.5}},
        {"virtual_workers": 4, "scaler": True},
    ],
    ids=str,
)
def test_the_gradient_of_a_sum_is_that_of_the_whole_batch(options: dict[str, Any], use_take: bool) -> None:
    options = {**options, "scaler": torch.amp.GradScaler("cpu")} if options.get("scaler") else options
    model, _, losses = train_on_sum(use_take=use_take, **options)
    expected, expected_losses = plain(options.get("case", {}).get("clip_norm"))

    torch.testing.assert_close(model.state_dict(), expected.state_dict(), rtol=1e-4, atol=1e-5)
    assert losses == pytest.approx(expected_losses, rel=1e-4), "the last batch of an epoch is smaller"


def test_another_reduction_is_refused(heard: list[FromTask]) -> None:
    model = mlp()
    run = run_of(make(model))

    def act() -> None:
        for _ in run.epochs(1):
            for batch in run:
                run.step(sum_of(model, batch), reduction="none")  # type: ignore[arg-type]

    with pytest.raises(TrainingError) as caught:
        act()
    assert str(caught.value) == (
        'reduction is \'none\'; give "mean" if the loss is the mean over the samples of the batch, or "sum" if it is '
        "their sum"
    )


# -- what is said -----------------------------------------------------------------------------------------------------


def notes_of(heard: list[FromTask], reduction: str | None = None, kind: str = "sum", **options: Any) -> list[str]:
    """Return what the person is told of a training."""
    model: Any = mlp()
    run = run_of(make(model), **options)
    words: dict[str, Any] = {} if reduction is None else {"reduction": reduction}
    for _ in run.epochs(2):
        for batch in run:
            run.step(F.cross_entropy(model(batch[1]), batch[2], reduction=kind), **words)
    return [message.message for message in heard if isinstance(message, Note)]


def test_a_sum_that_is_taken_for_a_mean_is_told_once_with_its_numbers(
    heard: list[FromTask], capsys: pytest.CaptureFixture[str]
) -> None:
    model, points = mlp(), Points()
    value = sum_of(model, torch.utils.data.default_collate([points[0], points[1], points[2], points[3]])).item()

    [said] = notes_of(heard, virtual_workers=4)
    assert said.startswith(
        f"the loss looks like a sum over samples (NllLoss): it is {value:.6g} for the first 4 samples, "
        f"{value / 4:.6g} for each of them. It is taken for a mean, so it counts 4/16"
    )
    assert 'run.step(loss, reduction="sum")' in said
    assert capsys.readouterr().err == f"pliant: {said}\n", "alone there is no job to tell"


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_script_that_says_what_its_loss_is_hears_nothing(heard: list[FromTask], reduction: str) -> None:
    assert notes_of(heard, reduction, virtual_workers=4) == []


@pytest.mark.parametrize("options", [{"virtual_workers": 1}, {"virtual_workers": 4, "kind": "mean"}], ids=str)
def test_a_training_that_is_right_hears_nothing(heard: list[FromTask], options: dict[str, Any]) -> None:
    assert notes_of(heard, **options) == []


@pytest.mark.usefixtures("heard")
def test_the_look_is_at_the_first_loss_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr("pliant.train.loop.find_sum", lambda _loss, num_samples: looked.append(num_samples))
    model = mlp()
    run = run_of(make(model), virtual_workers=4)
    for _ in run.epochs(1):
        for batch in run:
            run.step(sum_of(model, batch))

    assert looked == [4]
    assert TRAIN_CONTEXT.get().membership.group.rank == 0


# -- what a script counts ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("heard")
def test_batches_are_counted_by_steps_whatever_the_parts() -> None:
    model = mlp()
    run = run_of(make(model), virtual_workers=3)
    indices, stepped = [], []
    for _ in run.epochs(2):
        for index, batch in run.enumerate():
            indices.append(index)
            stepped.append(run.step(F.cross_entropy(model(batch[1]), batch[2])))

    assert run.steps_per_epoch == 4
    assert indices == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3] * 2, "the last batch has 12 samples, so two parts of 6"
    assert [index for index, done in zip(indices, stepped, strict=True) if done] == [0, 1, 2, 3] * 2
