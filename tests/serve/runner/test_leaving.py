"""How a kernel waits: for whoever has something to say, or until it has to go."""

import socket
from contextlib import closing

from pliant.serve.runner.leaving import LeaveSignal


def test_only_what_can_be_read_is_named() -> None:
    first, second = socket.socketpair(), socket.socketpair()
    with closing(LeaveSignal()) as leave:
        second[0].send(b"x")
        found = leave.wait([first[1].fileno(), second[1].fileno()], None)
        first[0].close()
        both = leave.wait([first[1].fileno(), second[1].fileno()], None)

        assert found == [second[1].fileno()]
        assert sorted(both) == sorted([first[1].fileno(), second[1].fileno()])
        assert leave.wait([], 0.0) == []
    for one in (*first, *second):
        one.close()


def test_it_ends_a_wait_also_one_that_begins_after_it_and_whoever_knows_waits_on() -> None:
    ours, theirs = socket.socketpair()
    with closing(LeaveSignal()) as leave:
        leave.ask()
        leave.ask()

        assert leave.wait([ours.fileno()], None) == []
        assert leave.wait([ours.fileno()], 0.0, is_leaving=True) == []
        theirs.send(b"x")
        assert leave.wait([ours.fileno()], None, is_leaving=True) == [ours.fileno()]
    ours.close()
    theirs.close()
