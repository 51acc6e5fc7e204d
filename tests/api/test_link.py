"""What a task says is a stranger's: numbers that no database takes are refused where they arrive."""

import json
from typing import Any

import pytest

from pliant.api.link import decode_from_task, decode_to_task, encode, number_of
from pliant.core.errors import InvalidInput
from pliant.core.job import TaskId
from pliant.core.link import MAX_PEERS, Form, Hello, Switched, Unreachable

SWITCHED = Switched(generation=1, step=7, size=2, pause_s=0.1, redone_steps=1, leader=True)
HELLO = Hello(task_id=TaskId("job-1.1"), pid=7, generation=1, step=7)
UNREACHABLE = Unreachable(peers=(TaskId("job-1.2"), TaskId("job-1.3")))


@pytest.mark.parametrize("message", [SWITCHED, HELLO, UNREACHABLE], ids=lambda message: message.kind)
def test_a_message_arrives_as_it_was_sent(message: Any) -> None:
    assert decode_from_task(encode(message, 3)) == message
    assert number_of(encode(message, 3)) == 3


@pytest.mark.parametrize(
    ("message", "field", "value"),
    [(SWITCHED, "step", 2**70), (SWITCHED, "redone_steps", 2), (SWITCHED, "generation", -1), (HELLO, "pid", 2**31)],
)
def test_a_number_that_no_database_takes_is_refused_by_its_name(message: Any, field: str, value: int) -> None:
    frame = json.dumps(json.loads(encode(message)) | {field: value})
    with pytest.raises(InvalidInput, match=field):
        decode_from_task(frame)


def test_the_number_of_a_message_is_bounded_too() -> None:
    with pytest.raises(InvalidInput, match="number"):
        number_of(encode(SWITCHED, 2**31))


@pytest.mark.parametrize("peers", [["job-1.2"] * (MAX_PEERS + 1), "job-1.2", [7], [["job-1.2"]], None])
def test_peers_out_of_reach_are_names_and_not_too_many(peers: Any) -> None:
    frame = json.dumps({"kind": "unreachable", "peers": peers})
    with pytest.raises(InvalidInput, match="peers"):
        decode_from_task(frame)


def test_a_generation_without_addresses_is_understood_as_an_older_server_announces_it() -> None:
    form = Form(generation=1, members=(TaskId("job-1.1"),), host="10.0.0.4", port=7, addresses=(("10.0.0.4", 7),))
    assert decode_to_task(encode(form)) == form
    frame = json.loads(encode(form))
    del frame["addresses"]
    older = decode_to_task(json.dumps(frame))
    assert isinstance(older, Form)
    assert older.addresses == ()
