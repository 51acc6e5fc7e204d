"""Metrics are means over samples, whatever the parts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pliant.train.errors import TrainingError
from pliant.train.sum.metrics import NUM_ELEMENTS, NUM_METRICS, MetricSums
from pliant.train.sum.readout import Element, Readout


@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(1, 50)), min_size=1, max_size=9), st.integers(0, 4))
def test_means_are_weighted_by_samples(parts: list[tuple[float, int]], first: int) -> None:
    metric_sums = MetricSums()
    elements: list[Element] = [0.0] * (first + NUM_ELEMENTS)
    for value, num_samples in parts:
        metric_sums.add(elements, value, {"b": torch.tensor(value), "a": 1.0}, num_samples, first=first)

    means = metric_sums.means(Readout().finish(elements[first:]))

    expected = sum(value * n for value, n in parts) / sum(n for _, n in parts)
    assert means == pytest.approx({"loss": expected, "a": 1.0, "b": expected}, rel=1e-5, abs=1e-5)
    assert Readout().finish(elements[:first]) == [0.0] * first


def test_names_are_those_of_the_first_part() -> None:
    metric_sums = MetricSums()
    elements: list[Element] = [0.0] * NUM_ELEMENTS
    metric_sums.add(elements, 1.0, {"a": 1.0}, 1)

    with pytest.raises(TrainingError, match=r"got the metrics \('b',\), and \('a',\) before"):
        metric_sums.add(elements, 1.0, {"b": 1.0}, 1)
    with pytest.raises(TrainingError, match=f"at most {NUM_METRICS} travel"):
        MetricSums().add(elements, 1.0, {str(number): 1.0 for number in range(NUM_METRICS + 1)}, 1)


def test_a_metric_of_several_numbers_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"the metric a has the shape \(2,\); give its mean over the samples"):
        MetricSums().add([0.0] * NUM_ELEMENTS, 1.0, {"a": torch.zeros(2)}, 1)


def test_the_example_of_the_module() -> None:
    sums = MetricSums()
    parts: list[list[Element]] = [[0.0] * NUM_ELEMENTS for _ in range(2)]
    sums.add(parts[0], 2.0, {}, 3)
    sums.add(parts[1], 4.0, {}, 1)

    assert [part[:2] for part in parts] == [[6.0, 3], [4.0, 1]]
    assert sums.means([10.0, 4.0, 0.0]) == {"loss": 2.5}
    assert sums.divisor([10.0, 4.0, 0.0]) == 1.0


def test_task_without_a_part_yet_knows_the_names_of_the_values_that_others_have() -> None:
    sums = [10.0, 4.0, 0.0, 2.0, 6.0]
    assert MetricSums().means(sums, known=["loss", "b", "a"]) == {"loss": 2.5, "a": 0.5, "b": 1.5}


def test_the_loss_of_weighted_parts_is_a_mean_over_the_weights() -> None:
    sums = MetricSums()
    parts: list[list[Element]] = [[0.0] * NUM_ELEMENTS for _ in range(2)]
    sums.add(parts[0], 2.0, {}, 3, loss_weight=100.0, is_weighted=True)
    sums.add(parts[1], 4.0, {}, 1, loss_weight=300.0, is_weighted=True)

    assert [part[:3] for part in parts] == [[200.0, 3, 100.0], [1200.0, 1, 300.0]]
    assert sums.means([1400.0, 4.0, 400.0]) == {"loss": 3.5}
    assert sums.divisor([1400.0, 4.0, 400.0]) == 400.0
    with pytest.raises(TrainingError, match="a weight for some batches and none for others"):
        sums.add(parts[1], 4.0, {}, 1)
