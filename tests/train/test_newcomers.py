"""Everything that a training script keeps reaches a newcomer, and survives a loss, to the bit."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.cases import float16_autocast
from tests.train.loops import run_of
from tests.train.real import VIRTUAL_WORKERS
from tests.train.world import World
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pliant.core.job import TaskId
from pliant.train.state.pytree import digest

pytestmark = pytest.mark.timeout(240)

NUM_EPOCHS = 24


def train(world: World | None, task_id: TaskId, changes_done: threading.Event) -> str:
    """Train with a scaler, schedulers and an average, slower and slower until the changes are done.

    Returns the SHA-256 of all that they end with.
    """
    case = float16_autocast()
    [optimizer], scaler = case.optimizers.values(), case.scaler
    average = AveragedModel(case.model, multi_avg_fn=get_ema_multi_avg_fn(0.9))  # type: ignore[no-untyped-call]
    by_epoch = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    case.schedulers = [torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=7)]
    case.state = {"average": average, "by_epoch": by_epoch, "plateau": plateau}
    case.after_step = lambda: average.update_parameters(case.model)
    run = run_of(case, virtual_workers=VIRTUAL_WORKERS)
    for epoch in run.epochs(NUM_EPOCHS):
        for batch in run:
            if world is not None:
                world.maybe_crash(task_id)
                changes_done.wait(0.03 * (1 + epoch))
            run.step(case.loss(batch))
        by_epoch.step()
        plateau.step(run.last["loss"])
    assert scaler is not None
    kept: list[Any] = [run.digest(), dict(run.last), scaler.state_dict(), case.schedulers[0].state_dict()]
    return digest([*kept, *(one.state_dict() for one in case.state.values())])


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_scaler_schedulers_and_averages_are_the_same_in_every_task_at_the_end(tmp_path: Path) -> None:
    changes_done = threading.Event()
    expected = train(None, TaskId("alone"), changes_done)
    found: dict[TaskId, str] = {}

    def script(world: World, task_id: TaskId) -> None:
        found[task_id] = train(world, task_id, changes_done)

    world = World(script, tmp_path, virtual_workers=VIRTUAL_WORKERS)
    world.resize(1)
    world.wait_for_size(1)
    world.resize(3)
    world.wait_for_size(3)
    world.kill(world.membership.active[0])
    world.wait_for_size(2)
    world.resize(4)
    world.wait_for_size(4)
    changes_done.set()
    world.wait_for_end()

    assert len(found) == 4
    assert set(found.values()) == {expected}
