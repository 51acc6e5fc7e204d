"""State travels as a tree and arrives as it was."""

from collections import OrderedDict, deque
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pliant.train.errors import TrainingError
from pliant.train.state.pytree import digest, flatten, receive, send, shapes, unflatten

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
keys = st.text(max_size=8) | st.integers() | st.tuples(st.integers(), st.text(max_size=3))
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


def round_trip(tree: Any) -> Any:
    skeleton, tensors = flatten(tree)
    assert shapes(skeleton) == [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]
    return unflatten(skeleton, tensors)


@given(trees)
def test_any_tree_arrives_as_it_was(tree: Any) -> None:
    arrived = round_trip(tree)

    assert arrived == tree
    assert repr(arrived) == repr(tree), "also the types are the same: True is not 1, a tuple is not a list"


@pytest.mark.parametrize("key", ["t", "d", "u"])
def test_keys_that_look_like_the_skeleton_s_own_do_not_confuse_it(key: str) -> None:
    tree = {key: ["float32", [2]], "x": {key: {key: []}}}

    assert round_trip(tree) == tree


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(True),
        torch.tensor([True, False, True]),
        torch.arange(7, dtype=torch.uint8),
        torch.tensor([1.5, -2.25], dtype=torch.bfloat16),
        torch.tensor(3.5, dtype=torch.float64),
        torch.tensor(2**60),
        torch.empty(0, 3),
        torch.empty(3, 0, dtype=torch.int16),
        torch.tensor([1 + 2j]),
        torch.randn(3, 4).t(),
        torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        torch.randn(4, requires_grad=True),
    ],
    ids=lambda tensor: f"{tensor.dtype}{list(tensor.shape)}",
)
def test_every_kind_of_tensor_arrives(tensor: torch.Tensor) -> None:
    arrived = round_trip({"a": [tensor, (tensor,)]})

    torch.testing.assert_close(arrived["a"][0], tensor.detach(), rtol=0, atol=0)
    assert not arrived["a"][0].requires_grad


@pytest.mark.parametrize(
    "make", [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad], ids=lambda make: make.__name__
)
def test_state_of_an_optimizer_arrives_with_its_numbered_keys(make: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = make([{"params": model[0].parameters(), "lr": 0.5}, {"params": model[1].parameters(), "lr": 0.1}])
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    before = optimizer.state_dict()

    arrived = round_trip({"optimizer": before, "model": model.state_dict()})

    assert list(arrived["optimizer"]["state"]) == list(before["state"])
    fresh = make([{"params": model[0].parameters()}, {"params": model[1].parameters()}])
    fresh.load_state_dict(arrived["optimizer"])
    assert repr(fresh.state_dict()) == repr(before)
    assert list(arrived["model"]) == list(model.state_dict())


@pytest.mark.parametrize(
    ("tree", "where", "what"),
    [
        ({"extras": {"sampler": [1, {2, 3}]}}, "extras.sampler[1]", "set"),
        ({"model": {"_extra_state": b"x"}}, "model._extra_state", "bytes"),
        (object(), "its root", "object"),
        ((1, (2, OrderedDict(a=object()))), "[1][1].a", "object"),
    ],
)
def test_what_cannot_travel_is_named_with_its_place(tree: Any, where: str, what: str) -> None:
    with pytest.raises(TrainingError) as caught:
        flatten(tree)

    assert str(caught.value) == (
        f"state at {where} is a {what}, which cannot travel to another task; "
        f"state_dict() may hold tensors, numbers, strings, lists, tuples and dicts"
    )


def test_a_digest_tells_bits_shapes_types_and_names_apart() -> None:
    zero = torch.zeros(2)
    trees: list[Any] = [
        {"a": zero},
        {"b": zero},
        {"a": -zero},
        {"a": zero.double()},
        {"a": zero.reshape(1, 2)},
        {"a": [zero]},
        {"a": [zero, zero]},
        {"a": zero.to(torch.complex64)},
        {"a": 0.0},
    ]

    assert len({digest(tree) for tree in trees}) == len(trees)
    assert digest({"a": torch.zeros(2)}) == digest({"a": zero})


def test_the_example_of_the_module() -> None:
    skeleton, tensors = flatten({"step": 3, "w": torch.tensor([1.0, 2.0])})

    assert skeleton == '{"d": [["step", 3], ["w", {"t": ["float32", [2]]}]]}'
    assert [tensor.nbytes for tensor in tensors] == [8]


class Mail(deque[torch.Tensor]):
    """Both ends of a connection in one."""

    def send(self, tensor: torch.Tensor, _to: int) -> None:
        self.append(tensor.clone())

    def receive(self, tensor: torch.Tensor, _source: int) -> None:
        tensor.copy_(self.popleft())


def test_what_arrives_may_lie_in_memory_that_was_there() -> None:
    mail: Any = Mail()
    sent = {"a": torch.ones(2, 3), "b": torch.full((2, 3), 2.0), "c": torch.ones(2, 3) * 3, "d": torch.arange(3)}
    spare = [torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3)]

    send(mail, sent, 1)
    arrived = receive(mail, 0, spare)

    assert digest(arrived) == digest(sent)
    places = {tensor.data_ptr() for tensor in arrived.values()}
    assert len(places) == 4, "each has memory of its own"
    assert {tensor.data_ptr() for tensor in spare[:2]} < places
    assert spare[2].data_ptr() not in places, "it has the shape of one, and another dtype"
