"""The links of gateways at the server, with real WebSockets, and whose tokens are."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.link_proofs import new_proof
from tests.server.conftest import SECRET, TOKEN, Served
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from pliant.api.server_address import ServerAddress
from pliant.api.serving_link import (
    GATEWAY_PATH,
    MAX_FROM_GATEWAY_BYTES,
    decode_to_gateway,
    encode_from_gateway,
    gateway_key,
)
from pliant.core.access import Permission, Role
from pliant.core.errors import Unauthorized
from pliant.core.job import JobId, TaskId
from pliant.core.link_proof import PROOF_HEADER
from pliant.core.people import TokenSettings
from pliant.core.serving import (
    Answer,
    Ask,
    CountedLoad,
    CountedLoads,
    Forget,
    FromGateway,
    GatewayHello,
    KernelHung,
    KernelReady,
    Load,
    RequestLimits,
    Retire,
    Serve,
    ServedEndpoint,
    ToGateway,
    VersionLoad,
)
from pliant.core.serving_profile import ServingProfile
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.known_callers import KnownCallers
from pliant.serve.gateway.meter import VersionTotals
from pliant.serve.gateway.server_link import LinkSettings, ServerLink
from pliant.server.gateways import VALID_S

Eventually = Callable[[Callable[[], Any]], Any]
KEY = gateway_key(SECRET)
HELLO = GatewayHello(pid=7, http_url="http://127.0.0.1:7312")


class Listener:
    """Writes down what gateways say; a load of the job `slow` makes it wait, one of `bad` makes it fail."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.heard: list[tuple[str, object]] = []
        """The same with the name of who said it."""
        self.go_on = threading.Event()

    def gateway_ready(self, name: str, hello: GatewayHello) -> None:
        self._note(name, hello)

    def kernel_ready(self, name: str, message: KernelReady) -> None:
        self._note(name, message)

    def kernel_hung(self, name: str, message: KernelHung) -> None:
        self._note(name, message)

    def take_load(self, name: str, message: Load) -> None:
        if message.versions and message.versions[0].job_id == "slow":
            assert self.go_on.wait(30)
        if message.versions and message.versions[0].job_id == "bad":
            raise KeyError("bad")
        self._note(name, message)

    def gateway_gone(self, name: str) -> None:
        self._note(name, "gone")

    @property
    def all_are_gone(self) -> bool:
        """The last that was heard of each gateway is that it is gone."""
        return all(last == "gone" for last in dict(self.heard).values())

    def _note(self, name: str, message: object) -> None:
        self.heard.append((name, message))
        self.said.append(message)


@pytest.fixture(scope="module")
def listener() -> Listener:
    return Listener()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("gateways"), serving=listener)
    yield made
    made.close()


@pytest.fixture
def stack(served: Served, listener: Listener, eventually: Eventually) -> Iterator[ExitStack]:
    """Closes the links of a test; then nothing of it is left for the next one."""
    with ExitStack() as stack:
        yield stack
    listener.go_on.set()
    eventually(lambda: len(served.gateways) == 0 and listener.all_are_gone)
    served.gateways.send_serve(Serve(endpoints=()))


def open_link(served: Served, name: str = "local", key: str = KEY, challenge: str = "") -> ClientConnection:
    proof = new_proof(name, challenge)
    url = f"ws://{served.address}{GATEWAY_PATH}?gateway={name}"
    link = connect(url, additional_headers={"Authorization": proof.authorization(key)}, compression=None)
    assert link.response is not None
    assert proof.proves("open", key, link.response.headers[PROOF_HEADER])
    return link


def say(link: ClientConnection, *messages: FromGateway) -> None:
    for message in messages:
        link.send(encode_from_gateway(message))


def next_of(link: ClientConnection) -> ToGateway:
    return decode_to_gateway(link.recv(timeout=30))


def answer_to(link: ClientConnection, token: str, number: int = 1) -> Answer:
    say(link, Ask(number=number, token=token))
    while not isinstance(answer := next_of(link), Answer):
        continue
    assert answer.number == number
    return answer


def end_of(link: ClientConnection) -> int:
    """Wait until the server closes a link; return with which code. It says nothing but what is to be served."""
    try:
        while True:
            assert isinstance(next_of(link), Serve)
    except ConnectionClosed as closed:
        return 0 if closed.rcvd is None else closed.rcvd.code


def load(job_id: str) -> Load:
    return Load(versions=(VersionLoad(job_id=JobId(job_id), seconds=0.25, completed=3),))


def counted_loads(counts: dict[str, int]) -> str:
    one = {"job_id": "job-1", "seconds": 0.25, "latency_counts": {}, "service_counts": counts}
    return json.dumps({"kind": "counted_loads", "versions": [one]})


def serving(name: str) -> Serve:
    return Serve(endpoints=(ServedEndpoint(name=name, owner="ada", profile=ServingProfile()),))


def test_what_a_gateway_says_is_handed_over_in_its_order_and_its_end_comes_last(
    served: Served, listener: Listener, stack: ExitStack, eventually: Eventually
) -> None:
    listener.said.clear()
    ready = KernelReady(task_id=TaskId("job-1.1"), metadata={"platform": "torch"})
    hung = KernelHung(task_id=TaskId("job-1.2"), why="computes for 61 s")
    with open_link(served):  # says nothing, and so it is not gone either
        eventually(lambda: len(served.gateways) == 1)
    eventually(lambda: len(served.gateways) == 0)
    with open_link(served) as link:
        say(link, HELLO, ready, load("job-1"), load("bad"), hung)

    eventually(lambda: "gone" in listener.said)

    assert listener.said == [HELLO, ready, load("job-1"), hung, "gone"], "one that cannot be taken stops nothing"


def test_everything_is_handed_over_with_the_name_of_the_gateway_that_said_it(
    served: Served, listener: Listener, stack: ExitStack, eventually: Eventually
) -> None:
    ready, hung = KernelReady(task_id=TaskId("job-1.1")), KernelHung(task_id=TaskId("job-1.2"), why="is silent")
    counted = CountedLoad(
        job_id=JobId("job-1"), seconds=0.25, completed=3, latency_counts={7: 3}, service_counts={5: 2, 6: 1}
    )
    first = stack.enter_context(open_link(served))
    say(first, HELLO)
    with open_link(served, "local-1") as link:
        say(link, HELLO, ready, hung, CountedLoads(versions=(counted,)))
        say(first, load("job-8"))
        eventually(lambda: load("job-8") in listener.said)
    eventually(lambda: ("local-1", "gone") in listener.heard)

    expected = [replace(HELLO, number=1), ready, hung, Load(versions=(counted,)), "gone"]
    assert [message for name, message in listener.heard if name == "local-1"] == expected
    assert ("local", load("job-8")) in listener.heard


def test_a_gateway_is_the_one_whose_key_it_has_whatever_it_says_of_itself(
    served: Served, listener: Listener, stack: ExitStack, eventually: Eventually
) -> None:
    link = stack.enter_context(open_link(served, "gpu3-6", gateway_key(SECRET, "gpu3")))
    for pid in (1, 2):
        say(link, replace(HELLO, pid=pid))
    expected = [("gpu3-6", replace(HELLO, pid=pid, number=6, machine="gpu3")) for pid in (1, 2)]
    eventually(lambda: [one for one in listener.heard if one[0] == "gpu3-6"] == expected)


@pytest.mark.parametrize(
    ("name", "key", "challenge"),
    [("local", gateway_key(b"of another server"), ""), ("local", KEY, "of the server before"), ("../x", KEY, "")],
)
def test_a_wrong_proof_opens_no_link_and_the_refusal_is_proved(
    served: Served, listener: Listener, name: str, key: str, challenge: str
) -> None:
    listener.said.clear()
    with pytest.raises(InvalidStatus) as refused:
        open_link(served, name, key, challenge)
    assert refused.value.response.status_code == 401
    assert refused.value.response.headers[PROOF_HEADER]
    assert listener.said == []


def test_neither_a_proof_for_another_name_nor_a_token_opens_a_link(served: Served) -> None:
    for header in (new_proof("other").authorization(KEY), f"Bearer {TOKEN}", ""):
        url = f"ws://{served.address}{GATEWAY_PATH}?gateway=local"
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers={"Authorization": header})
        assert refused.value.response.status_code == 401


def test_who_connects_learns_the_newest_of_what_is_to_be_served_and_then_every_change(
    served: Served, stack: ExitStack
) -> None:
    for name in ("old", "new"):
        served.gateways.send_serve(serving(name))
    link = stack.enter_context(open_link(served))
    say(link, HELLO)
    assert next_of(link) == serving("new")
    served.gateways.send_serve(serving("newest"))
    assert next_of(link) == serving("newest")


def test_the_newest_connection_of_a_gateway_takes_the_place_of_the_one_before(
    served: Served, listener: Listener, stack: ExitStack, eventually: Eventually
) -> None:
    first = stack.enter_context(open_link(served, "local-4"))
    say(first, HELLO)
    second = stack.enter_context(open_link(served, "local-4"))
    say(second, HELLO)
    assert end_of(first) == 4000
    say(second, load("job-1"))
    eventually(lambda: ("local-4", load("job-1")) in listener.heard)
    assert ("local-4", "gone") not in listener.heard
    assert len(served.gateways) == 1


def test_the_end_of_a_gateway_is_no_news_any_more_when_it_is_back(
    served: Served, listener: Listener, stack: ExitStack, eventually: Eventually
) -> None:
    listener.go_on.clear()
    with open_link(served, "local-5") as link:
        say(link, HELLO, load("slow"))
        eventually(lambda: ("local-5", replace(HELLO, number=5)) in listener.heard)
    eventually(lambda: len(served.gateways) == 0)
    link = stack.enter_context(open_link(served, "local-5"))
    say(link, HELLO)
    assert answer_to(link, TOKEN).name == "admin"
    listener.go_on.set()
    say(link, load("job-1"))
    eventually(lambda: ("local-5", load("job-1")) in listener.heard)
    assert ("local-5", "gone") not in listener.heard


def test_a_token_is_answered_with_what_its_holder_may(served: Served, stack: ExitStack) -> None:
    served.add_user("ada")
    served.add_user("vic", Role.VIEWER)
    make = served.people.credentials.make_token
    whole = make("ada", TokenSettings(label="whole")).text
    narrow = make("vic", TokenSettings(label="narrow", scopes=frozenset({Permission.JOBS_READ}))).text
    session = served.people.credentials.open_session("ada").text
    link = stack.enter_context(open_link(served))
    say(link, HELLO)

    assert answer_to(link, TOKEN) == Answer(number=1, name="admin", sees_all=True, may_infer=True, valid_s=VALID_S)
    assert answer_to(link, whole, 2) == Answer(number=2, name="ada", may_infer=True, valid_s=VALID_S)
    assert answer_to(link, session, 3).name == "ada"
    assert answer_to(link, narrow, 4) == Answer(number=4, name="vic", valid_s=VALID_S)
    for number, worthless in enumerate(("", "wrong", whole[:-1], "\x00", "ü" * 5000), start=5):
        assert answer_to(link, worthless, number) == Answer(number=number)


def test_the_gateway_learns_what_a_token_is_limited_to(served: Served, stack: ExitStack) -> None:
    served.add_user("shopkeeper")
    asked = TokenSettings(
        label="shop",
        scopes=frozenset({Permission.INFER}),
        endpoints=frozenset({"mnist", "digits"}),
        max_rate=50.0,
        max_concurrent=8,
    )
    token = served.people.credentials.make_token("shopkeeper", asked).text
    link = stack.enter_context(open_link(served))
    say(link, HELLO)
    assert answer_to(link, token) == Answer(
        number=1,
        name="shopkeeper",
        may_infer=True,
        endpoints=("digits", "mnist"),
        limits=RequestLimits(max_rate=50.0, max_concurrent=8),
        valid_s=VALID_S,
    )


def test_gateways_are_told_at_once_when_what_somebodys_tokens_open_has_changed(
    served: Served, stack: ExitStack
) -> None:
    served.add_user("cid")
    people = served.people
    links = [stack.enter_context(open_link(served, name)) for name in ("local", "local-1")]
    for link in links:
        say(link, HELLO)
        assert answer_to(link, TOKEN).name == "admin"
    token = people.credentials.make_token("cid", TokenSettings(label="x"))
    other = people.credentials.make_token("cid", TokenSettings(label="y"))
    session = people.credentials.open_session("cid")
    changes: list[tuple[Callable[[], object], str]] = [
        (lambda: people.credentials.revoke_token(token.kept.noun.name), token.text),
        (lambda: people.credentials.end_session(session.kept.noun.name), session.text),
        (lambda: people.accounts.change("cid", {"role": Role.VIEWER}, by="admin"), ""),
        (lambda: people.accounts.change("cid", {"active": False}, by="admin"), other.text),
        (lambda: people.accounts.remove("cid", by="admin"), other.text),
    ]
    for number, (change, worthless) in enumerate(changes, start=2):
        change()
        for link in links:
            assert next_of(link) == Forget(name="cid")
            assert answer_to(link, worthless, number) == Answer(number=number)


def test_an_answer_is_valid_no_longer_than_the_token(served: Served, stack: ExitStack) -> None:
    served.add_user("eve")
    session = served.people.credentials.open_session("eve")
    link = stack.enter_context(open_link(served))
    say(link, HELLO)
    served.clock.advance(session.kept.noun.expires_at - served.clock.now() - 2.0)
    assert answer_to(link, session.text).valid_s == pytest.approx(2.0)
    served.clock.advance(3.0)
    assert answer_to(link, session.text, 2) == Answer(number=2)


def test_questions_are_answered_while_a_load_waits_to_be_taken(
    served: Served, listener: Listener, stack: ExitStack, eventually: Eventually
) -> None:
    listener.go_on.clear()
    listener.said.clear()
    link = stack.enter_context(open_link(served))
    say(link, HELLO, load("slow"))
    assert answer_to(link, TOKEN).name == "admin"
    eventually(lambda: HELLO in listener.said)
    assert load("slow") not in listener.said
    listener.go_on.set()
    eventually(lambda: load("slow") in listener.said)


@pytest.mark.parametrize(
    "frames",
    [
        ["{}"],
        ["no JSON"],
        [encode_from_gateway(Ask(number=1, token=TOKEN))],
        [encode_from_gateway(HELLO), '{"kind":"load"}'],
        [encode_from_gateway(HELLO), counted_loads({"-1": 3})],
        [encode_from_gateway(HELLO), counted_loads({"100000": 3})],
        [encode_from_gateway(HELLO), counted_loads({"7": -3})],
        [encode_from_gateway(HELLO), counted_loads({"7": 10**400})],
        [encode_from_gateway(HELLO), "[" * 100_000],
        [encode_from_gateway(HELLO), " " * (MAX_FROM_GATEWAY_BYTES + 1)],
    ],
)
def test_who_does_not_keep_to_the_rules_is_cut_off_without_an_answer(
    served: Served, stack: ExitStack, frames: list[str]
) -> None:
    link = stack.enter_context(open_link(served))
    for frame in frames:
        link.send(frame)
    assert end_of(link) in (1008, 1009)


def test_a_server_that_ends_for_good_retires_those_who_are_there_and_those_who_come(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    served = Served(tmp_path_factory.mktemp("retired"))  # without a listener: what is said is dropped
    with ExitStack() as links:
        links.callback(served.close)
        first = links.enter_context(open_link(served))
        say(first, HELLO, load("job-1"))
        served.gateways.retire()
        assert next_of(first) == Retire()
        second = links.enter_context(open_link(served, "local-1"))
        say(second, HELLO)
        assert next_of(second) == Retire()
        served.gateways.close_all()
        assert end_of(second) == 1001


class Kernels:
    """What a gateway's own end of the link needs of a gateway."""

    def __init__(self) -> None:
        self.applied: list[Serve] = []
        self.counted: dict[JobId, VersionTotals] = {}

    def apply(self, serve: Serve) -> None:
        self.applied.append(serve)

    def loads(self) -> tuple[VersionLoad, ...]:
        return load("job-1").versions

    def ready(self) -> tuple[TaskId, ...]:
        return (TaskId("job-1.1"),)

    def totals(self, job_id: JobId) -> VersionTotals | None:
        return self.counted.get(job_id)


async def ask_on(callers: KnownCallers, token: str) -> None:
    """Ask whose a token is until it is refused."""
    while True:
        await callers.who(token)
        await asyncio.sleep(0.005)


def test_a_gateways_own_end_of_the_link_and_the_servers_understand_each_other(
    served: Served, listener: Listener, stack: ExitStack, tmp_path: Path
) -> None:
    listener.said.clear()
    file = tmp_path / "server.json"
    file.write_text(json.dumps({"url": f"http://{served.address}", "challenge": ""}))
    served.gateways.send_serve(serving("digits"))
    served.add_user("eva")
    revoked = served.people.credentials.make_token("eva", TokenSettings(label="x"))

    async def play() -> None:
        settings = LinkSettings(key=KEY, pid=7, http_url=HELLO.http_url)
        link = ServerLink(settings, address=ServerAddress("http://127.0.0.1:9", file), clock=time.monotonic)
        callers, kernels = KnownCallers(link, time.monotonic), Kernels()
        running = asyncio.create_task(link.run(kernels, callers))
        link.notify(KernelHung(task_id=TaskId("job-1.2"), why="is silent"))
        async with asyncio.timeout(30):
            assert await callers.who(TOKEN) == CallerRights(name="admin", sees_all=True, may_infer=True)
            with pytest.raises(Unauthorized):
                await callers.who("worthless")
            while load("job-1") not in listener.said or not kernels.applied:
                await asyncio.sleep(0.005)
        assert kernels.applied == [serving("digits")]
        assert (await callers.who(revoked.text)).name == "eva"
        served.people.credentials.revoke_token(revoked.kept.noun.name)
        async with asyncio.timeout(VALID_S / 3):  # by itself it would be asked for again much later
            with pytest.raises(Unauthorized):
                await ask_on(callers, revoked.text)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(play())
    hello = replace(HELLO, ready=(TaskId("job-1.1"),))
    said = [message for message in listener.said if message != "gone"]  # that of the test before
    assert said[:3] == [hello, KernelHung(task_id=TaskId("job-1.2"), why="is silent"), load("job-1")]
