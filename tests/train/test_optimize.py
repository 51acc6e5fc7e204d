"""What happens with the gradient of a global batch, and which optimizers cannot be had."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.train.cases import Heads, bfloat16_autocast, float16_autocast
from tests.train.loops import NUM_EPOCHS, STEPS_PER_EPOCH, make, mlp, run_of, sgd, surrounded, train, train_plain
from torch.nn import functional as F
from torch.optim import lr_scheduler

from pliant.train import TrainingError
from pliant.train.optimize import Stepper, name_optimizers
from pliant.train.state.pytree import flatten, unflatten


@pytest.fixture(autouse=True)
def _surrounded() -> Iterator[None]:
    with surrounded():
        yield


# -- scaled gradients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("virtual_workers", [1, 4])
def test_a_step_that_overflows_is_skipped_and_its_scheduler_waits(virtual_workers: int) -> None:
    case = float16_autocast()
    [optimizer] = case.optimizers.values()
    num_stepped = 0

    def count(*_: Any) -> None:
        nonlocal num_stepped
        num_stepped += 1

    optimizer.register_step_post_hook(count)
    case.schedulers = [lr_scheduler.ExponentialLR(optimizer, 0.5)]
    assert case.scaler is not None
    first_scale = case.scaler.get_scale()

    run = train(case, virtual_workers=virtual_workers)

    assert run.num_steps_done == NUM_EPOCHS * STEPS_PER_EPOCH
    assert 0 < num_stepped < run.num_steps_done, "some steps overflow, some do not"
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**num_stepped)
    assert case.scaler.get_scale() < first_scale
    assert all(bool(parameter.isfinite().all()) for parameter in case.model.parameters())


def test_take_with_a_scaler_gives_what_step_gives() -> None:
    stepped, taken = float16_autocast(2.0**8), float16_autocast(2.0**8)
    train(stepped, virtual_workers=4)
    run = run_of(taken, virtual_workers=4)
    for _ in run.epochs(NUM_EPOCHS):
        for batch in run:
            loss = taken.loss(batch)
            run.scale(loss).backward()  # type: ignore[no-untyped-call]
            run.take(loss)

    torch.testing.assert_close(taken.model.state_dict(), stepped.model.state_dict(), rtol=1e-3, atol=1e-4)


def test_who_has_no_part_of_the_first_step_makes_it_with_a_scaler_that_scaled_nothing() -> None:
    """A newcomer may have none: with the gradients of the others it steps as they do."""
    newcomer, other = float16_autocast(2.0**8), float16_autocast(2.0**8)
    for case in (newcomer, other):
        assert case.scaler is not None
        stepper = Stepper(parameters=[*case.model.parameters()], optimizers=case.optimizers, scaler=case.scaler)
        if case is newcomer:
            stepper.init_scaler()
        else:
            stepper.scale(torch.zeros(()))
        for parameter in case.model.parameters():
            parameter.grad = torch.full_like(parameter, 2.0**4)
        stepper.step()

    torch.testing.assert_close(newcomer.model.state_dict(), other.model.state_dict(), rtol=0, atol=0)
    assert not torch.equal(next(newcomer.model.parameters()), next(float16_autocast().model.parameters()))


def test_an_optimizer_without_gradients_may_rest_while_another_is_scaled() -> None:
    torch.default_generator.manual_seed(2)
    model = Heads()
    case = make(model, loss=lambda batch: F.cross_entropy(model(batch[1], use_second=False), batch[2]))
    case.optimizers = {
        "used": torch.optim.SGD([*model.trunk.parameters(), *model.first.parameters()], lr=0.1),
        "unused": torch.optim.SGD(model.second.parameters(), lr=0.1, momentum=0.9),
    }
    case.schedulers = [lr_scheduler.ExponentialLR(optimizer, 0.9) for optimizer in case.optimizers.values()]
    before = model.second.weight.detach().clone()
    case.scaler = torch.amp.GradScaler("cpu")

    train(case, virtual_workers=2)

    assert torch.equal(model.second.weight, before)
    assert not case.optimizers["unused"].state_dict()["state"]


# -- schedulers -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The epoch parameter in")
@pytest.mark.parametrize(
    "build",
    [
        lambda o: lr_scheduler.LambdaLR(o, lambda step: 0.9**step),
        lambda o: lr_scheduler.MultiplicativeLR(o, lambda _: 0.9),
        lambda o: lr_scheduler.StepLR(o, 2),
        lambda o: lr_scheduler.MultiStepLR(o, [2, 2, 5]),
        lambda o: lr_scheduler.ConstantLR(o),
        lambda o: lr_scheduler.LinearLR(o),
        lambda o: lr_scheduler.ExponentialLR(o, 0.9),
        lambda o: lr_scheduler.PolynomialLR(o, 7),
        lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
        lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.2, step_size_up=3),
        lambda o: lr_scheduler.OneCycleLR(o, 0.2, total_steps=20),
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, total_iters=3), lr_scheduler.ExponentialLR(o, 0.9)], milestones=[3]
        ),
        lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.9)]),
        lambda o: torch.optim.swa_utils.SWALR(o, 0.05),
    ],
)
def test_the_schedulers_of_torch_travel_in_the_middle_of_their_course(build: Any) -> None:
    def steps(optimizer: torch.optim.Optimizer, scheduler: Any, num_steps: int) -> list[float]:
        rates = []
        for _ in range(num_steps):
            optimizer.step()
            scheduler.step()
            rates.append(float(optimizer.param_groups[0]["lr"]))
        return rates

    def fresh() -> tuple[torch.optim.Optimizer, Any]:
        optimizer = torch.optim.SGD(mlp().parameters(), lr=0.1, momentum=0.9)
        return optimizer, build(optimizer)

    optimizer, scheduler = fresh()
    steps(optimizer, scheduler, 4)
    tree = unflatten(*flatten({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}))
    newcomer, its_scheduler = fresh()
    newcomer.load_state_dict(tree["optimizer"])
    its_scheduler.load_state_dict(tree["scheduler"])

    assert steps(newcomer, its_scheduler, 8) == steps(optimizer, scheduler, 8)


def test_a_scheduler_that_needs_a_value_does_not_step_by_itself() -> None:
    model = mlp()
    optimizer = sgd(model)

    with pytest.raises(TrainingError, match=r"ReduceLROnPlateau steps on a value, .* give it in state="):
        run_of(make(model, optimizer, schedulers=[lr_scheduler.ReduceLROnPlateau(optimizer)]))


# -- clipping and hooks -----------------------------------------------------------------------------------------------


def test_before_step_sees_the_clipped_gradient_of_the_whole_batch() -> None:
    seen: list[float] = []
    case = make(mlp(), clip_norm=0.01)

    def look() -> None:
        norms = [p.grad.norm() for p in case.model.parameters() if p.grad is not None]
        seen.append(torch.stack(norms).norm().item())

    case.before_step = look
    train(case, virtual_workers=4)

    assert seen == [pytest.approx(0.01, rel=1e-3)] * NUM_EPOCHS * STEPS_PER_EPOCH


def test_after_step_sees_the_new_weights_once_for_every_step() -> None:
    case = make(mlp())
    seen: list[torch.Tensor] = []
    case.after_step = lambda: seen.append(next(case.model.parameters()).detach().clone())

    train(case, virtual_workers=4)

    assert len(seen) == NUM_EPOCHS * STEPS_PER_EPOCH
    assert torch.equal(seen[-1], next(case.model.parameters()))
    assert not torch.equal(seen[0], seen[1])


def test_autocast_changes_the_numbers_so_the_test_of_it_tests_something() -> None:
    with_autocast, without = train_plain(bfloat16_autocast()), train_plain(make(mlp()))

    assert not torch.equal(with_autocast.model[0].weight, without.model[0].weight)  # type: ignore[index]


# -- refusals ---------------------------------------------------------------------------------------------------------


class Rerunning(torch.optim.SGD):
    def step(self, closure: Any) -> Any:  # type: ignore[override]
        return closure()


@pytest.mark.parametrize(
    ("optimizers", "words"),
    [
        ([], "no optimizer was given"),
        ({}, "no optimizer was given"),
        ({"first": "adam"}, "optimizer first is a str, not a torch.optim.Optimizer"),
        (torch.optim.LBFGS(mlp().parameters()), "LBFGS computes the loss again inside its step"),
        (Rerunning(mlp().parameters(), lr=0.1), "Rerunning computes the loss again inside its step"),
        (torch.optim.SparseAdam(mlp().parameters()), "SparseAdam needs sparse gradients"),
    ],
)
def test_optimizers_that_cannot_step_on_one_gradient_are_refused(optimizers: Any, words: str) -> None:
    with pytest.raises(TrainingError, match=words):
        name_optimizers(optimizers)


def test_optimizers_have_names() -> None:
    one, other = sgd(mlp()), sgd(mlp())

    assert name_optimizers(one) == {"0": one}
    assert name_optimizers([one, other]) == {"0": one, "1": other}
    assert name_optimizers({"a": one, "b": other}) == {"a": one, "b": other}


def test_a_parameter_group_that_is_added_later_is_refused() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    case = make(model, optimizer, after_epoch=lambda *_: optimizer.add_param_group({"params": model[2].parameters()}))

    with pytest.raises(TrainingError, match="the optimizers hold 4 parameters, and 2 when the Run was made"):
        train(case)


def test_a_frozen_parameter_of_an_optimizer_that_gets_a_gradient_later_is_refused() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    case = make(model, after_step=lambda: model[0].requires_grad_(True))

    with pytest.raises(TrainingError, match="frozen when the Run was made got a gradient, which other tasks do not"):
        train(case)


def test_no_step_is_made_where_nothing_has_a_gradient() -> None:
    model = mlp()
    optimizer = sgd(model)
    before = model[0].weight.detach().clone()  # type: ignore[operator]

    Stepper(parameters=list(model.parameters()), optimizers={"0": optimizer}, scaler=torch.amp.GradScaler("cpu")).step()

    assert torch.equal(model[0].weight, before)  # type: ignore[arg-type]
