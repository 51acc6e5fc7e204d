"""Gradients of linear layers that wait: nothing that a script does beside may tell, and torch is left as it was."""

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from pliant.train.group.collectives import Group
from pliant.train.sum import late_linear
from pliant.train.sum.products import Product
from pliant.train.sum.reducer import Reducer
from pliant.train.sum.running import RunningBuffers

TORCHS_OWN = F.linear
NUM_PARTS = 4


@pytest.fixture(autouse=True)
def small_weights(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(late_linear, "LEAST_ELEMENTS", 1)
    yield
    assert F.linear is TORCHS_OWN


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    torch.default_generator.manual_seed(1)
    return build()


def two_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3, bias=False))


class Counting(Reducer):
    """Counts the gradients that come as products."""

    num_waited = 0

    def _add(self, place: int, value: torch.Tensor | Product | None) -> None:
        self.num_waited += isinstance(value, Product)
        super()._add(place, value)


class Summed:
    """The gradients of a model over some parts, as a step of one task sums them."""

    def __init__(self, model: nn.Module, *, are_late: bool = True) -> None:
        self.model = model
        self.reducer = Counting(model.parameters(), num_control=1, running=RunningBuffers(model), are_late=are_late)

    @property
    def num_waited(self) -> int:
        return self.reducer.num_waited

    def step(self, loss: Callable[[nn.Module, torch.Tensor], torch.Tensor], num_parts: int = NUM_PARTS) -> None:
        reducer = self.reducer
        reducer.begin(Group(number=1, rank=0, size=1, backend=None), num_leaves=num_parts, in_one=False)
        for part in range(num_parts):
            x = torch.randn(7, 6, generator=torch.Generator().manual_seed(part))
            value = loss(self.model, x)
            reducer.arm(is_lost=lambda: False)
            value.backward()  # type: ignore[no-untyped-call]
            reducer.close_leaf()
            x.detach().fill_(float("nan"))  # a script may use the memory of its batch again
        reducer.finish(is_lost=lambda: False)
        reducer.attach()

    def gradients(self) -> list[torch.Tensor | None]:
        return [None if one.grad is None else one.grad.clone() for one in self.model.parameters()]


def compare(
    build: Callable[[], nn.Module], loss: Callable[[nn.Module, torch.Tensor], torch.Tensor], *, num_waited: int
) -> None:
    late, plain = Summed(seeded(build)), Summed(seeded(build), are_late=False)
    try:
        late.step(loss)
        plain.step(loss)
        torch.testing.assert_close(late.gradients(), plain.gradients())
        assert late.num_waited == num_waited * NUM_PARTS
        assert plain.num_waited == 0
        whole = late.gradients()
        late.reducer.release()
        late.step(loss)
        torch.testing.assert_close(late.gradients(), whole, rtol=0, atol=0)
    finally:
        late.reducer.close()
        plain.reducer.close()


def mean_square(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = model(x).square().mean()
    return result


def test_gradients_of_linear_layers_wait_and_are_those_of_autograd() -> None:
    compare(two_layers, mean_square, num_waited=2)


def test_a_batch_of_sequences_is_a_batch_of_rows() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return mean_square(model, x.view(7, 2, 3).transpose(0, 1))

    compare(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)), loss, num_waited=2)


def test_a_single_sample_may_come_without_a_side_for_the_batch() -> None:
    compare(two_layers, lambda model, x: mean_square(model, x[0]), num_waited=2)


class Tied(nn.Module):
    """The last layer has the weight of an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x + self.embed(torch.arange(len(x))), self.embed.weight)


def test_what_comes_for_a_weight_beside_its_product_is_added() -> None:
    late, plain = Summed(seeded(Tied)), Summed(seeded(Tied), are_late=False)
    for one in (late, plain):
        one.step(mean_square)
    torch.testing.assert_close(late.gradients(), plain.gradients())
    late.reducer.close()


def test_a_weight_that_is_used_twice_waits_for_nobody() -> None:
    compare(
        lambda: nn.Linear(6, 6), lambda model, x: model(model(x)).square().mean() + model(x).abs().mean(), num_waited=0
    )


def test_a_pass_without_gradients_is_no_use() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            target = model(x) + 1.0
        error: torch.Tensor = model(x) - target
        return error.square().mean()

    compare(two_layers, loss, num_waited=2)


def test_hooks_of_the_script_see_every_part() -> None:
    seen: list[torch.Tensor] = []

    def double(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(gradient)
        return gradient * 2

    def build() -> nn.Module:
        model = two_layers()
        next(model.parameters()).register_hook(double)  # type: ignore[no-untyped-call]
        last = list(model.parameters())[-1]
        last.register_post_accumulate_grad_hook(seen.append)  # type: ignore[no-untyped-call]
        return model

    compare(build, mean_square, num_waited=0)

    assert len(seen) == 2 * NUM_PARTS * 3


def test_derivatives_of_derivatives_are_those_of_torch() -> None:
    def penalty(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        [slope] = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
        return slope.square().mean() + mean_square(model, x)

    compare(two_layers, penalty, num_waited=0)


def test_a_script_may_ask_for_any_gradient_itself() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        weight = next(model.parameters())
        by_weight, by_x = torch.autograd.grad(mean_square(model, x.requires_grad_()), [weight, x])
        assert by_weight.shape == weight.shape
        assert by_x.shape == x.shape
        [by_x_alone] = torch.autograd.grad(mean_square(model, x), x)
        assert torch.equal(by_x_alone, by_x)
        x.requires_grad_(False)
        return mean_square(model, x) + by_weight.square().sum() * 0

    compare(two_layers, loss, num_waited=0)


def test_a_checkpointed_layer_computes_its_gradients() -> None:
    compare(
        two_layers,
        lambda model, x: checkpoint(model, x.requires_grad_(), use_reentrant=False).square().mean(),
        num_waited=0,
    )


def test_a_layer_that_a_part_does_not_use_has_no_gradient() -> None:
    compare(two_layers, lambda model, x: mean_square(next(model.children()), x), num_waited=1)


def test_autocast_computes_as_torch_does() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = model(x)
        assert y.dtype is torch.bfloat16
        error: torch.Tensor = y.float()
        return error.square().mean()

    compare(two_layers, loss, num_waited=0)


def test_a_compiled_model_is_compiled_in_one_piece() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
        return result.square().mean()

    compare(two_layers, loss, num_waited=0)


def test_a_transformed_function_is_torchs_own() -> None:
    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.func.vmap(model)(x)
        return result.square().mean()

    compare(two_layers, loss, num_waited=0)


def test_many_rows_are_multiplied_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_linear, "MOST_ROWS", 6)

    compare(two_layers, mean_square, num_waited=0)


def test_a_copy_of_the_model_is_no_part_of_the_training() -> None:
    late = Summed(seeded(two_layers))
    other = copy.deepcopy(late.model)
    late.step(mean_square)
    mean_square(other, torch.ones(2, 6)).backward()  # type: ignore[no-untyped-call]

    assert all(parameter.grad is not None for parameter in other.parameters())
    assert late.num_waited == 2 * NUM_PARTS
    late.reducer.close()


def test_a_wrong_shape_is_refused_in_torchs_words() -> None:
    late = Summed(seeded(two_layers))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        late.model(torch.ones(2, 5))
    late.reducer.close()


def test_two_trainings_may_be_open_in_one_process() -> None:
    first, second = Summed(seeded(two_layers)), Summed(seeded(two_layers))
    first.reducer.close()
    second.step(mean_square)

    assert second.num_waited == 2 * NUM_PARTS
    second.reducer.close()


def test_a_function_that_somebody_else_put_around_it_stays() -> None:
    num_calls = 0
    first = Summed(seeded(two_layers))
    ours = F.linear

    def theirs(*given: torch.Tensor) -> torch.Tensor:
        nonlocal num_calls
        num_calls += 1
        return ours(*given)

    F.linear = theirs  # type: ignore[assignment]
    first.reducer.close()
    second = Summed(seeded(two_layers))
    second.step(mean_square)
    second.reducer.close()

    assert F.linear is theirs
    assert num_calls == 2 * NUM_PARTS
    assert second.num_waited == 2 * NUM_PARTS
    F.linear = TORCHS_OWN


def test_where_somebody_elses_function_is_nothing_waits() -> None:
    F.linear = lambda *given: TORCHS_OWN(*given)
    try:
        compare(two_layers, mean_square, num_waited=0)
    finally:
        F.linear = TORCHS_OWN
