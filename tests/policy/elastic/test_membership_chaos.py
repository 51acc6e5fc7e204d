"""The coordinator against a model of its tasks under every fault that the model knows, in any order.

Hypothesis looks for short histories and shrinks what it finds. Dice with weights play many more, long and likely ones:
they find what takes several faults in a row.
"""

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.policy.elastic.calm import play_round, settle
from tests.policy.elastic.fake_task import FakeTask, Phase
from tests.policy.elastic.fleet import Fleet

places = st.integers(0, 9)
"""Which one of those there are; counted round."""
HAPPENINGS = (
    *("hear", "tell", "connect", "enter", "agree", "train") * 2,
    *("become_ready", "exit", "notice_exit", "connect_link"),
)


class Chaos(RuleBasedStateMachine):
    """A job's life."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet()

    def _alive(self, place: int) -> FakeTask | None:
        alive = [task for task in self.fleet.tasks.values() if task.alive]
        return alive[place % len(alive)] if alive else None

    @initialize(num_tasks=st.integers(1, 3), num_rounds=st.integers(0, 8))
    def begin(self, num_tasks: int, num_rounds: int) -> None:
        self.fleet.order(num_tasks)
        for _ in range(num_rounds):
            play_round(self.fleet)
            self.fleet.pass_time(0.4)

    # -- what people and the scheduler do ---------------------------------------------------------------------------

    @precondition(lambda self: len(self.fleet.tasks) < 14)
    @rule(num_tasks=st.integers(1, 3))
    def order(self, num_tasks: int) -> None:
        self.fleet.order(num_tasks)

    @precondition(lambda self: self.fleet.wanted)
    @rule(place=places)
    def want_one_fewer(self, place: int) -> None:
        wanted = sorted(self.fleet.wanted)
        self.fleet.want(self.fleet.wanted - {wanted[place % len(wanted)]})

    @precondition(lambda self: self.fleet.wanted)
    @rule()
    def want_none(self) -> None:
        self.fleet.want(())

    @precondition(lambda self: self.fleet.wanted and len(self.fleet.tasks) < 14)
    @rule()
    def replace_all(self) -> None:
        old = self.fleet.wanted
        self.fleet.want(frozenset(self.fleet.order(2)) or old)

    # -- what happens without faults --------------------------------------------------------------------------------

    @precondition(lambda self: self.fleet.server is not None)
    @rule(seconds=st.sampled_from([0.0, 0.1, 0.4, 2.0]), num_rounds=st.integers(1, 4))
    def calm(self, seconds: float, num_rounds: int) -> None:
        """Everything goes well for a moment."""
        for _ in range(num_rounds):
            play_round(self.fleet)
            self.fleet.pass_time(seconds)

    @rule(seconds=st.sampled_from([0.1, 0.4, 2.0, 11.0]))
    def pass_time(self, seconds: float) -> None:
        self.fleet.pass_time(seconds)

    @rule(happenings=st.lists(st.tuples(st.sampled_from(HAPPENINGS), places), min_size=1, max_size=12))
    def go_on(self, happenings: list[tuple[str, int]]) -> None:
        """Single things happen in some order, each to one of those it can happen to."""
        for name, place in happenings:
            getattr(self, f"_{name}")(place)

    def _hear(self, place: int) -> None:
        if talking := [task for task in self.fleet.tasks.values() if task.outbox and task.linked]:
            self.fleet.hear(talking[place % len(talking)])

    def _tell(self, place: int) -> None:
        if told := [task for task in self.fleet.tasks.values() if task.inbox and task.alive]:
            self.fleet.tell(told[place % len(told)])

    def _become_ready(self, place: int) -> None:
        if building := [t for t in self.fleet.tasks.values() if t.alive and t.phase is Phase.BUILDING]:
            self.fleet.become_ready(building[place % len(building)])

    def _connect(self, place: int) -> None:
        able = [
            (task, number)
            for task in self.fleet.tasks.values()
            for number in sorted(task.connecting)
            if task.alive and self.fleet.can_connect(task, number)
        ]
        if able:
            self.fleet.connect(*able[place % len(able)])

    def _enter(self, place: int) -> None:
        if task := self._alive(place):
            self.fleet.notice_loss(task)
            self.fleet.enter(task)

    def _agree(self, place: int) -> None:
        for number in list(self.fleet.forms):
            self.fleet.agree(number)

    def _train(self, place: int) -> None:
        for number in list(self.fleet.forms):
            self.fleet.train(number)

    def _exit(self, place: int) -> None:
        if leaving := [t for t in self.fleet.tasks.values() if t.alive and t.phase is Phase.LEAVING]:
            self.fleet.exit(leaving[place % len(leaving)])

    def _notice_exit(self, place: int) -> None:
        self.fleet.notice_exit()

    def _connect_link(self, place: int) -> None:
        if away := [task for task in self.fleet.tasks.values() if task.alive and not task.linked]:
            self.fleet.connect_link(away[place % len(away)])

    @rule()
    def save(self) -> None:
        self.fleet.save()

    # -- faults -----------------------------------------------------------------------------------------------------

    @rule(place=places)
    def kill(self, place: int) -> None:
        if task := self._alive(place):
            self.fleet.kill(task)

    @rule(place=places)
    def kill_a_newcomer(self, place: int) -> None:
        newcomers = [t for t in self.fleet.tasks.values() if t.alive and t.step is None and t.forms]
        if newcomers:
            self.fleet.kill(newcomers[place % len(newcomers)])

    @rule(place=places)
    def fail_collective(self, place: int) -> None:
        if task := self._alive(place):
            self.fleet.fail_collective(task)

    @rule(place=places)
    def fail_to_connect(self, place: int) -> None:
        failing = [
            (task, number)
            for task in self.fleet.tasks.values()
            for number in sorted(task.connecting)
            if task.alive and not (self.fleet.can_connect(task, number) and not self.fleet.is_broken(number))
        ]
        if failing:
            self.fleet.fail_to_connect(*failing[place % len(failing)])

    @rule(place=places, mask=st.integers(0, 15), joining=st.booleans())
    def die_in_a_collective(self, place: int, mask: int, joining: bool) -> None:
        """A member dies while all are in a collective, which some of the others finish nevertheless."""
        phase = Phase.JOINING if joining else Phase.TRAINING
        for number in list(self.fleet.forms):
            if members := self.fleet.together(number, phase):
                victim = members[place % len(members)]
                losers = [task.id for i, task in enumerate(members) if mask >> i & 1]
                act = self.fleet.agree if joining else self.fleet.train
                act(number, victim=victim, losers=losers)
                return

    @rule(place=places, num_lost=st.integers(0, 2))
    def cut(self, place: int, num_lost: int) -> None:
        if task := self._alive(place):
            self.fleet.cut(task, num_lost)

    @rule(place=places)
    def hear_and_cut(self, place: int) -> None:
        """A message arrives, but its sender does not know and says it again after its next hello."""
        if (task := self._alive(place)) and task.outbox:
            self.fleet.hear(task, keep=True)
            self.fleet.cut(task)

    @precondition(lambda self: self.fleet.server is not None)
    @rule(num_lost=st.integers(0, 2), place=places)
    def crash_server(self, num_lost: int, place: int) -> None:
        if task := self._alive(place):
            self.fleet.cut(task, num_lost)
        self.fleet.crash_server()

    @precondition(lambda self: self.fleet.server is not None)
    @rule()
    def crash_before_sending(self) -> None:
        self.fleet.crash_before_sending = True

    @precondition(lambda self: self.fleet.server is None)
    @rule()
    def restart_server(self) -> None:
        self.fleet.restart_server()

    @precondition(lambda self: self.fleet.server is not None)
    @rule(num_lost=st.integers(0, 2), place=places)
    def crash_and_restart_server(self, num_lost: int, place: int) -> None:
        self.crash_server(num_lost, place)
        self.fleet.restart_server()

    def teardown(self) -> None:
        settle(self.fleet)


CALM_DOWN = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def test_any_history_of_faults_settles_and_loses_nothing() -> None:
    run_state_machine_as_test(
        Chaos,
        settings=settings(max_examples=150, stateful_step_count=30, suppress_health_check=CALM_DOWN),
    )


DICE: dict[str, tuple[float, Callable[[random.Random], dict[str, object]]]] = {
    "order": (1.0, lambda dice: {"num_tasks": dice.randint(1, 3)}),
    "want_one_fewer": (1.5, lambda dice: {"place": dice.randrange(10)}),
    "want_none": (0.3, lambda dice: {}),
    "replace_all": (0.4, lambda dice: {}),
    "calm": (1.0, lambda dice: {"seconds": dice.choice([0.0, 0.1, 0.4, 2.0]), "num_rounds": dice.randint(1, 4)}),
    "pass_time": (1.0, lambda dice: {"seconds": dice.choice([0.1, 0.4, 2.0, 11.0])}),
    "go_on": (8.0, lambda dice: {"happenings": [(dice.choice(HAPPENINGS), dice.randrange(10)) for _ in range(6)]}),
    "save": (0.3, lambda dice: {}),
    "kill": (0.6, lambda dice: {"place": dice.randrange(10)}),
    "kill_a_newcomer": (0.3, lambda dice: {"place": dice.randrange(10)}),
    "fail_collective": (0.4, lambda dice: {"place": dice.randrange(10)}),
    "fail_to_connect": (0.4, lambda dice: {"place": dice.randrange(10)}),
    "die_in_a_collective": (
        0.7,
        lambda dice: {"place": dice.randrange(10), "mask": dice.randrange(16), "joining": dice.random() < 0.5},
    ),
    "cut": (0.8, lambda dice: {"place": dice.randrange(10), "num_lost": dice.randint(0, 2)}),
    "hear_and_cut": (0.4, lambda dice: {"place": dice.randrange(10)}),
    "crash_server": (0.3, lambda dice: {"place": dice.randrange(10), "num_lost": dice.randint(0, 2)}),
    "crash_before_sending": (0.3, lambda dice: {}),
    "restart_server": (1.5, lambda dice: {}),
    "crash_and_restart_server": (0.3, lambda dice: {"place": dice.randrange(10), "num_lost": dice.randint(0, 2)}),
}
"""How often each rule is played, and with what."""
NEEDS_SERVER = ("calm", "crash_server", "crash_before_sending", "crash_and_restart_server")


def may_play(chaos: Chaos, name: str) -> bool:
    """Tell what the preconditions of the rules tell Hypothesis."""
    fleet = chaos.fleet
    if name in NEEDS_SERVER:
        return fleet.server is not None
    if name == "restart_server":
        return fleet.server is None
    if name in ("want_one_fewer", "want_none", "replace_all") and not fleet.wanted:
        return False
    return name not in ("order", "replace_all") or len(fleet.tasks) < 20


def play(seed: int, max_rules: int) -> None:
    """Play one history; the error of one that goes wrong lists it."""
    dice, chaos = random.Random(seed), Chaos()
    names, weights = list(DICE), [weight for weight, _ in DICE.values()]
    history: list[tuple[str, dict[str, object]]] = [
        ("begin", {"num_tasks": dice.randint(1, 3), "num_rounds": dice.randrange(9)})
    ]
    try:
        chaos.begin(**history[0][1])
        for _ in range(dice.randrange(max_rules)):
            (name,) = dice.choices(names, weights)
            if may_play(chaos, name):
                history.append((name, DICE[name][1](dice)))
                getattr(chaos, name)(**history[-1][1])
        chaos.teardown()
    except AssertionError as error:
        error.add_note(f"seed {seed}:\n" + "\n".join(f"{name} {arguments}" for name, arguments in history))
        raise


def test_likely_histories_settle_and_lose_nothing() -> None:
    for seed in range(1500):
        play(seed, max_rules=80)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_long_histories_settle_and_lose_nothing() -> None:
    for seed in range(1_000_000, 1_004_000):
        play(seed, max_rules=100)
