"""Whatever adapter and agent say to each other arrives as it was, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.cluster.agent.messages import FROM_AGENT, TO_AGENT, FromAgent, Start, ToAgent
from pliant.cluster.json_lines import decode, encode
from pliant.core.confinement import Confinement, RunAs
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder

START = Start(
    order=StartOrder(
        task_id=TaskId("job-1.1"),
        node_id=NodeId("here"),
        slots=(1, 3),
        argv=("train.py", "--lr", "0.1"),
        env={"A": "b\n\u2028"},
        cwd="/c",
        log_dir="/l",
        sees=(1,),
        memory_bytes=1 << 40,
        confinement=Confinement(user=RunAs(name="nobody"), writes=("/o",), reads=("/r", "/s"), hides=("/h",)),
    )
)


@given(st.one_of([st.from_type(message) for message in TO_AGENT.values()]))
def test_what_is_sent_to_the_agent_arrives_as_it_was(message: ToAgent) -> None:
    assert decode(encode(message), TO_AGENT) == message


@given(st.one_of([st.from_type(message) for message in FROM_AGENT.values()]).filter(lambda one: "nan" not in repr(one)))
def test_what_the_agent_sends_arrives_as_it_was(message: FromAgent) -> None:
    assert decode(encode(message), FROM_AGENT) == message


def test_an_order_arrives_whole_and_in_one_line() -> None:
    line = encode(START)

    assert line.count(b"\n") == 1
    assert decode(line, TO_AGENT) == START


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'"start"', b'"begin"'),
        (b'"start"', b"[]"),
        (b"{", b"[" * 100_000),
        (b'"task_id": "job-1.1", ', b""),
        (b'"job-1.1"', b"11"),
        (b"[1, 3]", b'"13"'),
        (b"[1, 3]", b"[1, true]"),
        (b'"cwd"', b'"pwd"'),
        (b'"name": "nobody"', b'"name": null'),
        (b"{", b"["),
    ],
)
def test_a_line_that_is_no_message_is_refused(right: bytes, wrong: bytes) -> None:
    line = encode(START)
    assert right in line

    with pytest.raises(ValueError, match=r"message|Expecting"):
        decode(line.replace(right, wrong, 1), TO_AGENT)
