"""A fleet without faults: everything happens that can, until all of it has come to rest."""

from tests.policy.elastic.fake_task import FakeTask, Phase
from tests.policy.elastic.fleet import Fleet


def play_round(fleet: Fleet, *, patient: bool = True) -> None:
    """Let everything happen once that happens without faults; with `patient`, nobody gives up connecting."""
    fleet.restart_server()
    for task in list(fleet.tasks.values()):
        fleet.connect_link(task)
        fleet.become_ready(task)
        while task.outbox and task.linked:
            fleet.hear(task)
        fleet.exit(task)
    for _ in range(len(fleet.exits)):
        fleet.notice_exit()
    for task in fleet.tasks.values():
        while task.inbox:
            fleet.tell(task)
    for task in fleet.tasks.values():
        _try_to_connect(fleet, task, patient=patient)
    for task in fleet.tasks.values():
        fleet.notice_loss(task)
        fleet.enter(task)
    for number in list(fleet.forms):
        fleet.agree(number)
        fleet.train(number)


def _try_to_connect(fleet: Fleet, task: FakeTask, *, patient: bool) -> None:
    for number in sorted(task.connecting) if task.alive else ():
        if fleet.can_connect(task, number):
            fleet.connect(task, number)
        elif not patient or fleet.is_broken(number):
            fleet.fail_to_connect(task, number)


def is_settled(fleet: Fleet) -> bool:
    """Those who are wanted train together, the others are gone, and the server knows."""
    alive = {task.id for task in fleet.tasks.values() if task.alive}
    if fleet.server is None or fleet.exits or alive != fleet.wanted:
        return False
    if not alive:
        return True
    numbers = {task.here for task in fleet.tasks.values() if task.alive}
    trains = len(numbers) == 1 and bool(fleet.together(next(iter(numbers)), Phase.TRAINING))
    return trains and set(fleet.server.active) == alive and fleet.server.forming is None


def settle(fleet: Fleet, num_rounds: int = 60) -> None:
    """Stop all faults and let time pass: everything must come to rest."""
    fleet.crash_before_sending = False
    for number in range(num_rounds):
        play_round(fleet, patient=number % 10 != 9)
        if is_settled(fleet):
            return
        fleet.pass_time(1.0)
    raise AssertionError(f"not settled: {fleet.server}\n{list(fleet.tasks.values())}\nwanted {fleet.wanted}")
