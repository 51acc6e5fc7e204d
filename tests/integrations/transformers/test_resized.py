"""An elastic Trainer whose number of workers changes: the bits of one worker, and the callbacks of every step."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.integrations.transformers.small import Counter, Recorder, make
from tests.train.crew import run_in
from tests.train.loops import training_context
from tests.train.world import World

from pliant.core.job import TaskId
from pliant.core.link import Finished, Switched
from pliant.integrations.transformers import elastic
from pliant.train.context import TRAIN_CONTEXT
from transformers import Trainer

pytestmark = pytest.mark.timeout(240)
LATE_S = 0.2
NUM_EPOCHS, NUM_STEPS = 8, 48
NUM_TASKS = 6
"""At most: four, one for the lost one, and one to spare."""
ARGUMENTS: dict[str, Any] = {
    "num_train_epochs": NUM_EPOCHS,
    "eval_strategy": "steps",
    "eval_steps": 12,
    "save_strategy": "steps",
    "save_steps": 12,
    "load_best_model_at_end": True,
    "metric_for_best_model": "loss",
    "logging_steps": 5,
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


class Scripted(Recorder):
    """Dies where the world says so; from the second half on steps take long until `changes_done`."""

    def __init__(self, world: World, task_id: TaskId, changes_done: threading.Event) -> None:
        super().__init__()
        self._of = (world, task_id, changes_done)

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        super().on_step_begin(args, state, control, **others)
        world, task_id, changes_done = self._of
        world.maybe_crash(task_id)
        if state.global_step >= NUM_STEPS // 4:
            changes_done.wait(LATE_S)


class OneByOne(Trainer):
    """Evaluates alone: tasks are threads here, and accelerate keeps for the whole process which loader is read."""

    reads = threading.Lock()

    def evaluate(self, *args: Any, **named: Any) -> dict[str, float]:
        with self.reads:
            found: dict[str, float] = super().evaluate(*args, **named)
            return found


def digest(folder: Path) -> str:
    return (folder / "model" / "digest").read_text()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same training, undisturbed: its digest and its Trainer."""
    torch.set_num_threads(1)
    with training_context() as context:
        context.virtual_workers, context.result_dir = 8, tmp_path_factory.mktemp("alone")
        trainer = elastic(make("out", callbacks=[Counter()], **ARGUMENTS))
        trainer.train()
        return digest(context.result_dir), trainer


def test_one_to_four_to_two_tasks_and_a_lost_one_change_no_bit_and_no_log(tmp_path: Path, alone: Any) -> None:
    changes_done, trainers = threading.Event(), {}
    # Made one after the other: every TrainingArguments resets what accelerate keeps for the process, here all tasks.
    waiting = [make("out", cls=OneByOne, callbacks=[Counter()], **ARGUMENTS) for _ in range(NUM_TASKS)]

    def script(world: World, task_id: TaskId) -> None:
        trainers[task_id] = elastic(waiting.pop())
        trainers[task_id].add_callback(Scripted(world, task_id, changes_done))
        trainers[task_id].train()

    world = World(script, tmp_path)
    for size in (1, 4):
        world.resize(size)
        world.wait_for_size(size)
    world.kill(world.membership.active[0])  # the leader
    world.wait_for_size(3)
    world.resize(2)
    world.wait_for_size(2)
    changes_done.set()
    world.wait_for_end()

    expected_digest, expected = alone
    assert digest(tmp_path) == expected_digest
    assert sum(a.redone_steps for a in world.activated) <= 1
    assert {len(a.members) for a in world.activated} == {1, 2, 3, 4}
    ended = {task_id for task_id, message in world.heard if isinstance(message, Finished)}
    assert len(ended) == 2
    for task_id in ended:
        check_task(trainers[task_id], expected)
    joined = {message.step for task_id, message in world.heard if isinstance(message, Switched) and task_id in ended}
    assert max(joined) > 0
    kept = sorted(path.name for path in (tmp_path / "out").glob("checkpoint-*"))
    assert kept == [f"checkpoint-{step}" for step in (12, 24, 36, 48)]


def check_task(trainer: Any, expected: Any) -> None:
    """The Trainer of a task that joined later knows what the undisturbed one knows, and called its callbacks once."""
    assert values(trainer) == values(expected)
    assert trainer.state.best_metric == expected.state.best_metric
    [counter] = [one for one in trainer.callback_handler.callbacks if isinstance(one, Counter)]
    [recorder] = [one for one in trainer.callback_handler.callbacks if isinstance(one, Recorder)]
    assert counter.num_steps == NUM_STEPS
    ends = [step for name, step in recorder.calls if name == "step end"]
    assert ends == sorted(set(ends))
    assert ends[-1] == NUM_STEPS
    assert recorder.calls[-1] == ("train end", NUM_STEPS)


def values(trainer: Any) -> list[dict[str, float]]:
    """Return what was logged, but how long it took."""
    timed = ("runtime", "per_second")
    return [
        {name: value for name, value in entry.items() if not name.endswith(timed)}
        for entry in trainer.state.log_history
    ]


def train_with_dropout(folder: str) -> str:
    TRAIN_CONTEXT.get().result_dir = Path(folder)
    trainer = elastic(make("out", dropout=0.2, eval_strategy="epoch", save_strategy="epoch"))
    trainer.train()
    return f"{trainer._elastic_loop._run.claim} {digest(Path(folder))} {values(trainer)}"


def test_dropout_draws_the_same_for_one_and_three_tasks(tmp_path: Path) -> None:
    [one] = run_in(1, train_with_dropout, folder=str(tmp_path / "one"))

    assert one.startswith("exact ")
    assert run_in(3, train_with_dropout, folder=str(tmp_path / "three")) == [one] * 3
    assert len(list((tmp_path / "three" / "out").glob("checkpoint-*"))) == 2
