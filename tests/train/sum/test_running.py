"""Buffers that a forward pass changes: those of the first virtual worker count, whatever their type."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.train.loops import NUM_EPOCHS, STEPS_PER_EPOCH, Points, make, mlp, surrounded, train
from torch import nn

from pliant.train.sum.running import RunningBuffers, unsaved_buffers


@pytest.fixture(autouse=True)
def _surrounded() -> Iterator[None]:
    with surrounded():
        yield


class Counting(nn.Module):
    """Keeps buffers of many types, which every call changes."""

    counted: torch.Tensor

    def __init__(self, *, persistent: bool = True) -> None:
        super().__init__()
        self.inner = mlp()
        for name, value in BUFFERS.items():
            self.register_buffer(name, value.clone(), persistent=persistent)

    def forward(self, x: torch.Tensor) -> Any:
        for name in BUFFERS:
            buffer = getattr(self, name)
            buffer.copy_(~buffer if buffer.dtype == torch.bool else buffer + 1)
        return self.inner(x)


BUFFERS = {
    "counted": torch.tensor(2**53 - 100),
    "doubles": torch.tensor([1 / 3, -0.1], dtype=torch.float64),
    "thirds": torch.tensor([1 / 3], dtype=torch.float32),
    "halves": torch.tensor([0.1], dtype=torch.float16),
    "flag": torch.tensor([True, False]),
    "wave": torch.tensor(1 + 2j),
    "nothing": torch.zeros(0),
}


def test_buffers_of_every_type_count_the_calls_of_one_virtual_worker() -> None:
    once, many = Counting(), Counting()
    train(make(once), virtual_workers=1)
    train(make(many), virtual_workers=4)

    for name in BUFFERS:
        assert torch.equal(getattr(once, name), getattr(many, name)), name
    assert int(many.counted) == 2**53 - 100 + NUM_EPOCHS * STEPS_PER_EPOCH


def test_statistics_of_batch_norm_are_those_of_the_first_part() -> None:
    norm = nn.BatchNorm1d(6, momentum=1.0)  # keeps the newest batch's only
    case = make(nn.Sequential(norm, nn.Linear(6, 2)))
    train(case, virtual_workers=4)

    first_part = Points().x[48:52]  # the last global batch has 12 samples, cut into three parts
    assert norm.running_mean is not None
    torch.testing.assert_close(norm.running_mean, first_part.mean(0))
    assert norm.num_batches_tracked is not None
    assert int(norm.num_batches_tracked) == NUM_EPOCHS * STEPS_PER_EPOCH


def test_buffers_that_are_not_saved_travel_to_newcomers_all_the_same() -> None:
    assert unsaved_buffers(Counting(persistent=True)) == {}
    assert set(unsaved_buffers(Counting(persistent=False))) == set(BUFFERS)


class Growing(nn.Module):
    """Keeps a table that grows, as some position encodings do."""

    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp()
        self.register_buffer("table", torch.zeros(2), persistent=False)

    def forward(self, x: torch.Tensor) -> Any:
        if len(self.table) < 6:
            self.table = torch.zeros(len(self.table) + 1)
        return self.inner(x)


def test_a_buffer_that_grows_is_left_alone_and_told() -> None:
    run = train(make(Growing()), virtual_workers=2)

    assert run.claim == "statistical"


class Large(nn.Module):
    """Changes a buffer that is too large to travel with every step."""

    def __init__(self, *, changes: bool) -> None:
        super().__init__()
        self.inner, self.changes = mlp(), changes
        self.register_buffer("queue", torch.zeros(5000))

    def forward(self, x: torch.Tensor) -> Any:
        if self.changes:
            self.queue.add_(1.0)  # type: ignore[operator]
        return self.inner(x)


@pytest.mark.parametrize(("changes", "claim"), [(False, "exact"), (True, "statistical")])
def test_a_large_buffer_may_not_change_where_results_are_to_be_exact(changes: bool, claim: str) -> None:
    assert train(make(Large(changes=changes)), virtual_workers=2).claim == claim


def test_what_is_written_is_read_to_the_bit() -> None:
    model, other = Counting(), Counting()
    model(torch.zeros(1, 6))
    source, target = RunningBuffers(model), RunningBuffers(other)
    values = torch.zeros(source.num_elements)
    source.write(values)
    target.read(values)

    assert all(torch.equal(getattr(model, name), getattr(other, name)) for name in BUFFERS)
