"""Requests that wait in a kernel: each leaves once."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.serve.runner.served import a_request

from pliant.serve.runner.backlog import Backlog, BacklogTurns


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


def test_requests_that_were_cancelled_are_awaited_no_more() -> None:
    backlog = Backlog()
    for number in (1, 2, 3):
        backlog.add(a_request(number))

    backlog.cancel([2, 2, 77])

    assert (len(backlog), backlog.num_awaited) == (3, 2)
    assert [backlog.take(0.0), backlog.take(0.0)] != [None, None]
    assert (len(backlog), backlog.num_awaited) == (0, 0)


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


@given(st.lists(st.lists(st.sampled_from("tgc"), max_size=12), min_size=1, max_size=5), st.data())
def test_backlogs_take_turns_and_none_starves(all_kinds: list[list[str]], data: st.DataObject) -> None:
    backlogs, turns, add = [Backlog() for _ in all_kinds], BacklogTurns(), list(enumerate(all_kinds))
    passed_over = dict.fromkeys(range(len(backlogs)), 0)
    num_added = num_gone = 0
    while True:
        is_any = any(len(backlog) for backlog in backlogs)
        for at, kinds in add:
            for _ in range(data.draw(st.integers(0, len(kinds))) if is_any else len(kinds)):
                kind, number = kinds.pop(), num_added
                backlogs[at].add(a_request(number, deadline=1.0 if kind == "t" else None, body=b"%d" % at))
                if kind == "c":
                    backlogs[at].cancel([number])
                    num_gone += 1
                num_added += 1
        waiting = {at for at, backlog in enumerate(backlogs) if backlog.num_awaited}
        taken = turns.take(backlogs, 5.0)
        if taken is None:
            assert not waiting
            if not any(kinds for _, kinds in add):
                break
            continue
        whose = int(taken[0].body)
        assert (taken[1] is not None) is (taken[0].deadline is not None)
        num_gone += 1
        passed_over[whose] = 0
        for at in waiting - {whose}:
            passed_over[at] += 1
            assert passed_over[at] < len(backlogs)
    assert num_gone == num_added
