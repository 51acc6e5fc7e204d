"""Requests that wait in a kernel: each leaves once."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.serve.runner.served import a_request

from pliant.serve.runner.backlog import Backlog


def test_requests_leave_in_their_order() -> None:
    backlog = Backlog()
    for number in (3, 1, 2):
        backlog.add(a_request(number))

    taken = [backlog.take(0.0) for _ in range(4)]

    assert [None if one is None else (one[0].id, one[1]) for one in taken] == [(3, None), (1, None), (2, None), None]


def test_expired_requests_have_their_answer_already_and_cancelled_ones_are_gone() -> None:
    backlog = Backlog()
    backlog.add(a_request(1, deadline=10.0))
    backlog.add(a_request(2))
    backlog.cancel([2, 77])
    backlog.add(a_request(77))

    taken = [backlog.take(10.0) for _ in range(3)]

    results = [one[1] for one in taken if one is not None]
    assert [None if result is None else result.status for result in results] == [504, None]
    assert "send it again" in json.loads(results[0].body if results[0] else b"")["error"]


@given(st.lists(st.integers(0, 99), unique=True), st.integers(0, 10), st.lists(st.integers(0, 99)))
def test_every_request_leaves_once(ids: list[int], num_taken: int, cancelled: list[int]) -> None:
    backlog = Backlog()
    for number in ids:
        backlog.add(a_request(number))
    backlog.cancel(cancelled)

    taken = [one[0].id for _ in range(num_taken) if (one := backlog.take(0.0)) is not None]

    rest = backlog.give_back()
    assert set(taken) == set(ids[: len(ids) - len(rest)]) - set(cancelled)
    assert taken + rest == [number for number in ids if number in taken or number in rest]
    assert len(backlog) == 0
