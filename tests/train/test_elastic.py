"""Trainings whose membership changes, over real gloo connections."""

import json
import random
import threading
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.world import World
from torch.utils.data import TensorDataset

from pliant.core.job import TaskId
from pliant.core.link import Finished, Report, Saved, Switched
from pliant.train import Run

pytestmark = pytest.mark.timeout(180)

NUM_SAMPLES, BATCH = 333, 32
STEPS_PER_EPOCH = 11
LATE_S = 0.2


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(NUM_SAMPLES, 10, generator=generator)
    return TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long())


def build() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def script(num_epochs: int, pause_s: float = 0.0, changes_done: threading.Event | None = None) -> Any:
    """The second half takes long until `changes_done`, so that no training is over before its changes are."""

    def train(world: World, task_id: TaskId) -> None:
        model, optimizer = build()
        run = Run(model, optimizer, data(), batch_size=BATCH)
        for epoch in run.epochs(num_epochs):
            for index, (x, y) in run.enumerate():
                step = run.num_steps_done
                assert index == step % run.steps_per_epoch, "whoever joined, and whenever"
                world.maybe_crash(task_id)
                if pause_s:
                    time.sleep(pause_s)  # makes steps long enough for changes to fall between them
                if changes_done is not None and epoch >= num_epochs // 2:
                    changes_done.wait(LATE_S)
                stepped = run.step(torch.nn.functional.cross_entropy(model(x), y))
                assert stepped == (run.num_steps_done > step)

    return train


def undisturbed(num_epochs: int) -> tuple[dict[str, torch.Tensor], float]:
    model, optimizer = build()
    run = Run(model, optimizer, data(), batch_size=BATCH, virtual_workers=8)
    for _ in run.epochs(num_epochs):
        for x, y in run:
            run.step(torch.nn.functional.cross_entropy(model(x), y))
    return model.state_dict(), run.last["loss"]


def samples_by_epoch(result_dir: Path) -> tuple[dict[int, list[int]], set[int]]:
    """Return the samples that the counted steps of every epoch used, and the steps."""
    attempts: dict[tuple[int, int], list[tuple[int, list[int]]]] = defaultdict(list)
    committed: dict[int, int] = {}
    for path in (result_dir / "audit").glob("*.jsonl"):
        whole, _, _ = path.read_text().rpartition("\n")  # who is killed while it writes has no part in a step
        for text in whole.splitlines():
            line = json.loads(text)
            if "c" in line:
                committed[line["c"]] = max(committed.get(line["c"], 0), line["g"])
            else:
                attempts[line["g"], line["s"]].append((line["e"], line["i"]))
    epochs: dict[int, list[int]] = defaultdict(list)
    for step, generation in committed.items():
        for epoch, indices in attempts[generation, step]:
            epochs[epoch] += indices
    return dict(epochs), set(committed)


def check(world: World, num_epochs: int) -> None:
    """Every sample exactly once an epoch, every step once, and the model an undisturbed run makes."""
    epochs, steps = samples_by_epoch(world.result_dir)
    assert steps == set(range(num_epochs * STEPS_PER_EPOCH))
    assert {epoch: sorted(used) for epoch, used in epochs.items()} == {
        epoch: list(range(NUM_SAMPLES)) for epoch in range(num_epochs)
    }
    model = torch.load(world.result_dir / "model" / "model.pt", weights_only=True)
    expected, _ = undisturbed(num_epochs)
    for name, value in expected.items():
        torch.testing.assert_close(model[name], value, rtol=1e-4, atol=1e-5)
    assert finished(world)


def test_one_task_alone_trains_to_the_end(tmp_path: Path) -> None:
    world = World(script(2), tmp_path)
    world.resize(1)
    world.wait_for_end()
    check(world, 2)


def test_growing_and_shrinking_changes_nothing_but_the_speed(tmp_path: Path) -> None:
    changes_done = threading.Event()
    world = World(script(16, 0.0005, changes_done), tmp_path)
    world.resize(1)
    world.wait_for_size(1)
    for size in (4, 2, 3, 1):
        world.resize(size)
        world.wait_for_size(size)
    changes_done.set()
    world.wait_for_end()
    check(world, 16)
    assert [a.from_size for a in world.activated] == [0, *(len(a.members) for a in world.activated[:-1])]
    assert all(message.redone_steps == 0 for _, message in world.heard if isinstance(message, Switched))


@pytest.mark.parametrize("victim", [0, 2], ids=["the leader", "the last"])
def test_a_lost_worker_costs_at_most_one_step(tmp_path: Path, victim: int) -> None:
    changes_done = threading.Event()
    world = World(script(12, 0.001, changes_done), tmp_path)
    world.resize(3)
    world.wait_for_size(3)
    world.kill(world.membership.active[victim])
    world.wait_for_size(2)
    changes_done.set()
    world.resize(3)
    world.wait_for_end()
    check(world, 12)
    assert sum(a.redone_steps for a in world.activated) <= 1


def test_two_lost_together_cost_at_most_one_step_each(tmp_path: Path) -> None:
    changes_done = threading.Event()
    world = World(script(12, 0.001, changes_done), tmp_path)
    world.resize(4)
    world.wait_for_size(4)
    for task_id in world.membership.active[:2]:
        world.kill(task_id)
    world.wait_for_size(2)
    changes_done.set()
    world.wait_for_end()
    check(world, 12)
    assert sum(a.redone_steps for a in world.activated) <= 2


def test_all_lost_resumes_from_the_newest_checkpoint(tmp_path: Path) -> None:
    changes_done = threading.Event()
    world = World(script(10, 0.001, changes_done), tmp_path)
    world.resize(2)
    world.wait(lambda: any(isinstance(m, Saved) for _, m in world.heard), "a checkpoint")
    for task_id in world.live():
        world.kill(task_id)
    world.wait(lambda: not world.membership.active, "all are lost")
    changes_done.set()
    world.resize(2)
    world.wait_for_end()
    check(world, 10)


def test_emptied_job_saves_and_resumes_where_it_was(tmp_path: Path) -> None:
    changes_done = threading.Event()
    world = World(script(10, 0.001, changes_done), tmp_path, checkpoint_freq=0, metrics_every=1, now=lambda: 100.0)
    world.resize(3)
    world.wait_for_size(3)
    began, members = world.activated[-1].step, [world.actors[task].membership for task in world.membership.active]
    world.wait(lambda: (members[0].pulse().step or 0) > began + 2, "steps are done that no report has told yet")
    world.resize(0)
    world.wait_for_end()
    changes_done.set()
    left_at = max(m.step for _, m in world.heard if isinstance(m, Saved))
    assert reported_steps(world) == list(range(1, left_at + 1)), "also those since the last report"
    world.resize(1)
    world.wait_for_end()
    check(world, 10)
    steps = reported_steps(world)
    assert steps == list(range(1, steps[-1] + 1))
    resumed_at = [a.step for a in world.activated if a.from_size == 0]
    assert resumed_at == [0, left_at]


def reported_steps(world: World) -> list[int]:
    """Return the steps whose losses were reported."""
    reports = (message for _, message in world.heard if isinstance(message, Report))
    return sorted(point.step for report in reports for point in report.points if point.name == "loss")


def moved_on(world: World, number: int) -> bool:
    """A generation after `number` was announced, or there is no need of one."""
    return (
        world.membership.number > number
        or finished(world)
        or ended(world)
        or set(world.membership.active) == set(world.membership.wanted)
    )


def ended(world: World) -> bool:
    return all(actor.ended for actor in world.actors.values())


def finished(world: World) -> bool:
    return any(isinstance(message, Finished) for _, message in world.heard)


def play(world: World, dice: random.Random) -> None:
    """Resize and kill at random until the training is finished or has changed often; then let it end."""
    world.resize(1)
    world.wait_for_size(1)
    while not finished(world) and len(world.activated) < 25:
        size = dice.randint(1, 5)
        world.resize(size)
        if dice.random() < 0.4 and len(world.live()) > 1:
            world.kill(dice.choice(world.live()))
        world.wait(partial(moved_on, world, world.membership.number), "the next generation")
        if not world.membership.wanted and not finished(world):
            world.resize(1)
    world.wait(lambda: finished(world) or ended(world), "the end, or that of the last task, which was told to die")
    if not finished(world):
        world.resize(1)
    world.wait_for_end()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_schedule_of_resizes_and_losses_equals_an_undisturbed_run(tmp_path: Path, seed: int) -> None:
    world = World(script(20, pause_s=0.0005), tmp_path)
    play(world, random.Random(seed))
    check(world, 20)
