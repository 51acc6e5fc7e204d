"""A leader that is lost while it writes a `checkpoint-N`: nobody ever takes half of one as the best model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.integrations.transformers.small import Recorder, make
from tests.integrations.transformers.test_resized import OneByOne, digest
from tests.train.loops import training_context
from tests.train.world import JOB, Crash, World
from tests.tunnel.ends import eventually

from pliant.core.job import TaskId
from pliant.integrations.transformers import elastic
from pliant.policy.elastic.membership import Membership
from pliant.train.group.membership import TaskMembership
from transformers import GPT2LMHeadModel

pytestmark = pytest.mark.timeout(240)
LAST = 12
ARGUMENTS: dict[str, Any] = {
    "eval_strategy": "steps",
    "eval_steps": 2,
    "save_strategy": "steps",
    "save_steps": 2,
    "load_best_model_at_end": True,
    "metric_for_best_model": "loss",
}


class Fragile(OneByOne):
    """Dies in the task that is doomed, with the weights of a checkpoint half written."""

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.state.global_step == self.dies_at and self.world.doomed == {self.task_id}:
            weights = Path(output_dir) / "model.safetensors"
            weights.write_bytes(weights.read_bytes()[:100])
            Path(self.args.output_dir, ".saving-of-a-killed-process").mkdir()  # this one is a thread, which clears up
            raise Crash
        super()._save_optimizer_and_scheduler(output_dir)


class Dooming(Recorder):
    """Lets the others come before the second step, and dooms the task that leads."""

    def __init__(self, trainer: Any) -> None:
        super().__init__()
        self._trainer = trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        trainer = self._trainer
        if state.global_step == 0:  # whom this task is connected with trains from the next boundary on
            eventually(lambda: 3 in _sizes(trainer.world.actors[trainer.task_id].membership), 60.0)
        if state.global_step + 1 == trainer.dies_at and not trainer.world.doomed and trainer.is_world_process_zero():
            trainer.world.doomed.add(trainer.task_id)


def _sizes(membership: TaskMembership) -> tuple[int, int]:
    """Return of how many tasks the generation is that this one trains in, and the next one that is connected."""
    size, _rank = membership.upcoming() or (0, 0)
    return membership.group.size, size


@pytest.mark.parametrize("dies_at", [2, LAST])
def test_a_best_model_that_was_half_written_is_written_by_who_leads_then(tmp_path: Path, dies_at: int) -> None:
    torch.set_num_threads(1)
    arguments = {**ARGUMENTS, "greater_is_better": dies_at != LAST}  # the loss gets smaller
    with training_context() as context:
        context.virtual_workers, context.result_dir = 8, tmp_path / "alone"
        alone = elastic(make("out", **arguments))
        alone.train()
    assert alone.state.best_global_step == dies_at
    waiting = [make("out", cls=Fragile, **arguments) for _ in range(4)]
    trainers = {}

    def script(world: World, task_id: TaskId) -> None:
        trainer = elastic(waiting.pop())
        trainer.world, trainer.task_id, trainer.dies_at = world, task_id, dies_at
        trainer.add_callback(Dooming(trainer))
        trainers[task_id] = trainer
        trainer.train()

    world = World(script, tmp_path / "elastic", membership=Membership(job_id=JOB, gather_s=60.0))
    world.resize(3)
    world.wait_for_end()

    assert [len(one.members) for one in world.activated][-2:] == [3, 2]
    assert len(world.doomed) == 1
    assert digest(tmp_path / "elastic") == digest(tmp_path / "alone")
    out = tmp_path / "elastic" / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted(f"checkpoint-{n}" for n in range(2, LAST + 1, 2))
    for task_id in trainers.keys() - world.doomed:
        assert trainers[task_id].state.best_model_checkpoint == str(out / f"checkpoint-{dies_at}")
    best, kept = (
        GPT2LMHeadModel.from_pretrained(folder) for folder in (out / f"checkpoint-{dies_at}", out / "../model")
    )
    for mine, theirs in zip(kept.parameters(), best.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_another_job_begins_anew_with_what_is_best(tmp_path: Path) -> None:
    class Pause(Recorder):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == LAST - 3:
                raise InterruptedError

    torch.set_num_threads(1)
    arguments = {**ARGUMENTS, "greater_is_better": True}  # so step 2 is the best one
    with training_context() as context:
        context.virtual_workers = 8
        context.checkpoint_freq, context.result_dir = 1, tmp_path / "first"
        with pytest.raises(InterruptedError):
            elastic(make("out", callbacks=[Pause()], **arguments)).train()
        for clean_up in reversed(context.cleanups):
            clean_up()
        context.result_dir, context.resume_from = tmp_path / "second", tmp_path / "first" / "checkpoint"
        trainer = elastic(make("out", **arguments))
        trainer.train()

    kept = sorted(path.name for path in (tmp_path / "second" / "out").iterdir())
    assert kept == sorted(f"checkpoint-{step}" for step in (8, 10, 12)), "it went on after the first epoch"
    assert trainer.state.best_model_checkpoint == str(tmp_path / "second" / "out" / "checkpoint-8")
