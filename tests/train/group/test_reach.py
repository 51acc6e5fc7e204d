"""Whether the machines of peers can be reached, and when the server is told that they cannot."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
import torch

from pliant.core.job import JobId, TaskId
from pliant.core.link import Abandon, Form, FromTask, Unreachable
from pliant.train.errors import GenerationLost
from pliant.train.group import reach
from pliant.train.group.membership import TaskMembership
from pliant.train.group.reach import PeerWatch, Waits, other_machines, unreachable
from pliant.train.group.rendezvous import RendezvousServer

ME, PEER, THIRD = TaskId("job-1.1"), TaskId("job-1.2"), TaskId("job-1.3")
HERE, THERE = "127.0.0.1", "127.0.0.2"
KEY = b"the key of job-1"


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening(sockets: ExitStack, backlog: int = 8) -> tuple[str, int]:
    """Return where a process listens that stands still: it accepts nobody."""
    listener = sockets.enter_context(socket.create_server((THERE, 0), backlog=backlog))
    address: tuple[str, int] = listener.getsockname()
    return address


def silent(sockets: ExitStack) -> tuple[str, int]:
    """Return where the kernel answers nobody, as if a firewall lost all that is sent there: a full queue."""
    address = listening(sockets, backlog=0)
    for _ in range(8):
        one = sockets.enter_context(socket.socket())
        one.setblocking(False)
        one.connect_ex(address)
    return address


def refusing() -> tuple[str, int]:
    with socket.create_server((THERE, 0)) as listener:
        address: tuple[str, int] = listener.getsockname()
    return address


def test_a_process_that_stands_still_is_reached(sockets: ExitStack) -> None:
    assert unreachable({PEER: listening(sockets)}, 5.0) == ()


def test_one_where_nobody_answers_or_that_refuses_is_not(sockets: ExitStack) -> None:
    addresses = {ME: listening(sockets), PEER: silent(sockets), THIRD: refusing()}
    began = time.monotonic()
    assert unreachable(addresses, 0.4) == (PEER, THIRD)
    assert 0.4 <= time.monotonic() - began < 5.0, "all are tried at once"


def test_a_machine_that_cannot_connect_for_its_own_reasons_blames_nobody() -> None:
    assert unreachable({PEER: ("no such name.invalid", 1)}, 5.0) == ()
    assert unreachable({}, 5.0) == ()


def test_one_task_of_each_other_machine_is_tried() -> None:
    members = tuple(TaskId(f"job-1.{number}") for number in range(1, 6))
    addresses = (("a", 1), ("b", 2), ("b", 3), ("a", 4), ("", 0))
    form = Form(generation=1, members=members, host="a", port=1, addresses=addresses)
    assert other_machines(form, "a") == {"job-1.2": ("b", 2)}
    assert other_machines(form, "c") == {"job-1.1": ("a", 1), "job-1.2": ("b", 2)}
    assert other_machines(Form(generation=1, members=members, host="a", port=1), "c") == {}


class Watched:
    """A watch over what a test says that is waited for."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.waits: Waits = {}
        self.said: list[tuple[TaskId, ...]] = []
        self.watch = PeerWatch(
            host=HERE, waits=lambda: self.waits, send=lambda message: self.said.append(message.peers)
        )

    def wait(self, *waits: object) -> None:
        self.waits = dict.fromkeys(waits, self.form)


def test_only_a_long_wait_is_looked_into_and_an_end_of_it_is_said() -> None:
    world = Watched(Form(generation=1, members=(ME, PEER), host="", port=0, addresses=((HERE, 1), refusing())))
    for number in range(10):  # one short wait after the other
        world.wait((1, number))
        world.watch.look(float(number))
    assert world.said == []

    world.wait((1, 10))
    for now in (10.0, 11.9):
        world.watch.look(now)
    assert world.said == []
    for now in (12.0, 12.5, 14.0, 14.5, 17.0):
        world.watch.look(now)
    assert world.said == [(PEER,)] * 3, "at once, and every few seconds"

    world.wait()
    world.watch.look(17.5)
    world.watch.look(18.0)
    assert world.said == [(PEER,)] * 3 + [()]


def test_nothing_is_said_of_those_that_can_be_reached(sockets: ExitStack) -> None:
    world = Watched(Form(generation=1, members=(ME, PEER), host="", port=0, addresses=((HERE, 1), listening(sockets))))
    world.wait("connects")
    for now in range(20):
        world.watch.look(float(now))
    assert world.said == []


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited 20 s"
        time.sleep(0.01)  # between two looks at the condition


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"PATIENCE_S": 0.1, "_LOOK_S": 0.02, "_AGAIN_S": 0.05}.items():
        monkeypatch.setattr(reach, name, seconds)


def member(task_id: TaskId, host: str, said: list[FromTask]) -> TaskMembership:
    return TaskMembership(job_id=JobId("job-1"), task_id=task_id, pid=7, host=host, key=KEY, send=said.append)


@pytest.mark.usefixtures("hurried")
def test_a_task_that_waits_in_a_sum_says_whom_it_does_not_reach() -> None:
    said: list[FromTask] = []
    rendezvous = RendezvousServer(HERE, key=KEY)
    addresses = ((HERE, rendezvous.port), refusing())
    form = Form(generation=1, members=(ME, PEER), host=HERE, port=rendezvous.port, addresses=addresses)
    memberships = [member(ME, HERE, said), member(PEER, THERE, [])]
    for one in memberships:
        one.deliver(form)
    group = memberships[0].wait_for_generation()
    until(lambda: memberships[1].upcoming() is not None)
    said.clear()  # connecting may have taken a while on a busy machine

    def add() -> None:
        with suppress(GenerationLost):
            group.all_reduce([torch.ones(1)], is_lost=memberships[0].is_lost)

    waiting = threading.Thread(target=add, daemon=True)
    waiting.start()
    until(lambda: said[:2] == [Unreachable(peers=(PEER,))] * 2)
    memberships[0].deliver(Abandon(generation=1, reason="the peer is left out"))
    waiting.join(20.0)
    assert not waiting.is_alive()
    until(lambda: said[-1] == Unreachable(peers=()))
    for one in memberships:
        one.close()
    rendezvous.close()


@pytest.mark.usefixtures("hurried")
def test_a_task_that_does_not_connect_says_whom_it_does_not_reach() -> None:
    said: list[FromTask] = []
    rendezvous = RendezvousServer(HERE, key=KEY)
    membership = member(ME, HERE, said)
    addresses = ((HERE, rendezvous.port), refusing())
    form = Form(generation=1, members=(ME, PEER), host=HERE, port=rendezvous.port, addresses=addresses)
    membership.deliver(form)

    until(lambda: said[:2] == [Unreachable(peers=(PEER,))] * 2)

    membership.deliver(Abandon(generation=1, reason="a member was lost"))
    membership.deliver(Form(generation=2, members=(ME,), host=HERE, port=0))
    membership.wait_for_generation()
    until(lambda: said[-1] == Unreachable(peers=()))
    membership.close()
    rendezvous.close()
