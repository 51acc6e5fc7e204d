"""Webhooks to a real receiver: what is sent, what an answer is worth, and ways to lead the server elsewhere."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from tests.notices.conftest import JOB, notice
from tests.notices.receivers import Hook, receiving

from pliant.core.notice import Notice
from pliant.notices.addresses import WebhookRules, read_allowed
from pliant.notices.background import Lanes
from pliant.notices.message import Writer
from pliant.notices.outcome import MAX_REFUSED, SENT, TryOutcome, delay_s
from pliant.notices.webhook import Webhooks, resolve, sign

DOCUMENT = Writer(url="http://test").document(JOB, notice())


def send(one: Notice, *allowed: str, **changes: Any) -> TryOutcome:
    """Send the document from a server that allows these."""

    async def run() -> TryOutcome:
        rules = WebhookRules(allowed=tuple(map(read_allowed, allowed)))
        return await Webhooks(rules=rules, lanes=Lanes(2), **changes).send(one, DOCUMENT)

    return asyncio.run(run())


def send_to(hook: Hook, **changes: Any) -> TryOutcome:
    return send(notice(to=hook.url, **changes), f"127.0.0.1:{hook.port}")


def test_the_document_arrives_with_its_id_and_its_signature() -> None:
    with receiving() as hook:
        assert send_to(hook, secret="a very secret") == SENT

    (got,) = hook.got
    assert got.path == "/services/T0/SECRET?token=SECRET"
    assert json.loads(got.body)["id"] == got.headers["X-Pliant-Delivery"] == "5eed"
    assert got.headers["X-Pliant-Signature"] == sign("a very secret", got.body)
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["Host"] == f"127.0.0.1:{hook.port}"


def test_without_a_secret_nothing_is_signed() -> None:
    with receiving(204) as hook:
        assert send_to(hook).sent
    assert "X-Pliant-Signature" not in hook.got[0].headers


@pytest.mark.parametrize(
    ("status", "max_tries"), [(404, MAX_REFUSED), (400, MAX_REFUSED), (429, 8), (408, 8), (500, 8), (503, 8)]
)
def test_of_a_bad_answer_the_status_is_shown_and_how_often_it_is_worth_a_try(status: int, max_tries: int) -> None:
    with receiving(status) as hook:
        assert send_to(hook) == TryOutcome(words=f"answered {status}", max_tries=max_tries)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiving() as inside, receiving(status) as hook:
        hook.location = inside.url
        found = send(notice(to=hook.url), "127.0.0.0/8")
    assert found == TryOutcome(words=f"answered {status}: it leads elsewhere, which is not followed", max_tries=1)
    assert inside.got == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0"]
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_this_machine_is_not_called_however_it_is_written(host: str, scheme: str) -> None:
    with receiving() as hook:
        found = send(notice(to=f"{scheme}://{host}:{hook.port}/x"))
    assert found.max_tries == 1
    assert "leads to the server's own machine, which this server does not call for people" in found.words
    assert hook.got == []


class Rebinding:
    """A name that leads to a public address when it is looked up first, and to this machine from then on."""

    def __init__(self) -> None:
        self.num_asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.num_asked += 1
        return ("203.0.113.9",) if self.num_asked == 1 else ("127.0.0.1",)


def test_the_address_that_was_checked_is_the_one_that_is_called() -> None:
    # 203.0.113.9 stands for a public one, which is never there: were the name looked up again, the hook would be called
    name = Rebinding()
    with receiving() as hook:
        to = f"http://rebound.test:{hook.port}/x"
        first = send(notice(to=to), "203.0.113.0/24", resolve=name, deadline_s=0.3)
        second = send(notice(to=to), "203.0.113.0/24", resolve=name, deadline_s=0.3)
    assert hook.got == []
    assert first.words in ("did not answer within 0.3 s", "could not be reached")
    assert "own machine" in second.words
    assert name.num_asked == 2, "once for each try"


def test_of_several_addresses_only_those_are_called_that_may_be() -> None:
    with receiving() as hook:
        both = lambda host, port: ("10.0.0.1", "127.0.0.1")  # noqa: E731
        assert send(notice(to=hook.url), "127.0.0.1", resolve=both).sent
        assert "private network" in send(notice(to=hook.url), "192.0.2.1", resolve=both).words
    assert len(hook.got) == 1


def test_an_own_public_address_is_not_called() -> None:
    public: Callable[..., Any] = lambda host, port: ("8.8.8.8",)  # noqa: E731
    found = send(notice(to="https://gpu1.example/x"), resolve=public, is_own=lambda address: True)
    assert "the server's own machine" in found.words


def test_the_certificate_is_checked_against_the_name(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = contexts

    def at(host: str) -> str:
        return f"https://{host}:{hook.port}/x"

    with receiving(context=server) as hook:
        here: Callable[..., Any] = lambda host, port: ("127.0.0.1",)  # noqa: E731
        good = send(notice(to=at("hooks.test")), "127.0.0.1", resolve=here, context=client)
        other = send(notice(to=at("elsewhere.test")), "127.0.0.1", resolve=here, context=client)
        unknown = send(notice(to=at("hooks.test")), "127.0.0.1", resolve=here)
    assert good == SENT
    assert "cannot be trusted" in other.words
    assert "cannot be trusted" in unknown.words
    assert len(hook.got) == 1


def test_a_receiver_that_says_nothing_or_drips_has_a_deadline() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        began = time.monotonic()
        to = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        found = send(notice(to=to), "127.0.0.1", deadline_s=0.2)
    assert found == TryOutcome(words="did not answer within 0.2 s")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 17), "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9999, "does not speak HTTP"),
        (b"", "closed the connection before it had answered"),
    ],
)
def test_what_is_no_answer_is_bounded_and_not_shown(answer: bytes, words: str) -> None:
    async def run() -> TryOutcome:
        async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}}")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(reply, "127.0.0.1", 0)
        to = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
        async with server:
            hooks = Webhooks(rules=WebhookRules(allowed=(read_allowed("127.0.0.1"),)), lanes=Lanes(1))
            return await hooks.send(notice(to=to), DOCUMENT)

    assert asyncio.run(run()).words == words


def test_a_name_that_is_not_there_and_a_port_that_nobody_has() -> None:
    def nowhere(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no")

    assert send(notice(to="https://nowhere.test/"), resolve=nowhere).words == "has no address"
    with socket.socket() as taken:  # nobody listens, and nobody else can have the port meanwhile
        taken.bind(("127.0.0.1", 0))
        to = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        assert send(notice(to=to), "127.0.0.1").words == "could not be reached"


def test_names_that_hang_hold_up_nobody_but_themselves() -> None:
    async def run() -> list[TryOutcome]:
        def look_up(host: str, port: int) -> Sequence[str]:
            if host == "hangs.test":
                time.sleep(2)
            return resolve(host, port)

        hooks = Webhooks(
            rules=WebhookRules(allowed=(read_allowed("127.0.0.1"),)), lanes=Lanes(2), resolve=look_up, deadline_s=1.5
        )
        with receiving() as hook:
            slow = hooks.send(notice(to="https://hangs.test/"), DOCUMENT)
            return list(await asyncio.gather(slow, hooks.send(notice(to=hook.url), DOCUMENT)))

    slow, quick = asyncio.run(run())
    assert quick == SENT
    assert slow.words == "did not answer within 1.5 s"


def test_eight_tries_take_three_hours() -> None:
    waits = [delay_s(number) for number in range(1, 8)]
    assert waits[:3] == [10.0, 30.0, 90.0]
    assert 3 * 3600 <= sum(waits) < 4 * 3600
