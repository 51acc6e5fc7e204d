"""Tasks of different speed: the slow ones get fewer virtual workers, and the result is the same bits."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.crew import run_in
from tests.train.test_elastic import BATCH, build, check, data, play, undisturbed
from tests.train.world import Crash, World

from pliant.core.job import TaskId
from pliant.core.link import Note, Report
from pliant.train import Run
from pliant.train.balance import EVERY_S, FIRST_S, SpeedBalance
from pliant.train.context import TRAIN_CONTEXT

pytestmark = pytest.mark.timeout(180)

CPU = torch.device("cpu")
SLOW_S = 0.004
"""What a slow task needs for a part more than the others."""


# -- one task after the other, on a clock of the test's -------------------------------------------------------------


@dataclass(slots=True)
class Tasks:
    """Tasks that compute their parts at given speeds, and then wait for the slowest."""

    seconds: list[float]
    rest_s: float = 0.0
    now: float = 0.0
    members: list[SpeedBalance] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.members = [self._new() for _ in self.seconds]

    def _new(self) -> SpeedBalance:
        return SpeedBalance(clock=lambda: self.now, virtual_workers=8, is_enabled=True)

    def meet(self) -> None:
        table = [member.row() for member in self.members]
        for member in self.members:
            member.begin_generation(table)

    def come(self, seconds: float) -> None:
        self.members.append(self._new())
        self.seconds.append(seconds)

    def step(self) -> None:
        """Play a step; after it the members compare their times if the first one wants to."""
        begun_at, shares = self.now, self.shares
        computed = [share * of_one for share, of_one in zip(shares, self.seconds, strict=True)]
        for rank, member in enumerate(self.members):
            self.now = begun_at
            member.begin_step(CPU, num_parts=shares[rank])
            self.now += computed[rank]
            member.end_computing()
        self.now = begun_at + max(computed) + self.rest_s
        asks = self.members[0].is_due()
        for member in self.members:
            member.end_step()
        if asks:
            table = [member.row() for member in self.members]
            for member in self.members:
                member.divide(table)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.step()

    @property
    def shares(self) -> tuple[int, ...]:
        (shares,) = {member.shares for member in self.members}
        size = len(self.members)
        return shares or tuple(8 // size + (rank < 8 % size) for rank in range(size))


def test_speeds_are_compared_ten_seconds_after_tasks_have_met_and_then_once_a_minute() -> None:
    tasks = Tasks([0.1, 0.3])
    tasks.meet()
    tasks.run(FIRST_S - 1)
    assert tasks.shares == (4, 4)
    tasks.run(2)
    assert tasks.shares == (6, 2)
    tasks.seconds.reverse()
    tasks.run(EVERY_S - 5)
    assert tasks.shares == (6, 2)
    tasks.run(10)
    assert tasks.shares == (2, 6)


def test_tasks_that_are_about_as_fast_share_evenly() -> None:
    tasks = Tasks([0.1, 0.109])
    tasks.meet()
    tasks.run(100)
    assert [member.shares for member in tasks.members] == [(), ()]


def test_a_slow_step_now_and_then_is_no_slow_task() -> None:
    tasks = Tasks([0.1, 0.1])
    tasks.meet()
    for number in range(400):
        tasks.seconds[1] = 5.0 if number % 7 == 0 else 0.1
        tasks.step()
    assert tasks.shares == (4, 4)


def test_a_task_that_is_slow_for_a_while_keeps_its_share() -> None:
    tasks = Tasks([0.1, 0.1])
    tasks.meet()
    tasks.run(2 * EVERY_S)
    tasks.seconds[1] = 0.2
    tasks.run(EVERY_S / 3)
    tasks.seconds[1] = 0.1
    tasks.run(2 * EVERY_S)
    assert {member.shares for member in tasks.members} == {()}


def test_a_step_that_is_mostly_an_exchange_is_left_as_it_is() -> None:
    tasks = Tasks([0.1, 0.2], rest_s=0.5)
    tasks.meet()
    tasks.run(30)
    assert tasks.shares == (4, 4)


def test_who_stays_keeps_its_speed_and_a_newcomer_counts_as_usual() -> None:
    tasks = Tasks([0.1, 0.3])
    tasks.meet()
    tasks.run(20)
    assert list(tasks.shares) == [6, 2]
    tasks.come(0.2)
    tasks.meet()
    assert list(tasks.shares) == [5, 1, 2]
    assert {member.is_due() for member in tasks.members} == {False}


def test_who_trains_alone_measures_nothing() -> None:
    tasks = Tasks([0.1])
    tasks.meet()
    tasks.run(100)
    assert tasks.members[0].row() == [0.0, 0.0]


def test_more_members_than_virtual_workers_share_evenly() -> None:
    tasks = Tasks([0.1 + 0.1 * rank for rank in range(9)])
    tasks.meet()
    tasks.run(100)
    assert tasks.members[0].shares == ()


def test_without_the_option_nothing_travels_with_the_gradients() -> None:
    assert (SpeedBalance().num_elements, SpeedBalance(is_enabled=True).num_elements) == (0, 1)


# -- trainings ------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Impatient(SpeedBalance):
    """Compares the times of tasks after every step, once there are some."""

    dies: Callable[[], None] = lambda: None
    """Called when it is about to tell its times."""

    def row(self) -> list[float]:
        self.dies()
        return SpeedBalance.row(self)


def impatient(run: Run, dies: Callable[[], None] = lambda: None) -> None:
    """Let a run compare speeds as often as it can."""
    before = run._engine.balance
    run._engine.balance = Impatient(
        clock=before.clock,
        virtual_workers=before.virtual_workers,
        is_enabled=before.is_enabled,
        first_s=0.0,
        every_s=0.0,
        dies=dies,
    )


def train_as_one_of(speeds: list[float]) -> tuple[str, tuple[int, ...], int]:
    """Return what the training came to, the last shares, and how many parts this task computed in the last epoch."""
    me = int(TRAIN_CONTEXT.get().membership.task_id.rpartition(".")[2])
    TRAIN_CONTEXT.get().balance = "speed"
    torch.default_generator.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2))
    run = Run(model, torch.optim.SGD(model.parameters(), lr=0.05), data(), batch_size=BATCH)
    impatient(run)
    for _ in run.epochs(6):
        num_parts = 0
        for x, y in run:
            time.sleep(speeds[me])
            num_parts += 1
            run.step(torch.nn.functional.cross_entropy(model(x), y))
    return run.digest(), run._engine.balance.shares, num_parts


def test_the_slow_task_computes_less_and_the_bits_are_the_same() -> None:
    [(alone, _, _)] = run_in(1, train_as_one_of, speeds=[0.0])

    (first, shares, many), (second, same, few) = run_in(2, train_as_one_of, speeds=[SLOW_S, 5 * SLOW_S])

    assert first == second == alone
    assert shares == same
    assert shares[0] > shares[1]
    assert many > 1.5 * few


def test_a_fast_training_has_nothing_to_share_and_says_so(tmp_path: Path) -> None:
    def fast(_world: World, _task_id: TaskId) -> None:
        model, optimizer = build()
        run = Run(model, optimizer, data(), batch_size=BATCH, mode="fast")
        assert run._engine.balance.num_elements == 0
        for _ in run.epochs(1):
            for x, y in run:
                run.step(torch.nn.functional.cross_entropy(model(x), y))

    world = World(fast, tmp_path, balance="speed")
    world.resize(1)
    world.wait_for_end()
    assert any("fast mode" in message.message for _, message in world.heard if isinstance(message, Note))


def script(num_epochs: int, done: threading.Event, dies: Callable[[World, TaskId], None] | None = None) -> Any:
    """Every other task is slow; the second half takes long until `done`, so that all changes fall into the training."""

    def train(world: World, task_id: TaskId) -> None:
        is_slow = int(task_id.rpartition(".")[2]) % 2 == 0
        model, optimizer = build()
        run = Run(model, optimizer, data(), batch_size=BATCH)
        impatient(run, (lambda: None) if dies is None else partial(dies, world, task_id))
        for epoch in run.epochs(num_epochs):
            for x, y in run:
                if dies is None:
                    world.maybe_crash(task_id)
                time.sleep(SLOW_S if is_slow else 0.0)
                if epoch >= num_epochs // 2:
                    done.wait(0.1)
                run.step(torch.nn.functional.cross_entropy(model(x), y))

    return train


def check_bits(world: World, num_epochs: int) -> None:
    """All steps once, all samples once an epoch, and the bits of a run that nothing has disturbed."""
    check(world, num_epochs)
    model = torch.load(world.result_dir / "model" / "model.pt", weights_only=True)
    expected, _ = undisturbed(num_epochs)
    assert all(torch.equal(model[name], value) for name, value in expected.items())


def reported_shares(world: World) -> set[tuple[int, ...]]:
    with world.changed:
        return {message.progress.shares for _, message in world.heard if isinstance(message, Report)}


def test_members_that_come_and_go_and_die_share_by_speed_and_lose_nothing(tmp_path: Path) -> None:
    done = threading.Event()
    world = World(script(20, done), tmp_path, balance="speed")
    world.resize(2)
    world.wait(lambda: any(len(shares) == 2 for shares in reported_shares(world)), "two share by their speed")
    world.resize(4)
    world.wait(lambda: any(len(shares) == 4 for shares in reported_shares(world)), "four share by their speed")
    world.kill(world.membership.active[0])
    world.wait_for_size(3)
    world.resize(2)
    world.wait_for_size(2)
    done.set()
    world.wait_for_end()
    check_bits(world, 20)


@pytest.mark.parametrize("victim", [0, 1], ids=["the leader", "the other"])
def test_who_dies_between_a_step_and_the_new_shares_costs_at_most_one_step(tmp_path: Path, victim: int) -> None:
    done = threading.Event()

    def die(world: World, task_id: TaskId) -> None:
        if task_id in world.doomed:
            raise Crash

    world = World(script(12, done, die), tmp_path, balance="speed")
    world.resize(3)
    world.wait(lambda: any(len(shares) == 3 for shares in reported_shares(world)), "three share by their speed")
    world.kill(world.membership.active[victim])
    world.wait_for_size(2)
    done.set()
    world.wait_for_end()
    check_bits(world, 12)
    assert sum(activated.redone_steps for activated in world.activated) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_resizes_and_losses_with_shares_by_speed_come_to_the_bits_of_an_undisturbed_run(
    tmp_path: Path, seed: int
) -> None:
    done = threading.Event()
    world = World(script(20, done), tmp_path, balance="speed")
    world.resize(2)
    world.wait(lambda: any(reported_shares(world)), "two share by their speed")
    done.set()
    play(world, random.Random(seed))
    check_bits(world, 20)
