"""Gradients live in flat buffers; nothing that user code does with them may tell."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from tests.train.crew import run_in
from tests.train.real import count_collectives

from pliant.train.errors import GenerationLost
from pliant.train.group.collectives import Group
from pliant.train.sum import tree
from pliant.train.sum.buckets import BUCKET_BYTES, BucketLayout
from pliant.train.sum.reducer import Reducer
from pliant.train.sum.running import RunningBuffers

ALONE = Group(number=1, rank=0, size=1, backend=None)


def model() -> torch.nn.Sequential:
    torch.default_generator.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))


def loss_of(net: torch.nn.Module, seed: int) -> torch.Tensor:
    x: torch.Tensor = net(torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)))
    return x.square().mean()


def backward(loss: torch.Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def plain_gradients(*seeds: int, weight: float = 1.0) -> list[torch.Tensor]:
    net = model()
    for seed in seeds:
        backward(loss_of(net, seed) * weight)
    return [parameter.grad.clone() for parameter in net.parameters() if parameter.grad is not None]


def gradients(reducer: Reducer) -> list[torch.Tensor | None]:
    reducer.attach()
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in reducer.parameters]


def reducer_of(net: torch.nn.Module, num_control: int = 3, **options: Any) -> Reducer:
    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    return Reducer(trained, num_control=num_control, running=RunningBuffers(net), **options)


def compute(reducer: Reducer, loss: torch.Tensor) -> None:
    """One virtual worker's backward pass and its end, as a step makes them."""
    reducer.arm(is_lost=lambda: False)
    backward(loss)
    reducer.close_leaf()


def finish(reducer: Reducer) -> list[float]:
    return reducer.finish(is_lost=lambda: False)


@pytest.mark.parametrize("num_leaves", [2, 3, 5])
def test_gradients_of_virtual_workers_are_summed_and_user_code_sees_none_of_them(num_leaves: int) -> None:
    net = model()
    reducer = reducer_of(net)
    for _ in range(2):  # the second step uses the buffers again
        reducer.begin(ALONE, num_leaves=num_leaves, in_one=False)
        for seed in range(num_leaves):
            compute(reducer, loss_of(net, seed) * 0.25)
            assert all(parameter.grad is None for parameter in net.parameters())
        finish(reducer)

        torch.testing.assert_close(gradients(reducer), plain_gradients(*range(num_leaves), weight=0.25))
        reducer.release()


def test_what_user_code_leaves_in_the_parameters_between_virtual_workers_does_not_count() -> None:
    net = model()
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    for seed in range(2):
        backward(loss_of(net, 99))  # as to find an adversarial example
        net.zero_grad()
        compute(reducer, loss_of(net, seed))
        net.zero_grad()
    finish(reducer)

    torch.testing.assert_close(gradients(reducer), plain_gradients(0, 1))


def test_take_equals_step() -> None:
    stepped, taken = model(), model()
    by_step, by_take = reducer_of(stepped), reducer_of(taken)
    for reducer in (by_step, by_take):
        reducer.begin(ALONE, num_leaves=2, in_one=False)
    for seed in range(2):
        compute(by_step, loss_of(stepped, seed) * 0.5)
        backward(loss_of(taken, seed))
        by_take.weigh(0.5)
        by_take.close_leaf()
    finish(by_step)
    finish(by_take)

    torch.testing.assert_close(gradients(by_step), gradients(by_take), rtol=0, atol=0)


@pytest.mark.parametrize("num_leaves", [1, 2])
def test_pieces_of_a_virtual_worker_add_up_where_user_code_cannot_spoil_them(num_leaves: int) -> None:
    net = model()
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=num_leaves, in_one=False)
    for leaf in range(num_leaves):
        backward(loss_of(net, 2 * leaf))
        reducer.hold()
        assert all(parameter.grad is None for parameter in net.parameters())
        net.zero_grad()
        reducer.restore()
        compute(reducer, loss_of(net, 2 * leaf + 1))
    finish(reducer)

    torch.testing.assert_close(gradients(reducer), plain_gradients(*range(2 * num_leaves)))


def test_a_task_alone_with_one_part_copies_nothing() -> None:
    net = model()
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=1, in_one=False)
    reducer.arm(is_lost=lambda: False)
    backward(loss_of(net, 1))
    before = [parameter.grad for parameter in net.parameters()]
    reducer.control[1] = 2.0
    reducer.close_leaf()

    assert finish(reducer) == [0.0, 2.0, 0.0]
    reducer.attach()
    assert all(parameter.grad is old for parameter, old in zip(net.parameters(), before, strict=True))


def test_control_elements_are_summed_and_do_not_mix_with_the_gradients() -> None:
    net = model()
    reducer = reducer_of(net, num_control=3)
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    for seed in range(2):
        reducer.control[1] = 1.5
        reducer.control[2] = torch.tensor(2.0)
        compute(reducer, loss_of(net, seed))

    assert finish(reducer) == [0.0, 3.0, 4.0]
    torch.testing.assert_close(gradients(reducer), plain_gradients(0, 1))


def test_parameters_of_several_dtypes_have_a_bucket_each() -> None:
    dtypes = (torch.float64, torch.bfloat16, torch.complex64)
    net = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(3, dtype=dtype)) for dtype in dtypes])
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    for _ in range(2):
        compute(reducer, sum((p * 0.5).sum().real.float() for p in net))
    finish(reducer)

    found = gradients(reducer)
    assert [gradient.dtype for gradient in found if gradient is not None] == list(dtypes)
    assert all(torch.equal(gradient, torch.ones_like(gradient)) for gradient in found if gradient is not None)


def test_tied_weights_are_one_gradient() -> None:
    first, second = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)
    second.weight = first.weight
    net = torch.nn.Sequential(first, second)
    backward(loss_of(net, 1) * 2)
    assert first.weight.grad is not None
    expected = first.weight.grad.clone()
    net.zero_grad()
    reducer = Reducer([*first.parameters(), *second.parameters()], num_control=1, running=RunningBuffers(net))

    reducer.begin(ALONE, num_leaves=2, in_one=False)
    for _ in range(2):
        compute(reducer, loss_of(net, 1))
    finish(reducer)

    torch.testing.assert_close(gradients(reducer), [expected])


def test_a_parameter_that_no_virtual_worker_uses_has_no_gradient_and_one_that_some_use_counts_as_zero() -> None:
    net = model()
    never, sometimes = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    net.register_parameter("never", never)
    net.register_parameter("sometimes", sometimes)
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=3, in_one=False)
    for seed in range(3):
        extra = sometimes.sum() if seed == 1 else 0.0
        compute(reducer, loss_of(net, seed) + extra)
    finish(reducer)
    reducer.attach()

    assert never.grad is None
    assert sometimes.grad is not None
    assert sometimes.grad.tolist() == [1.0, 1.0]


def test_buffers_of_a_lost_generation_are_never_used_again() -> None:
    net = model()
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    reducer.control[0] = 7.0
    compute(reducer, loss_of(net, 1))
    reducer.attach()
    old = [parameter.grad for parameter in net.parameters()]
    compute(reducer, loss_of(net, 2))
    with pytest.raises(GenerationLost):
        reducer.finish(is_lost=lambda: True)
    reducer.forget()
    assert all(parameter.grad is None for parameter in net.parameters())

    reducer.begin(ALONE, num_leaves=2, in_one=False)
    for seed in range(2):
        compute(reducer, loss_of(net, seed))
        for view in old:  # an operation that was given up may still write
            assert view is not None
            view.fill_(99.0)

    assert finish(reducer) == [0.0, 0.0, 0.0]
    torch.testing.assert_close(gradients(reducer), plain_gradients(0, 1))


def test_a_backward_pass_of_a_lost_generation_ends_at_its_next_gradient() -> None:
    net = model()
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    asked: list[None] = []

    def is_lost() -> bool:
        asked.append(None)
        return len(asked) > 1

    reducer.arm(is_lost=is_lost)
    with pytest.raises(GenerationLost):
        backward(loss_of(net, 1))
    assert len(asked) == 2 < len(reducer.parameters)

    reducer.forget()
    assert all(parameter.grad is None for parameter in net.parameters())
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    for seed in range(2):
        compute(reducer, loss_of(net, seed))
    assert finish(reducer) == [0.0, 0.0, 0.0]
    torch.testing.assert_close(gradients(reducer), plain_gradients(0, 1))


def test_layout_depends_on_the_parameters_alone() -> None:
    parameters = list(model().parameters())
    layouts = [BucketLayout(parameters, num_tail=5, bytes_at_most=40) for _ in range(2)]

    assert layouts[0].buckets == layouts[1].buckets
    places = [bucket.places for bucket in layouts[0].buckets]
    assert places == [(3, 2), (1,), (0,)], "from the last parameter to the first, as a backward pass makes them"
    assert [bucket.num_elements for bucket in layouts[0].buckets] == [8, 3, 12 + 5]


def test_the_first_bucket_is_on_its_way_early() -> None:
    sizes_mb = [30, 20, 2, 2, 1]  # a backward pass goes from the last to the first
    parameters = [torch.nn.Parameter(torch.empty(size << 18)) for size in sizes_mb]

    places = [bucket.places for bucket in BucketLayout(parameters, num_tail=5, bytes_at_most=BUCKET_BYTES).buckets]

    assert places == [(4,), (3, 2, 1), (0,)]


def test_a_gradient_has_the_strides_of_its_parameter() -> None:
    net = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    reducer = reducer_of(net)
    reducer.begin(ALONE, num_leaves=2, in_one=False)
    x = torch.randn(1, 3, 5, 5)
    for _ in range(2):
        compute(reducer, net(x).sum())
    finish(reducer)
    reducer.attach()

    assert net.weight.grad is not None
    assert net.weight.grad.stride() == net.weight.stride()


# -- what a step costs ------------------------------------------------------------------------------------------------


NUM_BUCKETS = 3


def exchanges(size: int, num_leaves: int) -> int:
    """All-to-alls and broadcasts of one bucket."""
    total = tree.global_sum(num_leaves, size)
    return 1 if total.num_partials == (1, 1) else max(total.num_partials) + size


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("size", "mode"), [(2, "exact"), (3, "exact"), (3, "fast")])
def test_a_step_costs_its_exchange_and_nothing_else(size: int, mode: str) -> None:
    """With metrics, BatchNorm and a schedule; no message and no store: that one is gone meanwhile."""
    found: Sequence[dict[str, int]] = run_in(size, count_collectives, mode=mode)

    per_bucket = 1 if mode == "fast" else exchanges(size, num_leaves=4)
    assert found == [{"collectives": 50 * NUM_BUCKETS * per_bucket, "messages": 0, "steps": 50}] * size
