"""Means and marks of an epoch."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pliant.ibm.modules.pyedt.epochs import CallbackProgress, Means, callback_states, undo_changes


@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(1, 500)), min_size=1, max_size=30))
def test_means_are_over_samples(batches: list[tuple[float, int]]) -> None:
    means = Means()
    for value, num_samples in batches:
        means.add({"accuracy": 1.0, "loss": value}, num_samples)

    expected = sum(value * count for value, count in batches) / sum(count for _, count in batches)
    assert list(means.values) == ["loss", "accuracy"]
    assert means.values == pytest.approx({"loss": expected, "accuracy": 1.0})


def test_a_metric_that_is_missing_from_a_step_counts_where_it_is_there() -> None:
    means = Means()
    means.add({"loss": 1.0, "accuracy": 0.5}, 10)
    means.add({"loss": 3.0}, 10)

    assert means.values == {"loss": 2.0, "accuracy": 0.5}


def test_marks_travel_as_state() -> None:
    marks, newcomer = CallbackProgress(), CallbackProgress()
    marks.num_begun, marks.num_ended = 4, 3

    newcomer.load_state_dict(marks.state_dict())

    assert (newcomer.num_begun, newcomer.num_ended) == (4, 3)


class Counter:
    """A callback with a state to keep."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.count = state_dict["count"]


class Scheduling:
    """A callback that has no state to keep but a scheduler."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


def one_parameter() -> torch.optim.Optimizer:
    return torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.5)


def test_changes_of_options_and_of_kept_states_are_undone() -> None:
    optimizer, counter = one_parameter(), Counter()
    scheduling = Scheduling(optimizer)

    with undo_changes([optimizer], callback_states([object(), counter, scheduling])):
        optimizer.step()
        scheduling.scheduler.step()
        counter.count += 1

    assert (optimizer.param_groups[0]["lr"], counter.count, scheduling.scheduler.last_epoch) == (0.5, 0, 0)


def test_of_a_callback_its_own_state_is_kept_or_else_that_of_its_schedulers() -> None:
    counter, scheduling = Counter(), Scheduling(one_parameter())
    counter.count = 3
    scheduling.scheduler.last_epoch = 7
    kept = {name: one.state_dict() for name, one in callback_states([object(), counter, scheduling]).items()}
    newcomers: list[Any] = [object(), Counter(), Scheduling(one_parameter())]

    for name, one in callback_states(newcomers).items():
        one.load_state_dict(kept[name])

    assert kept["callback-0"] == {}
    assert newcomers[1].count == 3
    assert newcomers[2].scheduler.last_epoch == 7
