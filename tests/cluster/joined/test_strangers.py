"""Who is not let in, and what they are told; what strangers and bad machines cannot do."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.joined.pool import Pool
from tests.contracts.process_stage import DEADLINE_S, until

from pliant.cluster.agent.messages import Alive, NodeFound, Observed, UpToDate
from pliant.cluster.joined import connection as hubs
from pliant.cluster.json_lines import Message, encode
from pliant.cluster.link.authority import SERVER_NAME, open_authority
from pliant.cluster.link.dial import RefusedByServerError, ServerConnection, ServerHost, join, meet
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import Here, Join, Renew
from pliant.cluster.link.versions import versions
from pliant.core.errors import Unavailable
from pliant.core.job import NodeId, TaskId
from pliant.core.joining import parse_join_token
from pliant.core.plan import NodeView
from pliant.core.ports import LiveTask

IN_TIME_S = 2.0


class Machine:
    """One that joins and connects without an agent."""

    def __init__(self, pool: Pool, name: str = "gpu1", folder: str | None = None) -> None:
        self.pool = pool
        self.name = name
        self.identity = NodeIdentity(pool.root / (folder or f"identity-{name}"))

    @property
    def server(self) -> ServerHost:
        return ServerHost(host="127.0.0.1", port=self.pool.port)

    def join(self, token: str, name: str | None = None) -> None:
        token_id, secret, pin = parse_join_token(token)
        request = self.identity.make_request(self.name)
        asked = Join(token_id=token_id, secret=secret, name=name or self.name, request=request)
        asyncio.run(asyncio.wait_for(join(self.server, self.identity, asked, pin), IN_TIME_S))

    def here(self, **changes: Any) -> Here:
        return replace(Here(incarnation=f"{self.name}/1", versions=versions()), **changes)

    def meet(self, here: Here | None = None) -> None:
        async def once() -> None:
            met = await greet(self.server, self.identity, here or self.here())
            await _close(met)

        asyncio.run(asyncio.wait_for(once(), IN_TIME_S))

    def speak(self, *messages: Message | bytes) -> str:
        """Connect, say this, and return the last that is answered before the server hangs up."""

        async def once() -> str:
            met = await greet(self.server, self.identity, self.here())
            return await _last_word(met, messages)

        return asyncio.run(asyncio.wait_for(once(), 5.0))


async def greet(server: ServerHost, identity: NodeIdentity, here: Here) -> ServerConnection:
    return await meet(server, identity, lambda: here, asyncio.Lock())


async def _last_word(met: ServerConnection, messages: tuple[Message | bytes, ...]) -> str:
    try:
        for message in messages:
            met.writer.write(message if isinstance(message, bytes) else encode(message))
        last = b""
        while line := await met.reader.readline():
            last = line
        return str(json.loads(last).get("reason"))
    finally:
        await _close(met)


async def _close(met: ServerConnection) -> None:
    met.writer.transport.abort()
    with suppress(OSError):
        await met.writer.wait_closed()


@pytest.fixture
def machine(pool: Pool) -> Machine:
    made = Machine(pool)
    made.join(pool.token())
    return made


# tokens


def _expired(pool: Pool) -> str:
    token = pool.token(valid_s=1.0)
    at = time.monotonic() + 1.0
    until(lambda: time.monotonic() > at, "it has expired")
    return token


def _revoked(pool: Pool) -> str:
    token = pool.token()
    pool.joining.revoke_token(parse_join_token(token)[0])
    return token


def _used(pool: Pool) -> str:
    token = pool.token()
    Machine(pool, "earlier").join(token)
    return token


def _bad(pool: Pool) -> str:
    token_id, secret, pin = parse_join_token(pool.token())
    return f"pliant-join-{token_id}.{secret[::-1]}.{pin}"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_bad, "is none of this pool's"),
        (_revoked, "is none of this pool's"),
        (_expired, "expired"),
        (_used, "was used once already"),
        (lambda pool: pool.token(machine="gpu7"), "'gpu7', and this one wants to be 'gpu1'"),
    ],
    ids=["bad", "revoked", "expired", "used", "of-another"],
)
def test_a_token_that_is_not_good_opens_nothing(
    pool: Pool, make: Callable[[Pool], str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = make(pool)
    machine = Machine(pool)

    with pytest.raises(RefusedByServerError, match=words) as refused:
        machine.join(token)
    assert refused.value.is_final
    assert machine.identity.name == ""
    secret = parse_join_token(token)[1]
    assert secret not in caplog.text
    assert secret not in str(refused.value)


def test_the_name_of_another_machine_cannot_be_had(pool: Pool, machine: Machine) -> None:
    with pytest.raises(RefusedByServerError, match=r"a machine called gpu1 has joined before.*--name"):
        Machine(pool, folder="another").join(pool.token())


def test_a_name_that_is_none_is_refused(pool: Pool) -> None:
    with pytest.raises(RefusedByServerError, match="local"):
        Machine(pool).join(pool.token(), name="local")


def test_nothing_is_said_to_a_server_that_is_not_the_tokens(pool: Pool) -> None:
    token_id, secret, _pin = parse_join_token(pool.token())

    with pytest.raises(Unavailable, match="is not the server that the join token is for"):
        Machine(pool).join(f"pliant-join-{token_id}.{secret}.{'0' * 64}")
    Machine(pool).join(f"pliant-join-{token_id}.{secret}.{pool.authority.pin}")  # it was not used up


def test_a_machine_that_joins_twice_with_the_same_key_is_the_same(pool: Pool, machine: Machine) -> None:
    machine.join(pool.token())
    machine.meet()

    assert [one.name for one in pool.joining.all()] == ["gpu1"]


# certificates and versions


def test_who_shows_no_certificate_is_refused(pool: Pool, machine: Machine) -> None:
    with _connect(pool, machine.identity.joining_context()) as link:
        link.sendall(encode(machine.here()))
        assert "has shown no certificate" in _answer(link)


def test_a_certificate_of_another_pool_opens_nothing(pool: Pool, tmp_path: Path) -> None:
    other = open_authority(tmp_path / "other", now=time.time())
    stranger = Machine(pool)
    request = stranger.identity.make_request("gpu1")
    stranger.identity.accept(other.sign(request, "gpu1", now=time.time()), other.ca_pem)

    with pytest.raises(Unavailable, match="is not a server of the pool that this machine has joined"):
        stranger.meet()
    context = stranger.identity.client_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    assert _heard(pool, context, stranger.here()) == b""


def test_a_machine_that_was_removed_is_not_let_in_any_more(pool: Pool, machine: Machine) -> None:
    pool.joining.remove("gpu1")

    with pytest.raises(RefusedByServerError, match="was removed from this pool") as refused:
        machine.meet()
    assert refused.value.is_final


def test_a_machine_whose_name_another_has_joined_by_is_not_let_in(pool: Pool, machine: Machine) -> None:
    pool.joining.remove("gpu1")
    Machine(pool, folder="another").join(pool.token())

    with pytest.raises(RefusedByServerError, match="another machine has joined this pool as 'gpu1' since"):
        machine.meet()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pliant": "0.0.1"}, "Pliant 0.0.1 where the server has"),
        ({"python": "3.9"}, "Python 3.9 where the server has"),
        ({"torch": ""}, "torch none where the server has"),
        ({"protocol": 99}, "protocol 99 where the server has"),
    ],
)
def test_other_versions_are_refused_and_named(machine: Machine, change: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedByServerError, match=words) as refused:
        machine.meet(machine.here(versions=replace(versions(), **change)))
    assert refused.value.is_final


# what machines say


def _found(**changes: Any) -> NodeFound:
    return NodeFound(node=replace(NodeView(id=NodeId("gpu1"), slots=(0, 1)), **changes), session=1)


def _task(**changes: Any) -> Observed:
    task = LiveTask(task_id=TaskId("job-1.1"), node_id=NodeId("gpu1"), slots=(0,), slot_share=1000, pid=None)
    return Observed(task=replace(task, **changes))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([_found(id=NodeId("gpu2"))], "it calls itself 'gpu2', and its certificate 'gpu1'"),
        ([_found(slots=())], "its slots are not numbered"),
        ([_found(slots=(0, 0))], "its slots are not numbered"),
        ([_found(slots=(-1,))], "its slots are not numbered"),
        ([_found(slots=tuple(range(5000)))], "its slots are not numbered"),
        ([_found(), _task(node_id=NodeId("local"))], "it speaks of a task of 'local'"),
        ([_found(), _task(slots=(2,))], "holds what it has not"),
        ([_found(), _task(slot_share=0)], "holds what it has not"),
        ([b"junk\n"], "is not understood"),
        ([b'{"kind": "renew", "number": "x"}\n'], "is not understood"),
        ([b'{"kind": "kill", "task_id": "job-1.1"}\n'], "is not understood"),
        ([b"\xff\xfe\n"], "is not understood"),
        ([b"[" * 50_000 + b"\n"], "is not understood"),
    ],
)
def test_a_machine_that_says_what_cannot_be_is_hung_up_on(
    pool: Pool, machine: Machine, said: list[Message | bytes], words: str
) -> None:
    assert words in machine.speak(*said)
    assert not pool.is_here("gpu1")
    assert pool.nodes.observe().tasks == ()


def test_a_line_of_a_machine_has_a_greatest_length(
    pool: Pool, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "MAX_LINE_BYTES", 100_000)

    assert "a line is longer than 100000 bytes" in machine.speak(b"x" * 150_000)


def test_a_machine_is_away_until_its_account_is_complete(pool: Pool, machine: Machine) -> None:
    async def account() -> None:
        met = await greet(machine.server, machine.identity, machine.here())
        met.writer.write(encode(_found()) + encode(_task()))
        await asyncio.to_thread(until, lambda: bool(pool.nodes.observe().tasks), "the account has begun")
        assert not pool.is_here("gpu1")
        met.writer.write(encode(UpToDate()))
        await asyncio.to_thread(until, lambda: pool.is_here("gpu1"), "it is there")
        await _close(met)

    asyncio.run(account())


def test_a_copy_of_a_machine_is_refused_while_it_lives(pool: Pool, machine: Machine) -> None:
    twin = machine.here(incarnation="twin/1")

    async def both() -> None:
        met = await greet(machine.server, machine.identity, machine.here())
        met.writer.write(encode(_found()) + encode(UpToDate()))
        await asyncio.to_thread(until, lambda: pool.is_here("gpu1"), "it is there")
        with pytest.raises(RefusedByServerError, match="is connected already: two have the same certificate") as no:
            await greet(machine.server, machine.identity, twin)
        assert not no.value.is_final
        assert pool.is_here("gpu1")
        await _close(met)

    asyncio.run(both())


def test_a_machine_that_floods_keeps_no_other_from_being_heard(pool: Pool, machine: Machine) -> None:
    other = Machine(pool, "gpu2")
    other.join(pool.token())
    flood = (encode(_found()) + encode(Renew(number=1, received=0)) + encode(Alive())) * 300

    async def both() -> None:
        loud = await greet(machine.server, machine.identity, machine.here())
        loud.writer.write(encode(_found()) + encode(UpToDate()))
        quiet = await greet(other.server, other.identity, other.here())
        longest_s = 0.0
        for number in range(1, 21):
            loud.writer.write(flood)
            sent_at = time.monotonic()
            quiet.writer.write(encode(Renew(number=number, received=0)))
            while b'"renewed"' not in await quiet.reader.readline():
                pass
            longest_s = max(longest_s, time.monotonic() - sent_at)
        assert longest_s < 1.0
        await _close(loud)
        await _close(quiet)

    asyncio.run(asyncio.wait_for(both(), DEADLINE_S))


# strangers


@pytest.mark.parametrize(
    "first",
    [
        b"junk\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"kind": "renew", "number": 1, "received": 0}\n',
        b'{"kind": "here"}\n',
        b"x" * (70 << 10),
        b'{"kind": "join", "name": "' + b"x" * (70 << 10) + b'"}\n',
    ],
    ids=["junk", "http", "renew", "half", "endless", "long"],
)
def test_a_stranger_that_says_something_else_is_hung_up_on(pool: Pool, machine: Machine, first: bytes) -> None:
    with _connect(pool, machine.identity.joining_context()) as link:
        link.sendall(first)
        assert _answer(link)
        assert link.recv(1) == b""


def test_a_greeting_that_takes_too_long_is_ended(pool: Pool, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "GREETING_S", 0.3)
    with _connect(pool, machine.identity.joining_context()) as link:
        link.settimeout(0.05)
        deadline, ended = time.monotonic() + DEADLINE_S, False
        while not ended and time.monotonic() < deadline:
            try:
                link.sendall(b"x")
                ended = link.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended


def test_silent_strangers_keep_no_machine_out(pool: Pool) -> None:
    context = NodeIdentity(pool.root / "nobody").joining_context()
    raw = [socket.create_connection(("127.0.0.1", pool.port)) for _ in range(40)]
    silent = [_connect(pool, context) for _ in range(300)]
    try:
        machine = Machine(pool)
        machine.join(pool.token())
        machine.meet()
    finally:
        for one in (*raw, *silent):
            one.close()


def _connect(pool: Pool, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", pool.port), timeout=IN_TIME_S)
    return context.wrap_socket(plain, server_hostname=SERVER_NAME)


def _heard(pool: Pool, context: ssl.SSLContext, said: Message) -> bytes:
    """Return what is answered, if it is TLS."""
    with suppress(OSError), _connect(pool, context) as link:
        link.sendall(encode(said))
        return link.recv(1 << 16)
    return b""


def _answer(link: ssl.SSLSocket) -> str:
    """Return why a stranger is refused."""
    got = b""
    while not got.endswith(b"\n") and (more := link.recv(1 << 16)):
        got += more
    said = json.loads(got)
    assert said["kind"] == "refused"
    return str(said["reason"])
