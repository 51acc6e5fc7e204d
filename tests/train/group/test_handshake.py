"""Who does not hold the key proves nothing, whatever it has seen, and no session can be changed on the way."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.train.group.frames import pack, take_frame, unpack
from pliant.train.group.handshake import (
    MAX_HANDSHAKE_BYTES,
    ClientHandshake,
    NotProven,
    PeerName,
    ServerHandshake,
    Session,
    job_key,
)

KEY = job_key("the token of job-1")
NAME = PeerName(group="job-1/2", member="0")


def body_of(frame: bytes) -> bytes:
    body = take_frame(bytearray(frame), MAX_HANDSHAKE_BYTES)
    assert body is not None
    return body


def client(key: bytes = KEY, purpose: str = "rendezvous", name: PeerName = NAME) -> ClientHandshake:
    return ClientHandshake(key=key, purpose=purpose, name=name)


def server(key: bytes = KEY, purpose: str = "rendezvous") -> ServerHandshake:
    return ServerHandshake(key=key, purpose=purpose)


def meet(first: ClientHandshake, second: ServerHandshake) -> tuple[Session, Session]:
    proof, session = first.prove(body_of(second.answer(body_of(first.hello))))
    return session, second.verify(body_of(proof))


def test_two_that_hold_the_key_talk_both_ways() -> None:
    listening = server()

    ours, theirs = meet(client(), listening)

    assert listening.name == NAME
    for number in range(3):
        said = [b"set", bytes([number]), b""]
        assert theirs.unseal(body_of(ours.seal(*said))) == said
        assert ours.unseal(body_of(theirs.seal(b"value"))) == [b"value"]


@pytest.mark.parametrize(
    "stranger",
    [client(key=job_key("the token of job-2")), client(key=b""), client(purpose="transfer")],
    ids=["another job's", "no key", "another purpose"],
)
def test_a_client_sees_that_the_server_does_not_share_its_key_and_purpose(stranger: ClientHandshake) -> None:
    with pytest.raises(NotProven):
        stranger.prove(body_of(server().answer(body_of(stranger.hello))))


def test_a_server_refuses_the_proof_of_another_key() -> None:
    listening, stranger = server(), client(key=b"another")
    impostor = server(key=b"another")
    listening.answer(body_of(stranger.hello))
    proof, _ = stranger.prove(body_of(impostor.answer(body_of(stranger.hello))))

    with pytest.raises(NotProven):
        listening.verify(body_of(proof))


def test_what_a_member_said_before_proves_nothing_when_it_is_said_again() -> None:
    member, first, second = client(), server(), server()
    proof, _ = member.prove(body_of(first.answer(body_of(member.hello))))
    first.verify(body_of(proof))

    second.answer(body_of(member.hello))

    with pytest.raises(NotProven):
        second.verify(body_of(proof))


def test_the_servers_own_proof_sent_back_proves_nothing() -> None:
    listening = server()
    _, proof = unpack(body_of(listening.answer(body_of(client().hello))))

    with pytest.raises(NotProven):
        listening.verify(pack([proof])[4:])


@pytest.mark.parametrize(
    "changed", [replace(NAME, group="job-1/3"), replace(NAME, member="1")], ids=["group", "member"]
)
def test_a_name_that_is_changed_on_the_way_is_noticed_by_both(changed: PeerName) -> None:
    member, listening = client(), server()
    version, nonce, _, _ = unpack(body_of(member.hello))
    answer = listening.answer(pack([version, nonce, changed.group.encode(), changed.member.encode()])[4:])

    with pytest.raises(NotProven):
        member.prove(body_of(answer))


@given(st.binary(max_size=200))
def test_nonsense_is_neither_a_hello_nor_an_answer_nor_a_proof(nonsense: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (whatever is wrong with it)
        server().answer(nonsense)
    with pytest.raises(NotProven):
        client().prove(nonsense)
    listening = server()
    listening.answer(body_of(client().hello))
    with pytest.raises((ValueError, NotProven)):
        listening.verify(nonsense)


@given(st.integers(0, 1000), st.integers(1, 255))
def test_a_frame_that_was_changed_is_refused(at: int, flip: int) -> None:
    ours, theirs = meet(client(), server())
    frame = bytearray(body_of(ours.seal(b"set", b"member/0", b"10.0.0.4:4100")))
    frame[at % len(frame)] ^= flip

    with pytest.raises(NotProven):
        theirs.unseal(bytes(frame))


def test_a_frame_that_is_repeated_left_out_or_turned_round_is_refused() -> None:
    ours, theirs = meet(client(), server())
    first, second = body_of(ours.seal(b"a")), body_of(ours.seal(b"b"))
    with pytest.raises(NotProven):
        theirs.unseal(second)
    with pytest.raises(NotProven):
        ours.unseal(first)
    assert theirs.unseal(first) == [b"a"]
    with pytest.raises(NotProven):
        theirs.unseal(first)
    assert theirs.unseal(second) == [b"b"]


def test_the_frames_of_another_session_are_refused() -> None:
    ours, _ = meet(client(), server())
    _, theirs = meet(client(), server())
    with pytest.raises(NotProven):
        theirs.unseal(body_of(ours.seal(b"a")))


def test_no_key_is_on_the_wire() -> None:
    member, listening = client(), server()
    answer = listening.answer(body_of(member.hello))
    proof, session = member.prove(body_of(answer))

    wire = member.hello + answer + proof + session.seal(b"done")

    assert KEY not in wire
    assert b"the token of job-1" not in wire
    assert job_key("the token of job-2") != KEY
