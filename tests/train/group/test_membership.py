"""What a task says of where it stands, and what it makes of what it is told."""

import threading
import time
from collections.abc import Callable

import pytest

from pliant.core.job import JobId, TaskId
from pliant.core.link import Abandon, Dismiss, Form, FromTask, Hello, Lost, Ready
from pliant.train.errors import Departed, GenerationLost
from pliant.train.group import collectives
from pliant.train.group.membership import TaskMembership
from pliant.train.group.rendezvous import RendezvousServer

JOB, ME, OTHER = JobId("job-1"), TaskId("job-1.1"), TaskId("job-1.2")
KEY = b"the key of job-1"


class Told(TaskMembership):
    """A session that keeps what it sends."""

    def __init__(self, task_id: TaskId = ME) -> None:
        self.sent: list[FromTask] = []
        super().__init__(job_id=JOB, task_id=task_id, pid=7, host="127.0.0.1", key=KEY, send=self.sent.append)

    def form(self, number: int, *members: TaskId, port: int = 0) -> None:
        self.deliver(Form(generation=number, members=members, host="127.0.0.1", port=port))

    def train(self, *, step: int) -> None:
        self.wait_for_generation()
        self.record_commit(step)


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
    membership = Told()
    assert membership.hello() == hello()
    membership.form(1, ME)
    membership.wait_for_generation()
    assert membership.hello() == hello(lost=True)
    membership.record_commit(0)
    membership.record_commit(5)
    assert membership.hello() == hello(1, 5)
    membership.form(2, ME)
    membership.wait_for_generation()
    assert membership.hello() == hello(1, 5, lost=True)
    membership.record_commit(5)
    assert membership.hello() == hello(2, 5)


def test_task_that_stands_still_says_so_in_its_next_hello_too() -> None:
    membership = Told()
    membership.form(1, ME)
    membership.train(step=3)

    membership.lose("reset by peer")

    assert membership.sent == [Lost(generation=1, step=3, error="reset by peer", trained=1)]
    assert membership.hello() == hello(1, 3, lost=True, failed=1)


def test_newcomer_that_loses_its_first_generation_has_trained_in_none() -> None:
    membership = Told()
    membership.form(4, ME)
    membership.wait_for_generation()

    membership.lose("reset by peer")

    assert membership.sent == [Lost(generation=4, step=0, error="reset by peer", trained=None)]
    assert membership.hello() == hello(lost=True, failed=4)


def test_generation_that_did_not_connect_is_tried_again_when_it_is_announced_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collectives, "CONNECT_TIMEOUT_S", 0.2)
    membership = Told()
    membership.form(1, ME)
    membership.train(step=3)
    rendezvous = RendezvousServer("127.0.0.1", key=KEY)

    for attempt in (1, 2):
        membership.form(2, ME, OTHER, port=rendezvous.port)
        wait(lambda attempt=attempt: len(membership.sent) == attempt)  # type: ignore[misc]

    assert all(isinstance(m, Lost) and (m.generation, m.trained) == (2, None) for m in membership.sent)
    assert membership.pledge() is None
    assert membership.hello() == hello(1, 3), "it trains on"


def test_lone_task_stops_when_its_generation_is_given_up() -> None:
    membership = Told()
    membership.form(1, ME)
    membership.train(step=3)
    membership.group.all_reduce([], is_lost=membership.is_lost)

    membership.deliver(Abandon(generation=1, reason="others go on"))

    with pytest.raises(GenerationLost):
        membership.group.all_reduce([], is_lost=membership.is_lost)


def test_pledge_is_for_the_newest_generation_that_is_connected_or_leaves_me_out() -> None:
    membership = Told()
    membership.form(1, ME)
    membership.train(step=0)
    assert membership.pledge() is None
    membership.form(2, ME)
    wait(lambda: membership.pledge() == 2)
    membership.form(3, OTHER)
    assert membership.pledge() == 3
    membership.deliver(Abandon(generation=3, reason=""))
    assert membership.pledge() == 2
    membership.deliver(Abandon(generation=2, reason=""))
    assert membership.pledge() is None


def test_what_is_told_twice_or_too_late_changes_nothing() -> None:
    membership = Told()
    membership.form(2, ME)
    membership.form(2, ME)
    membership.train(step=1)
    membership.form(1, ME)
    membership.form(2, ME)
    membership.deliver(Abandon(generation=1, reason=""))
    membership.deliver(Abandon(generation=1, reason=""))

    assert membership.pledge() is None
    assert not membership.is_lost()


def test_dismissed_task_departs_wherever_it_is() -> None:
    waiting, training = Told(), Told()
    training.form(1, ME)
    training.train(step=1)
    for membership in (waiting, training):
        membership.deliver(Dismiss(reason="the job is over"))

    with pytest.raises(Departed) as departed:
        waiting.wait_for_generation()
    assert departed.value.reason == "the job is over"
    assert training.is_lost()
    with pytest.raises(Departed):
        training.check_dismissed()


def test_who_waits_for_a_generation_sees_that_it_is_given_up_though_nobody_wakes_it() -> None:
    membership, said = Told(), list[str]()

    def wait_for_generation() -> None:
        with pytest.raises(Departed) as departed:
            membership.wait_for_generation()
        said.append(departed.value.reason)

    thread = threading.Thread(target=wait_for_generation, daemon=True)
    thread.start()
    assert membership.give_up("SIGTERM")
    thread.join(20)
    assert said == ["SIGTERM"]
    assert not membership.give_up("SIGTERM again"), "it is told once"


def test_a_signal_ends_who_was_dismissed_but_does_not_wait_yet_and_disturbs_nobody_who_departs() -> None:
    early, waiting = Told(), Told()
    for membership in (early, waiting):
        membership.deliver(Dismiss(reason="the job is over"))
    with pytest.raises(Departed):
        waiting.wait_for_generation()

    assert early.give_up("SIGTERM") == "the job is over"
    assert waiting.give_up("SIGTERM") is None


def test_hello_repeats_where_a_ready_task_listens() -> None:
    membership = Told()
    membership.announce_ready(Ready(host="h", port=9, virtual_workers=8))

    assert membership.hello() == Hello(task_id=ME, pid=7, ready=True, host="h", port=9)


def test_two_tasks_meet_at_the_first_one_s_rendezvous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_MESH_TIMEOUT_S", 30.0)  # no server is here that announces it again
    rendezvous = RendezvousServer("127.0.0.1", key=KEY)
    both = Told(ME), Told(OTHER)
    for membership in both:
        membership.form(1, ME, OTHER, port=rendezvous.port)
    groups = [membership.wait_for_generation() for membership in both]

    assert [(group.rank, group.size) for group in groups] == [(0, 2), (1, 2)]
    for group in groups:
        group.drop()
