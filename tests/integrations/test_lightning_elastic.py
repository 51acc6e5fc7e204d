"""Trainings of Lightning whose tasks come and go: everything that has a state comes to the same end."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from tests.integrations.modules import (
    BATCH,
    HUSHED,
    NUM_SAMPLES,
    STEPS_PER_EPOCH,
    Count,
    Net,
    digest_of,
    loader,
    make_trainer,
    metrics,
)
from tests.train.loops import training_context
from tests.train.world import World

from pliant.core.job import TaskId
from pliant.core.link import Claimed, Saved
from pliant.integrations.lightning import ElasticStrategy

pytestmark = [pytest.mark.timeout(240), *HUSHED]

NUM_EPOCHS, MAX_EPOCHS = 14, 40
LATE_S = 0.2


def schedule(optimizer: torch.optim.Optimizer) -> Any:
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.9, patience=0, threshold=0.9)
    return {"scheduler": plateau, "monitor": "train_loss_epoch"}


class StopAt(EarlyStopping):
    """Counts on, and stops the training at a fixed number of checks."""

    def __init__(self) -> None:
        super().__init__("val_loss", min_delta=100.0, patience=NUM_EPOCHS - 1)


def train(make: Any, num_samples: int = NUM_SAMPLES) -> dict[str, Any]:
    """Train to the end; return all that a person could compare."""
    count, stopper = Count(), StopAt()
    saver = ModelCheckpoint(monitor="val_loss", save_top_k=2, mode="max")
    module = make()
    trainer = make_trainer(
        max_epochs=MAX_EPOCHS,
        gradient_clip_val=0.5,
        enable_checkpointing=True,
        callbacks=[count, stopper, saver],
        strategy=ElasticStrategy(virtual_workers=8, seed=7),
    )
    trainer.fit(module, loader(num_samples, shuffle=True), loader(batch_size=32))
    return {
        "digest": digest_of(module, trainer),
        "counts": count.counts,
        "metrics": metrics(trainer),
        "epochs": [seen for seen in count.seen if seen[0] in ("validation end", "epoch end")],
        "lr": trainer.optimizers[0].param_groups[0]["lr"],
        "progress": (trainer.current_epoch, trainer.global_step, trainer.fit_loop.epoch_loop.total_batch_idx),
        "stopped": (stopper.wait_count, stopper.stopped_epoch, float(stopper.best_score)),
        "saved": (float(saver.best_model_score or 0.0), sorted(Path(path).name for path in saver.best_k_models)),
    }


def undisturbed(result_dir: Path, num_samples: int = NUM_SAMPLES) -> dict[str, Any]:
    with training_context() as context:
        context.virtual_workers, context.result_dir = 8, result_dir
        return train(lambda: Net(schedule=schedule), num_samples)


class Actors:
    """What the tasks of a world run: steps take long in the second half, until the changes are done."""

    def __init__(self) -> None:
        self.changes_done = threading.Event()
        self.ends: dict[TaskId, dict[str, Any]] = {}

    def __call__(self, world: World, task_id: TaskId) -> None:
        actors = self

        class Slow(Net):
            def training_step(self, batch: Any, batch_idx: int) -> Any:
                world.maybe_crash(task_id)
                if self.current_epoch >= NUM_EPOCHS // 2 or world.live()[0] != task_id:
                    actors.changes_done.wait(LATE_S if self.current_epoch >= NUM_EPOCHS // 2 else 0.01)
                return super().training_step(batch, batch_idx)

        self.ends[task_id] = train(lambda: Slow(schedule=schedule))


def from_there_on(expected: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """Return what is expected of a task that has seen the last epochs only."""
    return {**expected, "epochs": expected["epochs"][-len(end["epochs"]) :]}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_four_two_tasks_a_death_and_a_resume_come_to_the_end_of_one_task(tmp_path: Path) -> None:
    actors = Actors()
    world = World(actors, tmp_path / "job", checkpoint_freq=0)
    world.resize(1)
    world.wait_for_size(1)
    world.resize(4)
    world.wait_for_size(4)
    world.resize(2)
    world.wait_for_size(2)
    world.resize(3)
    world.wait_for_size(3)
    world.kill(world.membership.active[0])
    world.wait_for_size(2)
    world.resize(0)
    world.wait(lambda: all(actor.ended for actor in world.actors.values()), "all leave")
    assert any(isinstance(message, Saved) for _, message in world.heard)
    actors.changes_done.set()
    world.resize(2)
    world.wait_for_end()
    world.raise_errors()

    expected = undisturbed(tmp_path / "alone")
    assert expected["progress"][0] == NUM_EPOCHS, "it stops early"
    assert expected["lr"] == pytest.approx(0.1 * 0.9 ** (NUM_EPOCHS - 2)), "on a plateau from the third epoch on"
    assert expected["counts"]["batch end"] == expected["counts"]["batch start"] == NUM_EPOCHS * STEPS_PER_EPOCH
    assert len(actors.ends) == 2, "those that were there at the end"
    for end in actors.ends.values():
        assert end == from_there_on(expected, end)
    assert files(tmp_path / "job/lightning") == files(tmp_path / "alone/lightning") == expected["saved"][1]
    digests = [(tmp_path / job / "model/digest").read_text() for job in ("job", "alone")]
    assert digests[0] == digests[1]
    assert {one.claim for _, one in world.heard if isinstance(one, Claimed)} == {"exact"}


@pytest.mark.parametrize(
    ("batch_idx", "num_samples"),
    [
        pytest.param(1, NUM_SAMPLES, id="inside an epoch"),
        pytest.param(STEPS_PER_EPOCH - 1, NUM_SAMPLES, id="at the end of an epoch"),
        pytest.param(STEPS_PER_EPOCH - 2, 3 * BATCH + 1, id="before a step that it has no part of"),
    ],
)
def test_newcomer_comes_to_the_values_that_the_others_have(tmp_path: Path, batch_idx: int, num_samples: int) -> None:
    asked, ends = threading.Event(), {}

    def script(world: World, task_id: TaskId) -> None:
        me = world.actors[task_id].membership

        class Asks(Net):
            def training_step(self, batch: Any, index: int) -> Any:
                if (self.current_epoch, index) == (2, batch_idx) and len(world.actors) == 1:
                    asked.set()
                    world.wait(lambda: me.pledge() is not None, "a second task is there: all switch after this step")
                return super().training_step(batch, index)

        ends[task_id] = train(lambda: Asks(schedule=schedule), num_samples)

    world = World(script, tmp_path / "job")
    world.resize(1)
    world.wait(asked.is_set, "the first task is where the second one is to join")
    world.resize(2)
    world.wait_for_end()
    world.raise_errors()

    assert [activated.step for activated in world.activated] == [0, 2 * STEPS_PER_EPOCH + batch_idx + 1]
    first, second = (ends[task_id] for task_id in sorted(ends))
    assert first == undisturbed(tmp_path / "alone", num_samples)
    assert second == from_there_on(first, second)
    assert second["epochs"][0][1] == 3 * STEPS_PER_EPOCH, "what ends the epoch in which it joined"
