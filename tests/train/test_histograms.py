"""Histograms of weights and gradients: counted right, told by the leader alone, and without a trace in the training."""

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.train.world import World
from torch.utils.data import TensorDataset

from pliant.core.job import TaskId
from pliant.core.link import Finished, FromTask, Histograms, Note, Switched
from pliant.core.tensor_histogram import MAX_NAMES, TensorHistogram, sound
from pliant.train import Run, histograms
from pliant.train.errors import TrainingError
from pliant.train.histograms import HistogramLog, Spread, spread_of


def numpy_counts(values: torch.Tensor, num_bins: int) -> tuple[int, ...]:
    return tuple(np.histogram(values.double().flatten().numpy(), bins=num_bins)[0].tolist())


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=300), st.integers(1, 100))
def test_counts_are_those_of_numpy(given_values: list[float], num_bins: int) -> None:
    values = torch.tensor(given_values)
    found = spread_of(values, num_bins)
    assert (found.lowest, found.highest) == (min(given_values), max(given_values))
    if found.highest - found.lowest > 1e-6 * max(1.0, abs(found.highest), abs(found.lowest)):  # else numpy refuses
        assert found.counts == numpy_counts(values, num_bins)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32])
def test_tensors_of_any_kind_are_counted(dtype: torch.dtype) -> None:
    values = (torch.randn(40, 50, generator=torch.Generator().manual_seed(1)) * 3).to(dtype).t()
    found = spread_of(values)
    assert found.counts == numpy_counts(values, 64)
    assert sum(found.counts) == values.numel()


def test_many_values_are_counted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(10_000, generator=torch.Generator().manual_seed(1))
    at_once = spread_of(values)
    monkeypatch.setattr(histograms, "_CHUNK", 999)
    assert spread_of(values) == at_once
    assert at_once.counts == numpy_counts(values, 64)


def test_what_is_no_number_is_counted_apart() -> None:
    strange = [math.nan, math.inf, -math.inf, math.nan, 1e301]
    values = torch.tensor([0.0, 1.0, *strange, 4.0], dtype=torch.float64)
    assert spread_of(values, 4) == Spread(lowest=0.0, highest=4.0, counts=(1, 1, 0, 1), num_nan=2, num_infinite=3)
    assert spread_of(torch.tensor(strange)) == Spread(lowest=0.0, highest=0.0, counts=(), num_nan=2, num_infinite=3)
    assert spread_of(torch.full((7,), -2.5)) == Spread(
        lowest=-2.5, highest=-2.5, counts=(7,), num_nan=0, num_infinite=0
    )


Seen = dict[tuple[str, int], Spread]
NAMES = ("0.weight", "0.bias", "2.weight", "2.bias")


def script(seen: Seen | None = None) -> Callable[[World, TaskId], None]:
    """Return a training of two epochs of four steps; `seen` gets what its hooks see of gradients and weights."""

    def train(_world: World, _task: TaskId) -> None:
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(64, 6, generator=generator)
        model = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 2))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

        def see(kind: str, step: int) -> None:
            for name, parameter in model.named_parameters() if seen is not None else ():
                values = parameter if kind == "weights" else parameter.grad
                assert seen is not None
                assert values is not None
                seen[f"{kind}/{name}", step] = spread_of(values)

        run = Run(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
            TensorDataset(x, (x[:, 0] > 0).long()),
            batch_size=16,
            clip_norm=0.1,
            before_step=lambda: see("gradients", run.num_steps_done + 1),
            after_commit=lambda: see("weights", run.num_steps_done),
        )
        for _ in run.epochs(2):
            for inputs, labels in run:
                run.step(torch.nn.functional.cross_entropy(model(inputs), labels))
            run.log_histogram("activations/0", model[0](x))

    return train


def played(folder: Path, size: int, every: int | None, seen: Seen | None = None, pace_s: float = 2.0) -> World:
    """Train with so many tasks; every look at the clock takes `pace_s`."""
    times = itertools.count()
    world = World(script(seen), folder, histograms_every=every, now=lambda: 1000.0 + pace_s * next(times))
    world.resize(size)
    world.wait_for_end()
    world.raise_errors()
    return world


def told(world: World) -> dict[tuple[str, int], TensorHistogram]:
    """Return all histograms that were told, and see that nobody told them who did not lead."""
    leaders = {task_id for task_id, message in world.heard if isinstance(message, Switched) and message.leader}
    found: dict[tuple[str, int], TensorHistogram] = {}
    for task_id, message in world.heard:
        if isinstance(message, Histograms):
            assert task_id in leaders
            found.update(((one.name, one.step), one) for one in message.histograms)
    assert list(sound(found.values())) == list(found.values())
    return found


def digest_of(world: World) -> str:
    (digest,) = {message.digest for _, message in world.heard if isinstance(message, Finished)}
    return digest


@pytest.mark.parametrize("size", [1, 3])
def test_they_change_no_bit_of_a_training(size: int, tmp_path: Path) -> None:
    without = played(tmp_path / "without", size, None)
    with_all = played(tmp_path / "with", size, 1)
    assert digest_of(with_all) == digest_of(without) != ""
    assert {name for name, _ in told(without)} == {"activations/0"}
    assert len({name for name, _ in told(with_all)}) == 2 * len(NAMES) + 1


def test_the_leader_tells_the_gradients_of_the_global_batch_and_the_weights_after_it(tmp_path: Path) -> None:
    seen: Seen = {}
    world = played(tmp_path, 2, 3, seen)
    expected = {f"{kind}/{name}" for kind in ("gradients", "weights") for name in NAMES}
    found = told(world)
    for step in (1, 3, 6):
        assert {name for name, at in found if at == step} == expected
        for name in expected:
            one, spread = found[name, step], seen[name, step]
            assert (one.lowest, one.highest, one.counts) == (spread.lowest, spread.highest, spread.counts)
            assert one.epoch == step // 4
    assert {step for _, step in found} == {1, 3, 4, 6, 8}, "4 and 8 are those that the script logs"
    assert found["activations/0", 8].counts != found["activations/0", 4].counts


def test_a_name_is_told_once_a_second_at_most(tmp_path: Path) -> None:
    found = told(played(tmp_path, 1, 1, pace_s=0.0))
    assert {step for name, step in found if name != "activations/0"} == {1}
    assert {step for name, step in found if name == "activations/0"} == {4}


@pytest.fixture
def sent() -> list[FromTask]:
    return []


@pytest.fixture
def log(sent: list[FromTask]) -> HistogramLog:
    clock = itertools.count()
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(1 + number % 7)) for number in range(300)])
    return HistogramLog(send=sent.append, now=lambda: 10.0 * next(clock), model=model, steps_per_epoch=10, every=1)


def all_of(sent: list[FromTask]) -> Iterator[TensorHistogram]:
    for message in sent:
        if isinstance(message, Histograms):
            assert len(message.histograms) <= 50
            yield from message.histograms


def test_of_very_many_parameters_the_largest_are_told(log: HistogramLog, sent: list[FromTask]) -> None:
    for parameter in log.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for step in (1, 2):
        log.take_gradients(step, leads=True)
        log.commit(step)
    names = {one.name for one in all_of(sent)}
    assert len(names) == MAX_NAMES
    assert "weights/6" in names
    assert "weights/0" not in names
    notes = [message.message for message in sent if isinstance(message, Note)]
    assert notes == ["the model has 300 trained parameters; histograms are logged of the 200 largest"]


def test_who_does_not_lead_counts_and_tells_nothing(log: HistogramLog, sent: list[FromTask]) -> None:
    log.take_gradients(1, leads=False)
    log.commit(1)
    log.log("a", [1.0], step=1, leads=False)
    assert sent == []


def test_lists_and_arrays_are_taken(log: HistogramLog, sent: list[FromTask]) -> None:
    log.log("list", [1, 2, 2.5], step=7, leads=True)
    log.log("array", np.array([[1.0, 3.0]]), step=7, leads=True)
    assert [(one.name, one.lowest, one.highest, sum(one.counts)) for one in all_of(sent)] == [
        ("list", 1.0, 2.5, 3),
        ("array", 1.0, 3.0, 2),
    ]


@pytest.mark.parametrize(
    ("name", "values", "step", "said"),
    [
        ("", [1.0], 1, "cannot be named ''"),
        ("two\nlines", [1.0], 1, "cannot be named"),
        ("x" * 251, [1.0], 1, "give 1 to 250 characters"),
        ("a", [], 1, "no values"),
        ("a", torch.ones(2, dtype=torch.complex64), 1, "complex numbers"),
        ("a", ["text"], 1, "a list"),
        ("a", object(), 1, "an? object"),
        ("a", [1.0], -1, "the step -1"),
        ("a", [1.0], 2**31, "the step 2147483648"),
    ],
)
def test_what_cannot_be_is_refused_in_every_task(
    log: HistogramLog, name: str, values: object, step: int, said: str
) -> None:
    for leads in (True, False):
        with pytest.raises(TrainingError, match=said):
            log.log(name, values, step=step, leads=leads)
