"""A state that is copied while a step is computed: the same bits, and what dies in between costs that step alone."""

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.test_elastic import build, samples_by_epoch
from tests.train.world import Crash, World
from torch.utils.data import TensorDataset

from pliant.core.job import Mode, TaskId
from pliant.core.link import Dismiss, Switched
from pliant.train import Run, agreement, state_copies
from pliant.train.errors import GenerationLost
from pliant.train.group.collectives import Group
from pliant.train.group.membership import TaskMembership
from pliant.train.state import handout, pytree
from pliant.train.state_copies import StateCopies
from pliant.train.sum.memory import SumMemory

pytestmark = pytest.mark.timeout(180)

NUM_STEPS, BATCH = 160, 16
"""All in one epoch: at its end everybody would wait."""
NUM_FAST = 60
EARLY_S, LATE_S = 0.002, 0.2
Spring = Callable[[World, TaskId], None]


@pytest.fixture(autouse=True)
def _copies_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no step is worth to wait with for them."""
    monkeypatch.setattr(agreement, "COPIED_PER_S", 1e-9)


@pytest.fixture
def handouts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The ranks that got a state beside a step, one entry for each donor's handout."""
    found: list[tuple[int, ...]] = []
    begin = handout.Handout.__init__

    def note(self: handout.Handout, *args: Any, **options: Any) -> None:
        found.append(tuple(options["receivers"]))
        begin(self, *args, **options)

    monkeypatch.setattr(handout.Handout, "__init__", note)
    return found


class Trap:
    """An object in the state; what is done when a task takes it over may be the end of that task."""

    def __init__(self, world: World | None, task_id: TaskId, spring: Spring = lambda _world, _task: None) -> None:
        self._world, self._task_id, self._spring = world, task_id, spring

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, _state: dict[str, Any]) -> None:
        if self._world is not None:
            self._spring(self._world, self._task_id)


def renorm(module: torch.nn.Module, _inputs: object) -> None:
    """Change the weights in the forward pass."""
    assert isinstance(module.weight, torch.Tensor)
    module.weight.data.clamp_(-0.2, 0.2)


def train(
    world: World | None, task_id: TaskId, done: threading.Event, mode: Mode, spring: Spring, renorms: bool
) -> str:
    """Train slower and slower until all changes are done; return the SHA-256 of what this task ends with."""
    model, optimizer = build()
    if renorms:
        model.get_submodule("0").register_forward_pre_hook(renorm)
    x = torch.randn(NUM_STEPS * BATCH, 10, generator=torch.Generator().manual_seed(7))
    run = Run(
        model,
        optimizer,
        TensorDataset(x, (x[:, 0] + x[:, 1] > 0).long()),
        batch_size=BATCH,
        mode=mode,
        virtual_workers=8,
        state={"trap": Trap(world, task_id, spring)},
    )
    for _ in run.epochs(1):
        for x, y in run:
            if world is not None:
                world.maybe_crash(task_id)
                done.wait(EARLY_S if run.num_steps_done < NUM_FAST else LATE_S)
            run.step(torch.nn.functional.cross_entropy(model(x), y))
    return pytree.digest([run.digest(), dict(run.last)])


def has_committed_more(member: TaskMembership, num_steps: int) -> bool:
    return (member.pulse().step or 0) > num_steps


class Play:
    """One training and its changes."""

    def __init__(
        self, folder: Path, *, mode: Mode = "exact", spring: Spring = lambda _w, _t: None, renorms: bool = False
    ) -> None:
        self.done = threading.Event()
        self.found: dict[TaskId, str] = {}
        self._options = (mode, spring, renorms)
        self.world = World(self._script, folder)

    def _script(self, world: World, task_id: TaskId) -> None:
        self.found[task_id] = train(world, task_id, self.done, *self._options)

    def resize(self, *sizes: int) -> None:
        """Change the number of tasks, each time once a few steps were done with those before."""
        for size in sizes:
            self.world.resize(size)
            self.world.wait_for_size(size)
            first = self.world.actors[self.world.membership.active[0]].membership
            beyond = (first.pulse().step or 0) + 3
            self.world.wait(partial(has_committed_more, first, beyond), "a few steps")

    def end(self) -> None:
        """Let it end, and see that every step used every sample of its own once and all tasks have the same state."""
        self.done.set()
        self.world.wait_for_end()
        epochs, steps = samples_by_epoch(self.world.result_dir)
        assert steps == set(range(NUM_STEPS))
        assert sorted(epochs[0]) == list(range(NUM_STEPS * BATCH))
        assert len(set(self.found.values())) == 1

    @property
    def redone(self) -> int:
        return sum(change.redone_steps for change in self.world.activated)


def alone(*, renorms: bool = False) -> str:
    done = threading.Event()
    done.set()
    return train(None, TaskId("alone"), done, "exact", lambda _w, _t: None, renorms)


def test_newcomers_end_with_the_bits_of_one_that_trained_alone(tmp_path: Path, handouts: list[tuple[int, ...]]) -> None:
    play = Play(tmp_path)
    play.resize(1, 4, 2, 3, 1, 2)
    play.end()

    assert set(play.found.values()) == {alone()}
    assert sorted(itertools.chain(*handouts)) == [1, 1, 2, 2, 3], "1 to 4, 2 to 3, and 1 to 2"
    assert all(message.redone_steps == 0 for _, message in play.world.heard if isinstance(message, Switched))


def test_memory_for_a_generation_is_there_before_it_is_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int, int]] = []
    spares: list[int] = []
    prepare, receive = SumMemory.prepare, pytree.receive

    def note_prepare(self: SumMemory, *, num_sets: int, num_turns: int) -> None:
        prepare(self, num_sets=num_sets, num_turns=num_turns)
        made.append((num_sets, num_turns))

    def note_receive(group: Group, source: int, spare: Sequence[torch.Tensor] = ()) -> Any:
        assert len(made) >= group.size, "all members have made theirs"
        spares.append(len(spare))
        return receive(group, source, spare)

    monkeypatch.setattr(SumMemory, "prepare", note_prepare)
    monkeypatch.setattr(pytree, "receive", note_receive)
    play = Play(tmp_path)
    play.resize(1, 4)
    play.end()

    assert (1, 1) in made, "of the generation of four, which receives from all"
    assert len(spares) >= 3
    assert all(spares), "each newcomer has memory for the parameters"


def test_memory_is_made_for_a_state_that_comes_and_is_not_very_large(monkeypatch: pytest.MonkeyPatch) -> None:
    spares: list[int] = []
    monkeypatch.setattr(pytree, "receive", lambda _group, _source, spare: spares.append(len(spare)))
    nobody: Any = None
    copies = StateCopies(nobody, [torch.nn.Parameter(torch.zeros(3))], time.monotonic)

    copies.prepare()
    copies.receive(nobody, 0)
    copies.prepare()
    copies.begin_step(num_parts=1)
    copies.receive(nobody, 0)

    monkeypatch.setattr(state_copies, "MAX_PREPARED_BYTES", 11)  # of the 12 that it would take
    copies.prepare()
    copies.receive(nobody, 0)

    assert spares == [1, 0, 0]


def test_in_fast_mode_they_rest_as_well(tmp_path: Path, handouts: list[tuple[int, ...]]) -> None:
    play = Play(tmp_path, mode="fast")
    play.resize(1, 5)
    play.end()

    assert sorted(itertools.chain(*handouts)) == [1, 2, 3, 4]
    assert len(play.found) == 5


def test_where_a_forward_pass_changes_parameters_all_wait(tmp_path: Path, handouts: list[tuple[int, ...]]) -> None:
    play = Play(tmp_path, renorms=True)
    play.resize(1, 3)
    play.end()

    assert handouts == []
    assert set(play.found.values()) == {alone(renorms=True)}


def test_a_newcomer_that_dies_while_it_copies_costs_the_step(tmp_path: Path, handouts: list[tuple[int, ...]]) -> None:
    dead: list[TaskId] = []

    def spring(world: World, task_id: TaskId) -> None:
        if not dead and world.activated:
            dead.append(task_id)
            world.kill(task_id)
            raise Crash

    play = Play(tmp_path, spring=spring)
    play.resize(1)
    play.world.resize(2)
    play.world.wait(lambda: bool(dead), "the newcomer dies")
    play.world.resize(3)
    play.world.wait(lambda: len(play.world.membership.active) >= 2, "others train")
    play.end()

    assert handouts
    assert play.redone <= 1
    assert set(play.found.values()) == {alone()}


def test_a_donor_that_dies_while_it_sends_costs_the_step(
    tmp_path: Path, handouts: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    victims: list[TaskId] = []
    send = pytree.send_flat

    def die(channels: Any, skeleton: str, tensors: Any, to: int) -> None:
        if not victims:
            victims.append(play.world.membership.active[0])
            play.world.kill(victims[0])
            membership = play.world.actors[victims[0]].membership
            membership.deliver(Dismiss(reason="killed"))  # its thread ends also where it waits for who will never come
            membership.close()
        send(channels, skeleton, tensors, to)

    play = Play(tmp_path)
    play.resize(2)
    monkeypatch.setattr(pytree, "send_flat", die)
    play.world.resize(4)
    play.world.wait(lambda: bool(victims), "a donor dies")
    play.world.wait(lambda: victims[0] not in play.world.membership.active, "the others train without it")
    play.end()

    assert play.redone <= 1
    assert set(play.found.values()) == {alone()}


def test_what_cannot_be_sent_ends_the_generation_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []
    send = pytree.send_flat

    def fail(channels: Any, skeleton: str, tensors: Any, to: int) -> None:
        if not failed:
            failed.append(to)
            raise GenerationLost("member 1 is gone: no route to host")
        send(channels, skeleton, tensors, to)

    monkeypatch.setattr(pytree, "send_flat", fail)
    play = Play(tmp_path)
    play.resize(1, 2)
    play.end()

    assert failed
    assert set(play.found.values()) == {alone()}
