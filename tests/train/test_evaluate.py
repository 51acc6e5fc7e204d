"""Evaluations shared over the tasks: the same bits for any number of them, whatever is lost meanwhile."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.cases import batch_norm
from tests.train.crew import run_in
from tests.train.loops import BATCH, NUM_SAMPLES, Points, make, mlp, run_of, training_context
from tests.train.real import VIRTUAL_WORKERS
from tests.train.world import World
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from pliant.core.job import TaskId
from pliant.core.link import Finished
from pliant.train import Run, TrainingError

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def _training_context() -> Iterator[None]:
    with training_context():
        yield


def measures(model: torch.nn.Module) -> Any:
    def measure(batch: Any) -> dict[str, Any]:
        outputs = model(batch[1])
        right = (outputs.argmax(1) == batch[2]).float().mean()
        return {"loss": F.cross_entropy(outputs, batch[2]), "accuracy": right, "noise": torch.rand(()).item()}

    return measure


def evaluate_often() -> list[dict[str, float]]:
    """Return what many evaluations give: of few batches and of many, before and after the steps, and at the end."""
    case = batch_norm()
    run, found = run_of(case, virtual_workers=VIRTUAL_WORKERS), []
    for _ in run.epochs(2):
        found.append(run.evaluate(Points(), measures(case.model)))
        for batch in run:
            run.step(case.loss(batch))
        found.append(run.evaluate(Points(), measures(case.model), batch_size=NUM_SAMPLES))
        found.append(run.evaluate(Points(), measures(case.model), batch_size=7))
    found.append(run.evaluate(Points(), measures(case.model)))
    assert case.model.training
    return found


@pytest.fixture(scope="module")
def alone() -> list[dict[str, float]]:
    [found] = run_in(1, evaluate_often)
    return list(found)


@pytest.mark.parametrize("size", [2, 3])
def test_any_number_of_tasks_finds_the_same_bits(size: int, alone: list[dict[str, float]]) -> None:
    assert run_in(size, evaluate_often) == [alone] * size


def test_values_are_means_over_the_samples_in_evaluation_mode() -> None:
    case = batch_norm()
    run = run_of(case)
    for _ in run.epochs(1):
        for batch in run:
            run.step(case.loss(batch))
        found = run.evaluate(Points(), measures(case.model), batch_size=7)
        by_loader = run.evaluate(DataLoader(Points(), batch_size=7), measures(case.model))
        points = Points()
        case.model.eval()
        expected = F.cross_entropy(case.model(points.x), points.y).item()
        case.model.train()

    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    assert by_loader == found


def test_a_training_may_stop_early_on_a_value_that_all_tasks_know() -> None:
    stops = run_in(3, stop_early)

    assert stops == [stops[0]] * 3
    assert 0 < stops[0][0] < 20


def stop_early() -> tuple[int, float]:
    """Stop at the first epoch that is not better by much; return how many there were, and the last value."""
    model = mlp()
    case = make(model)
    run, best, found = run_of(case, virtual_workers=VIRTUAL_WORKERS), float("inf"), 0.0
    for epoch in run.epochs(20):
        for batch in run:
            run.step(case.loss(batch))
        found = run.evaluate(Points(), measures(model))["loss"]
        if found > 0.9 * best:
            return epoch, found
        best = min(best, found)
    return 20, found


# -- losses and newcomers ---------------------------------------------------------------------------------------------


NUM_EPOCHS = 40


def evaluating(world: World | None, task_id: TaskId, found: dict[int, float], changes_done: threading.Event) -> Run:
    """Train and note what the evaluation after every epoch gives; a task that is to die does so inside of one.

    Evaluations are slow until the changes of the membership are done, so that they fall into them, and slower in the
    second half, so that the training is not over before the changes are.
    """
    case = make(mlp())

    def measure(batch: Any) -> dict[str, float]:
        if world is not None:
            world.maybe_crash(task_id)
            changes_done.wait(0.01 if run.epoch < NUM_EPOCHS // 2 else 0.5)
        return {"loss": F.cross_entropy(case.model(batch[1]), batch[2]).item()}

    run = run_of(case, virtual_workers=VIRTUAL_WORKERS)
    for epoch in run.epochs(NUM_EPOCHS):
        for batch in run:
            run.step(case.loss(batch))
        found[epoch] = run.evaluate(Points(), measure, batch_size=5)["loss"]
    return run


@pytest.mark.parametrize("victim", [0, 1])
def test_a_loss_in_the_middle_of_an_evaluation_changes_nothing(tmp_path: Path, victim: int) -> None:
    expected: dict[int, float] = {}
    changes_done = threading.Event()
    digest = evaluating(None, TaskId("alone"), expected, changes_done).digest()
    found: dict[TaskId, dict[int, float]] = {}
    digests: dict[TaskId, str] = {}

    def script(world: World, task_id: TaskId) -> None:
        digests[task_id] = evaluating(world, task_id, found.setdefault(task_id, {}), changes_done).digest()

    world = World(script, tmp_path, virtual_workers=VIRTUAL_WORKERS)
    world.resize(3)
    world.wait_for_size(3)
    world.kill(world.membership.active[victim])
    world.wait_for_size(2)
    world.resize(3)
    world.wait_for_size(3)
    changes_done.set()
    world.wait_for_end()

    assert any(isinstance(message, Finished) for _, message in world.heard)
    assert len(digests) == 3
    assert set(digests.values()) == {digest}
    for task_id in digests:
        assert found[task_id] == {epoch: expected[epoch] for epoch in found[task_id]}
        assert list(found[task_id]) == list(range(min(found[task_id]), NUM_EPOCHS))


# -- wrong use --------------------------------------------------------------------------------------------------------


def refused(dataset: Any, measure: Any, words: str) -> None:
    case = make(mlp())
    run = run_of(case)
    next(run.epochs(1))
    with pytest.raises(TrainingError, match=words):
        run.evaluate(dataset, measure)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([])


@pytest.mark.parametrize("dataset", [Stream(), DataLoader(Stream()), iter([1])], ids=lambda d: type(d).__name__)
def test_data_without_an_index_is_refused(dataset: Any) -> None:
    refused(dataset, lambda _: {"a": 1.0}, r"evaluate\(\) got a .*, which has no length or cannot be indexed")


def test_data_without_samples_is_refused() -> None:
    refused([], lambda _: {"a": 1.0}, "got a data set without samples")


@pytest.mark.parametrize("num_values", [0, 18])
def test_no_values_and_too_many_are_refused(num_values: int) -> None:
    refused([1], lambda _: {str(i): 1.0 for i in range(num_values)}, "an evaluation gives 1 to 17 values by name")


def test_other_values_for_another_batch_are_refused() -> None:
    names = iter("abcdefgh")

    refused(range(2 * BATCH), lambda _: {next(names): 1.0}, r"gave the values \['a'\] for one batch and others for")


@pytest.mark.parametrize("where", ["before", "inside"])
def test_an_evaluation_where_tasks_are_not_together_is_refused(where: str) -> None:
    run: Run = run_of(make(mlp()))
    if where == "inside":
        next(run.epochs(1))
        next(iter(run))
    with pytest.raises(TrainingError, match=r"evaluate\(\) was called where tasks are not together"):
        run.evaluate([1], lambda _: {"a": 1.0})
