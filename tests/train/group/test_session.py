"""What a task says of where it stands, and what it makes of what it is told."""

import threading
import time
from collections.abc import Callable

import pytest

from pliant.core.job import JobId, TaskId
from pliant.core.link import Abandon, Broken, Dismiss, Form, FromTask, Hello, Ready
from pliant.train.errors import Departed, GenerationLost
from pliant.train.group import collectives
from pliant.train.group.collectives import Rendezvous
from pliant.train.group.session import Session

JOB, ME, OTHER = JobId("job-1"), TaskId("job-1.1"), TaskId("job-1.2")


class Told(Session):
    """A session that keeps what it sends."""

    def __init__(self, task_id: TaskId = ME) -> None:
        self.sent: list[FromTask] = []
        super().__init__(job_id=JOB, task_id=task_id, pid=7, host="127.0.0.1", send=self.sent.append)

    def form(self, number: int, *members: TaskId, port: int = 0) -> None:
        self.deliver(Form(generation=number, members=members, host="127.0.0.1", port=port))

    def train(self, *, step: int) -> None:
        self.wait_for_generation()
        self.hold(step)


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited 20 s"
        time.sleep(0.01)  # between two looks at the condition


def hello(
    generation: int | None = None, step: int | None = None, *, lost: bool = False, failed: int | None = None
) -> Hello:
    return Hello(task_id=ME, pid=7, generation=generation, step=step, lost=lost, failed=failed)


def test_hello_tells_of_the_generation_that_was_trained_in_not_of_the_one_that_is_waited_in() -> None:
    session = Told()
    assert session.hello() == hello()
    session.form(1, ME)
    session.wait_for_generation()
    assert session.hello() == hello(lost=True)
    session.hold(0)
    session.hold(5)
    assert session.hello() == hello(1, 5)
    session.form(2, ME)
    session.wait_for_generation()
    assert session.hello() == hello(1, 5, lost=True)
    session.hold(5)
    assert session.hello() == hello(2, 5)


def test_task_that_stands_still_says_so_in_its_next_hello_too() -> None:
    session = Told()
    session.form(1, ME)
    session.train(step=3)

    session.lose("reset by peer")

    assert session.sent == [Broken(generation=1, step=3, error="reset by peer", trained=1)]
    assert session.hello() == hello(1, 3, lost=True, failed=1)


def test_newcomer_that_loses_its_first_generation_has_trained_in_none() -> None:
    session = Told()
    session.form(4, ME)
    session.wait_for_generation()

    session.lose("reset by peer")

    assert session.sent == [Broken(generation=4, step=0, error="reset by peer", trained=None)]
    assert session.hello() == hello(lost=True, failed=4)


def test_generation_that_did_not_connect_is_tried_again_when_it_is_announced_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collectives, "CONNECT_TIMEOUT_S", 0.2)
    session = Told()
    session.form(1, ME)
    session.train(step=3)
    rendezvous = Rendezvous("127.0.0.1")

    for attempt in (1, 2):
        session.form(2, ME, OTHER, port=rendezvous.port)
        wait(lambda attempt=attempt: len(session.sent) == attempt)  # type: ignore[misc]

    assert all(isinstance(m, Broken) and (m.generation, m.trained) == (2, None) for m in session.sent)
    assert session.pledge() is None
    assert session.hello() == hello(1, 3), "it trains on"


def test_lone_task_stops_when_its_generation_is_given_up() -> None:
    session = Told()
    session.form(1, ME)
    session.train(step=3)
    session.group.all_reduce([], lost=session.is_lost)

    session.deliver(Abandon(generation=1, reason="others go on"))

    with pytest.raises(GenerationLost):
        session.group.all_reduce([], lost=session.is_lost)


def test_pledge_is_for_the_newest_generation_that_is_connected_or_leaves_me_out() -> None:
    session = Told()
    session.form(1, ME)
    session.train(step=0)
    assert session.pledge() is None
    session.form(2, ME)
    wait(lambda: session.pledge() == 2)
    session.form(3, OTHER)
    assert session.pledge() == 3
    session.deliver(Abandon(generation=3, reason=""))
    assert session.pledge() == 2
    session.deliver(Abandon(generation=2, reason=""))
    assert session.pledge() is None


def test_what_is_told_twice_or_too_late_changes_nothing() -> None:
    session = Told()
    session.form(2, ME)
    session.form(2, ME)
    session.train(step=1)
    session.form(1, ME)
    session.form(2, ME)
    session.deliver(Abandon(generation=1, reason=""))
    session.deliver(Abandon(generation=1, reason=""))

    assert session.pledge() is None
    assert not session.is_lost()


def test_dismissed_task_departs_wherever_it_is() -> None:
    waiting, training = Told(), Told()
    training.form(1, ME)
    training.train(step=1)
    for session in (waiting, training):
        session.deliver(Dismiss(reason="the job is over"))

    with pytest.raises(Departed) as departed:
        waiting.wait_for_generation()
    assert departed.value.reason == "the job is over"
    assert training.is_lost()
    with pytest.raises(Departed):
        training.check_dismissed()


def test_who_waits_for_a_generation_sees_that_it_is_given_up_though_nobody_wakes_it() -> None:
    session, said = Told(), list[str]()

    def wait_for_generation() -> None:
        with pytest.raises(Departed) as departed:
            session.wait_for_generation()
        said.append(departed.value.reason)

    thread = threading.Thread(target=wait_for_generation, daemon=True)
    thread.start()
    assert session.give_up("SIGTERM")
    thread.join(20)
    assert said == ["SIGTERM"]
    assert not session.give_up("SIGTERM again"), "it is told once"


def test_hello_repeats_where_a_ready_task_listens() -> None:
    session = Told()
    session.ready(Ready(host="h", port=9, virtual_workers=8))

    assert session.hello() == Hello(task_id=ME, pid=7, ready=True, host="h", port=9)


def test_two_tasks_meet_at_the_first_one_s_rendezvous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_MESH_TIMEOUT_S", 30.0)  # no server is here that announces it again
    rendezvous = Rendezvous("127.0.0.1")
    both = Told(ME), Told(OTHER)
    for session in both:
        session.form(1, ME, OTHER, port=rendezvous.port)
    groups = [session.wait_for_generation() for session in both]

    assert [(group.rank, group.size) for group in groups] == [(0, 2), (1, 2)]
    for group in groups:
        group.drop()
