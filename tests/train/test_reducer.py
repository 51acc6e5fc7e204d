"""Gradients live in flat buffers; nothing that user code does with them may tell."""

import pytest
import torch

from pliant.train.collectives import Group
from pliant.train.errors import GenerationLost
from pliant.train.reducer import Reducer

ALONE = Group(number=1, rank=0, size=1, backend=None)


def model() -> torch.nn.Sequential:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))


def loss_of(net: torch.nn.Module, seed: int) -> torch.Tensor:
    x: torch.Tensor = net(torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)))
    return x.square().mean()


def plain_gradients(*seeds: int, weight: float = 1.0) -> list[torch.Tensor]:
    net = model()
    for seed in seeds:
        (loss_of(net, seed) * weight).backward()  # type: ignore[no-untyped-call]
    return [parameter.grad.clone() for parameter in net.parameters() if parameter.grad is not None]


def gradients(reducer: Reducer, net: torch.nn.Module) -> list[torch.Tensor]:
    reducer.attach()
    return [parameter.grad.clone() for parameter in net.parameters() if parameter.grad is not None]


def reducer_of(net: torch.nn.Module, num_control: int = 3) -> Reducer:
    return Reducer([parameter for parameter in net.parameters() if parameter.requires_grad], num_control=num_control)


def add_step(reducer: Reducer, net: torch.nn.Module, seed: int, weight: float) -> None:
    reducer.attach()
    (loss_of(net, seed) * weight).backward()  # type: ignore[no-untyped-call]
    reducer.release()


def test_backward_adds_into_the_buffer_and_zero_empties_it() -> None:
    net = model()
    reducer = reducer_of(net)
    reducer.zero()
    add_step(reducer, net, seed=1, weight=0.25)
    add_step(reducer, net, seed=2, weight=0.25)

    assert all(parameter.grad is None for parameter in net.parameters()), "user code finds no gradients of ours"
    torch.testing.assert_close(gradients(reducer, net), plain_gradients(1, 2, weight=0.25), rtol=0, atol=0)

    reducer.zero()
    assert all(not gradient.any() for gradient in gradients(reducer, net))


def test_take_equals_step() -> None:
    stepped, taken = model(), model()
    by_step, by_take = reducer_of(stepped), reducer_of(taken)
    for seed, weight in ((1, 0.5), (2, 0.3)):
        add_step(by_step, stepped, seed, weight)
        loss_of(taken, seed).backward()  # type: ignore[no-untyped-call]
        by_take.take(weight)

    torch.testing.assert_close(gradients(by_step, stepped), gradients(by_take, taken))
    assert torch.equal(by_take.control, torch.zeros(3))


def test_control_elements_do_not_mix_with_the_gradients() -> None:
    net = model()
    reducer = reducer_of(net, num_control=5)
    reducer.control[:] = torch.arange(5.0)
    add_step(reducer, net, seed=1, weight=1.0)
    reducer.reduce(ALONE, lost=lambda: False)

    assert reducer.control.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    torch.testing.assert_close(gradients(reducer, net), plain_gradients(1), rtol=0, atol=0)


def test_parameters_of_several_dtypes_have_a_buffer_each() -> None:
    net = torch.nn.ModuleList([torch.nn.Linear(2, 2).to(dtype) for dtype in (torch.float64, torch.bfloat16)])
    reducer = reducer_of(net)
    for layer, dtype in zip(net, (torch.float64, torch.bfloat16), strict=True):
        layer(torch.ones(1, 2, dtype=dtype)).sum().backward()
    reducer.take(0.5)
    reducer.attach()

    for layer, dtype in zip(net, (torch.float64, torch.bfloat16), strict=True):
        assert isinstance(layer, torch.nn.Linear)
        assert layer.weight.grad is not None
        assert layer.weight.grad.dtype == dtype
        assert layer.weight.grad.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert reducer.control.dtype == torch.float32, "control elements are always exact enough"


def test_tied_weights_are_one_gradient() -> None:
    first, second = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    net = torch.nn.Sequential(first, second)
    reducer = Reducer([*first.parameters(), *second.parameters()], num_control=1)
    x = torch.ones(1, 3)
    net(x).sum().backward()
    assert first.weight.grad is not None
    expected = first.weight.grad.clone()
    net.zero_grad()

    reducer.attach()
    net(x).sum().backward()
    reducer.release()
    reducer.attach()

    torch.testing.assert_close(first.weight.grad, expected, rtol=0, atol=0)


def test_frozen_parameters_get_no_gradient() -> None:
    net = model()
    net[0].requires_grad_(False)
    reducer = reducer_of(net)
    add_step(reducer, net, seed=1, weight=1.0)
    reducer.attach()

    assert [parameter.grad is None for parameter in net.parameters()] == [True, True, False, False]


def test_unused_parameter_takes_part_with_zeros() -> None:
    net = model()
    net.append(torch.nn.Linear(2, 2))
    reducer = reducer_of(net)
    loss_of(net[:3], 1).backward()  # type: ignore[no-untyped-call]
    reducer.take(1.0)

    assert [gradient.any().item() for gradient in gradients(reducer, net)] == [True] * 4 + [False] * 2


def test_buffers_of_a_lost_generation_are_never_used_again() -> None:
    net = model()
    reducer = reducer_of(net)
    add_step(reducer, net, seed=1, weight=1.0)
    reducer.control[:] = 7.0
    reducer.attach()
    old = [parameter.grad for parameter in net.parameters()]
    old_control = reducer.control

    with pytest.raises(GenerationLost):
        reducer.reduce(ALONE, lost=lambda: True)

    for view in old:  # an operation that was given up may still write
        assert view is not None
        view.fill_(99.0)
    old_control.fill_(99.0)
    assert all(not gradient.any() for gradient in gradients(reducer, net))
    assert not reducer.control.any()


def test_channels_last_parameters_keep_their_values() -> None:
    net = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(1, 3, 5, 5)
    net(x).sum().backward()
    expected = net.weight.grad.clone()
    net.zero_grad()
    reducer = Reducer(net.parameters(), num_control=1)

    reducer.attach()
    net(x).sum().backward()
    reducer.release()
    reducer.attach()

    torch.testing.assert_close(net.weight.grad, expected)
