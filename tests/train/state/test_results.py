"""Checkpoints are taken when they are due, and training waits for a copy of the state and for nothing else."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from pliant.core.link import FromTask, Note, Saved, SaveFailed
from pliant.train.errors import TrainingError
from pliant.train.state import checkpoint
from pliant.train.state.checkpoint_writer import CommittedStep
from pliant.train.state.claim import TrainingClaim
from pliant.train.state.results import Results, Saving
from pliant.train.state.shared import SharedState
from pliant.train.state.snapshot import SnapshotBuffer

DEADLINE_S = 30.0


class Ticking:
    """Something that is saved with the state, and takes as long as it is told."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.seconds = 0.0

    def state_dict(self) -> dict[str, Any]:
        self.world.now += self.seconds
        return {}

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        return None


@dataclass(slots=True)
class World:
    """One leader's results on a clock that is moved by hand."""

    root: Path
    now: float = 100.0
    heard: list[FromTask] = field(default_factory=list)
    disk_moves: threading.Event = field(default_factory=threading.Event)
    """While it is not set, the thread that has written a checkpoint to disk does not come to its end."""
    all: list[Results] = field(default_factory=list)

    def results(self, *, memory: bool = False, result: bool = True, **given: Any) -> Results:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
        shared = SharedState(
            model=model,
            optimizers={"": optimizer},
            extras={"ticking": Ticking(self)},
            identity={"seed": 1},
            claim=TrainingClaim("exact", "here"),
        )
        memory_folder = self.root / "memory"
        if memory:
            memory_folder.mkdir(exist_ok=True)
        chosen: dict[str, Any] = {"freq": 0, "save": None, "every_s": 0.0, **given}
        results = Results(
            folder=self.root / "result" if result else None,
            state=shared,
            send=self.hear,
            clock=lambda: self.now,
            memory_folder=memory_folder if memory else None,
            **chosen,
        )
        self.all.append(results)
        return results

    def hear(self, message: FromTask) -> None:
        self.heard.append(message)
        if isinstance(message, Saved) and message.what == "checkpoint":
            assert self.disk_moves.wait(DEADLINE_S)

    def saved(self) -> list[int]:
        return [message.step for message in self.heard if isinstance(message, Saved) and message.what == "checkpoint"]

    def failed(self) -> list[int]:
        return [message.step for message in self.heard if isinstance(message, SaveFailed)]

    def notes(self) -> list[str]:
        return [message.message for message in self.heard if isinstance(message, Note)]

    def on_disk(self) -> list[int]:
        return steps(self.root / "result" / "checkpoint")

    def in_memory(self) -> list[int]:
        return steps(self.root / "memory")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited {DEADLINE_S} s until {what}; heard {self.heard}"
            time.sleep(0.002)

    def train(self, results: Results, step: int, *, seconds: float = 0.0) -> None:
        """Commit a step that takes so many seconds, with all threads at rest before and after it."""
        self.rest(results)
        self.now += seconds
        results.state.model.weight.data.fill_(step)  # type: ignore[operator]
        results.after_commit(step=step, epoch=0)
        self.rest(results)

    def rest(self, results: Results) -> None:
        self.until(lambda: all(writer.is_idle for writer in results._writers()), "all is written")


def steps(folder: Path) -> list[int]:
    return sorted(int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.ckpt"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.disk_moves.set()
    yield world
    world.disk_moves.set()
    for results in world.all:
        results.close()


# when


def test_without_a_result_folder_nothing_is_ever_saved(world: World) -> None:
    results = world.results(result=False, freq=1, every_s=1.0)
    for step in range(1, 4):
        world.train(results, step, seconds=100)
    results.after_epoch(step=3, epoch=0)

    assert not results.checkpoint_now(step=3, epoch=0)
    assert not results.interrupt()
    results.finish(step=3, epoch=1)
    assert world.heard == []
    assert list(world.root.iterdir()) == []


def test_a_checkpoint_on_disk_is_due_by_time(world: World) -> None:
    results = world.results(every_s=600.0)
    for step, seconds in ((1, 0), (2, 599), (3, 1), (4, 599), (5, 2)):
        world.train(results, step, seconds=seconds)

    assert world.saved() == [3, 5]
    assert world.on_disk() == [3, 5]


def test_a_time_of_zero_turns_checkpoints_by_time_off(world: World) -> None:
    results = world.results(memory=True, every_s=0.0, memory_every_s=0.0)
    for step in (1, 2, 3):
        world.train(results, step, seconds=10_000)

    assert (world.on_disk(), world.in_memory()) == ([], [])


def test_a_checkpoint_by_epochs_begins_the_time_anew(world: World) -> None:
    results = world.results(freq=2, every_s=600.0)
    for step in range(1, 9):
        world.train(results, step, seconds=200)
        results.after_epoch(step=step, epoch=step - 1)
        world.rest(results)

    assert world.saved() == [2, 4, 6, 8]


def test_shared_memory_gets_one_every_few_seconds_and_keeps_the_newest_only(world: World) -> None:
    results = world.results(memory=True)
    for step in range(1, 14):
        world.train(results, step, seconds=1)
        assert len(world.in_memory()) <= 1

    assert world.in_memory() == [11]
    assert world.heard == []


def test_shared_memory_is_used_so_rarely_that_the_pauses_stay_below_a_twentieth(world: World) -> None:
    results = world.results(memory=True)
    world.train(results, 1)
    ticking = results.state.extras["ticking"]
    assert isinstance(ticking, Ticking)
    ticking.seconds = 2.0
    world.train(results, 2, seconds=5)
    at = world.now - 2.0
    taken: list[float] = []
    for step in range(3, 60):
        world.train(results, step, seconds=1)
        if world.in_memory() == [step]:
            taken.append(world.now - 2.0)

    assert taken[0] - at >= 40.0
    assert len(taken) == 1


def test_a_look_when_nothing_is_due_costs_about_a_microsecond(world: World) -> None:
    results = world.results(memory=True, every_s=600.0)
    world.train(results, 1)
    fastest = float("inf")
    for _ in range(50):
        began = time.perf_counter()
        for _ in range(200):
            results.after_commit(step=2, epoch=0)
        fastest = min(fastest, (time.perf_counter() - began) / 200)

    assert fastest < 5e-6


# what, while training goes on


def test_a_checkpoint_holds_the_state_of_its_step_whatever_training_does_meanwhile(world: World) -> None:
    results = world.results(every_s=10.0)
    world.train(results, 1)
    world.train(results, 2, seconds=10)
    results.state.model.weight.data.fill_(77.0)  # type: ignore[operator]
    world.now += 10
    results.after_commit(step=3, epoch=0)
    results.state.model.weight.data.fill_(88.0)  # type: ignore[operator]
    world.rest(results)

    read = results.newest()
    assert read is not None
    assert (read["step"], read["epoch"], read["identity"]) == (3, 0, {"seed": 1})
    assert bool((read["model"]["weight"] == 77.0).all())


def test_a_disk_that_hangs_does_not_stop_training_and_the_newest_state_follows(world: World) -> None:
    results = world.results(freq=1)
    world.train(results, 1)
    world.disk_moves.clear()
    results.after_epoch(step=1, epoch=0)
    world.until(lambda: world.saved() == [1], "the first is written")
    for step in (2, 3, 4):
        world.now += 1
        results.after_commit(step=step, epoch=step - 1)
        results.after_epoch(step=step, epoch=step - 1)
    assert world.saved() == [1]
    world.disk_moves.set()
    world.train(results, 5, seconds=1)

    assert world.saved() == [1, 5]


def test_a_hanging_disk_does_not_keep_checkpoints_from_shared_memory(world: World) -> None:
    results = world.results(memory=True, freq=1)
    world.train(results, 1)
    world.disk_moves.clear()
    results.after_epoch(step=1, epoch=0)
    world.until(lambda: world.saved() == [1], "the first is written")
    world.now += 6
    results.after_commit(step=2, epoch=1)
    world.until(lambda: world.in_memory() == [2], "it is in memory")

    assert world.saved() == [1]


def test_a_checkpoint_that_was_put_off_is_written_before_the_model(world: World) -> None:
    results = world.results(freq=1)
    world.train(results, 1)
    world.disk_moves.clear()
    results.after_epoch(step=1, epoch=0)
    world.until(lambda: world.saved() == [1], "the first is written")
    results.after_epoch(step=2, epoch=1)
    world.disk_moves.set()
    results.finish(step=2, epoch=2)

    assert [(m.what, m.step) for m in world.heard if isinstance(m, Saved)] == [
        ("checkpoint", 1),
        ("checkpoint", 2),
        ("model", 2),
    ]


# trouble


def test_trouble_with_the_disk_is_told_once_until_it_changes(world: World) -> None:
    results = world.results(every_s=10.0)
    folder = world.root / "result" / "checkpoint"
    folder.parent.mkdir()
    folder.write_text("in the way")
    for step in (1, 2, 3, 4):
        world.train(results, step, seconds=10)
    assert (world.saved(), world.failed()) == ([], [2])
    folder.unlink()
    folder.symlink_to(world.root / "nowhere" / "at all")
    for step in (5, 6):
        world.train(results, step, seconds=10)
    folder.unlink()
    world.train(results, 7, seconds=10)
    world.train(results, 8, seconds=10)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    world.train(results, 9, seconds=10)
    world.train(results, 10, seconds=10)

    assert world.saved() == [7, 8]
    assert world.failed()[0] == 2
    assert world.failed()[-1] == 9
    assert all("checkpoint" in m.error for m in world.heard if isinstance(m, SaveFailed))


def test_shared_memory_that_is_too_small_is_noted_once_and_used_when_it_is_not(world: World) -> None:
    results = world.results(memory=True, memory_every_s=5.0)
    (world.root / "memory").rmdir()
    for step in (1, 2, 3):
        world.train(results, step, seconds=5)
    assert world.failed() == []
    (note,) = world.notes()
    assert note.startswith("checkpoints in shared memory are off: ")
    (world.root / "memory").mkdir()
    world.train(results, 4, seconds=5)

    assert world.in_memory() == [4]
    assert len(world.notes()) == 1


def test_what_cannot_be_saved_beside_the_checkpoint_is_told(world: World) -> None:
    def save(_saving: Saving) -> None:
        raise OSError("no room for more")

    results = world.results(freq=1, save=save)
    results.after_epoch(step=1, epoch=0)
    world.rest(results)

    assert world.saved() == [1]
    assert [m.error for m in world.heard if isinstance(m, SaveFailed)] == ["no room for more"]


# before leaving, at the end


def test_before_leaving_all_is_on_disk_and_shared_memory_is_given_back(world: World) -> None:
    results = world.results(memory=True)
    world.train(results, 1)
    world.train(results, 2, seconds=6)
    assert world.in_memory() == [2]

    assert results.checkpoint_now(step=3, epoch=0)
    assert (world.on_disk(), world.in_memory()) == ([3], [])


def test_with_a_full_disk_the_last_state_goes_to_shared_memory(world: World) -> None:
    results = world.results(memory=True)
    (world.root / "result").mkdir()
    (world.root / "result" / "checkpoint").write_text("in the way")
    world.train(results, 1)

    assert results.checkpoint_now(step=2, epoch=0)
    assert world.in_memory() == [2]
    assert world.failed() == [2]
    (world.root / "memory" / "step-000000000002.ckpt").unlink()
    (world.root / "memory").rmdir()
    assert not results.checkpoint_now(step=3, epoch=0)


def test_an_interrupt_saves_at_the_next_step_boundary_and_ends_the_program_there(world: World) -> None:
    results = world.results()
    world.train(results, 1)
    assert results.interrupt()
    with pytest.raises(KeyboardInterrupt):
        results.after_commit(step=2, epoch=0)

    assert world.on_disk() == [2]


def test_an_interrupt_after_the_last_step_ends_the_program_when_the_model_is_saved(world: World) -> None:
    results = world.results()
    world.train(results, 1)
    assert results.interrupt()
    with pytest.raises(KeyboardInterrupt):
        results.finish(step=1, epoch=1)

    assert (world.root / "result" / "model" / "model.pt").exists()


@pytest.mark.parametrize("kept", [True, False])
def test_what_stays_after_the_end(world: World, kept: bool) -> None:
    results = world.results(kept_after_end=kept, freq=1)
    results.after_epoch(step=1, epoch=0)
    results.finish(step=1, epoch=1)

    assert world.on_disk() == ([1] if kept else [])
    weights = torch.load(world.root / "result" / "model" / "model.pt", weights_only=True)
    assert torch.equal(weights["weight"], results.state.model.state_dict()["weight"])


# what is gone on with


def save(folder: Path, step: int, **more: Any) -> None:
    checkpoint.save(folder, SnapshotBuffer().take({"step": step, **more}), step=step)


def test_the_newest_of_shared_memory_and_disk_is_gone_on_with_and_torn_ones_are_noted(world: World) -> None:
    results = world.results(memory=True)
    assert results.newest() is None
    save(world.root / "result" / "checkpoint", 5)
    save(world.root / "memory", 8)
    newest = results.newest()
    assert newest is not None
    assert newest["step"] == 8
    torn = world.root / "memory" / "step-000000000008.ckpt"
    torn.write_bytes(torn.read_bytes()[:-1])
    newest = results.newest()

    assert newest is not None
    assert newest["step"] == 5
    assert [str(torn) in note for note in world.notes()] == [True]


@pytest.mark.parametrize("deep", [True, False], ids=["results", "checkpoints"])
def test_another_jobs_checkpoint_is_used_until_there_is_one_of_its_own(world: World, deep: bool) -> None:
    other = world.root / "other"
    save(other / "checkpoint", 50)
    results = world.results(resume_from=other if deep else other / "checkpoint")
    newest = results.newest()
    assert newest is not None
    assert newest["step"] == 50
    save(world.root / "result" / "checkpoint", 3)
    newest = results.newest()

    assert newest is not None
    assert newest["step"] == 3


def test_a_folder_to_resume_from_without_a_checkpoint_says_what_to_do(world: World) -> None:
    results = world.results(resume_from=world.root / "other")

    with pytest.raises(TrainingError, match=r"no whole checkpoint to resume from in .*other; name the folder"):
        results.newest()


def test_the_digest_that_the_leader_left_is_found_by_the_others(world: World) -> None:
    leader, other = world.results(), world.results()
    leader.finish(step=1, epoch=1)
    assert other.read_digest() == ""
    leader.write_digest("ab" * 32)
    assert other.read_digest() == "ab" * 32
    assert world.results(result=False).read_digest() == ""


@pytest.mark.parametrize(("pause_s", "due_at"), [(0.1, 105.0), (0.4, 108.0)])
def test_a_checkpoint_by_time_costs_at_most_a_twentieth_of_the_time(
    world: World, pause_s: float, due_at: float
) -> None:
    results = world.results(every_s=5.0)
    results.after_commit(step=1, epoch=0)
    [writer] = results._writers()
    world.now = 100.0
    ticking = results.state.extras["ticking"]
    assert isinstance(ticking, Ticking)
    ticking.seconds = pause_s

    writer.take(lambda: results.state.capture(step=2, epoch=0), CommittedStep(step=2, epoch=0))

    assert writer.due_at == pytest.approx(due_at)


def test_a_state_that_who_led_before_did_not_come_to_write_is_kept_by_the_next(world: World) -> None:
    results = world.results(keep_every=2)
    for step, epoch in ((10, 1), (20, 2), (30, 3)):
        results.keep_missing_end(step=step, epoch=epoch)
    results.keep_end(step=40, epoch=3, num_epochs=4)
    folder = world.root / "result" / "checkpoint"
    before = (folder / "epoch-4" / "step-000000000040.ckpt").stat().st_ino
    results.keep_missing_end(step=40, epoch=4)

    assert sorted(path.name for path in folder.glob("*")) == ["epoch-2", "epoch-4"]
    assert (folder / "epoch-4" / "step-000000000040.ckpt").stat().st_ino == before
    found = checkpoint.newest(folder / "epoch-2")
    assert found is not None
    assert (found["step"], found["epoch"]) == (20, 2)
    assert world.saved() == []
    assert not world.results(keep_every=None).newest()
