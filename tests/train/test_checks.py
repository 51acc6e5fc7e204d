"""What must hold of a model, before the first step and later."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.train.loops import Case, make, mlp, run_of, train, training_context
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from pliant.train import TrainingError


@pytest.fixture(autouse=True)
def _training_context() -> Iterator[None]:
    with training_context():
        yield


def refused(case: Case, words: str, **options: Any) -> None:
    with pytest.raises(TrainingError, match=words):
        train(case, **options)


def test_sync_batch_norm_is_refused_with_the_reason_if_a_task_has_several_virtual_workers() -> None:
    def case() -> Case:
        return make(nn.Sequential(nn.Linear(6, 2), nn.SyncBatchNorm(2)))

    refused(case(), r"1 is a SyncBatchNorm, which needs the batch of all 4 virtual workers", virtual_workers=4)
    run_of(case(), virtual_workers=1)


def test_a_model_without_shapes_is_refused() -> None:
    model = nn.Sequential(mlp(), nn.LazyLinear(2))
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)

    refused(make(model, optimizer), r"the parameter 1.weight has no shape yet \(a lazy module\)")


def test_a_parameter_that_begins_to_be_trained_is_refused_at_the_next_epoch() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)

    refused(
        make(model, optimizer, after_epoch=lambda *_: model[0].requires_grad_(True)),
        "2 parameters began to require a gradient after the Run was made, the first is 0.weight",
    )


def test_a_layer_that_is_put_in_later_is_refused() -> None:
    model = mlp()

    def replace(*_: Any) -> None:
        model[2] = nn.Linear(8, 2)

    refused(make(model, after_epoch=replace), "2 parameters began to require a gradient .* the first is 2.weight")


def test_a_model_that_is_converted_later_is_refused() -> None:
    model = mlp()

    refused(
        make(model, after_epoch=lambda *_: model.double()),
        r"0.weight was float32 of shape \(8, 6\) on cpu when the Run was made, and is float64 of shape \(8, 6\) on cpu",
    )


@pytest.mark.parametrize("virtual_workers", [1, 2])
def test_a_model_may_be_frozen_between_the_run_and_the_first_step(virtual_workers: int) -> None:
    case = make(mlp())
    run = run_of(case, virtual_workers=virtual_workers)
    assert isinstance(case.model, nn.Sequential)
    lower, upper = case.model[0], case.model[2]
    before = [p.detach().clone() for p in case.model.parameters()]
    lower.requires_grad_(False)
    for epoch in run.epochs(2):
        for batch in run:
            run.step(case.loss(batch))
        if epoch == 0:
            assert all(map(torch.equal, lower.parameters(), before))
            lower.requires_grad_(True)

    assert not any(map(torch.equal, [*lower.parameters(), *upper.parameters()], before))


def recomputing(model: nn.Sequential, *, use_reentrant: bool) -> Case:
    """A first layer that is used twice."""
    twice, last = nn.Linear(6, 6), model[2]
    whole = nn.ModuleList([twice, nn.Linear(6, 8), last])

    def loss(batch: Any) -> torch.Tensor:
        x = batch[1].clone().requires_grad_()
        for _ in range(2):
            x = torch.tanh(checkpoint(twice, x, use_reentrant=use_reentrant))
        return F.cross_entropy(last(whole[1](x)), batch[2])

    return make(whole, loss=loss)


def test_reentrant_checkpointing_of_a_layer_that_is_used_twice_is_refused() -> None:
    refused(
        recomputing(mlp(), use_reentrant=True),
        "a parameter got a gradient twice in one backward pass; .* use_reentrant=False",
        virtual_workers=2,
    )
    train(recomputing(mlp(), use_reentrant=False), virtual_workers=2)


def test_a_loss_that_is_no_mean_is_refused() -> None:
    model = mlp()
    case = make(model, loss=lambda batch: F.cross_entropy(model(batch[1]), batch[2], reduction="none"))

    refused(case, r"the loss has the shape \(16,\); give its mean over the samples of the batch")


def test_a_loss_that_is_not_a_number_goes_on_as_in_a_plain_loop() -> None:
    model = mlp()
    run = train(make(model, loss=lambda batch: model(batch[1]).sum() * float("nan")), virtual_workers=2)

    assert run.last["loss"] != run.last["loss"]
    assert bool(model[0].weight.isnan().all())  # type: ignore[operator]


def test_an_exception_of_the_script_comes_out_as_it_is() -> None:
    def loss(batch: Any) -> torch.Tensor:
        raise ValueError("a sample is broken")

    with pytest.raises(ValueError, match=r"^a sample is broken$"):
        train(make(mlp(), loss=loss), virtual_workers=2)
