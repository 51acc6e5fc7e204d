"""The gateway's end of its link, with real WebSockets to a server that is played."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.played_server import KEY, PATIENCE_S, played

from pliant.api.server_address import ServerAddress
from pliant.api.serving_link import MAX_FROM_GATEWAY_BYTES
from pliant.core.errors import Unavailable
from pliant.core.job import JobId, TaskId
from pliant.core.serving import (
    Answer,
    CountedLoad,
    CountedLoads,
    Forget,
    GatewayHello,
    KernelHung,
    KernelReady,
    Load,
    Retire,
    Serve,
    ServedEndpoint,
    Switch,
    SwitchOutcome,
    VersionLoad,
)
from pliant.core.serving_profile import ServingProfile
from pliant.core.time_counts import NUM_TIME_BUCKETS
from pliant.serve.gateway.meter import VersionTotals
from pliant.serve.gateway.server_link import LOAD_S, URGED_S, LinkSettings, ServerLink

ADA = Answer(number=0, name="ada", may_infer=True, valid_s=30.0)
TASK = TaskId("job-1.1")
READY = KernelReady(task_id=TASK, metadata={"platform": "torch"})
HUNG = KernelHung(task_id=TaskId("job-1.2"), why="computes for 61 s")
LOADS = (VersionLoad(job_id=JobId("job-1"), seconds=0.25, queued=3),)


class Kernels:
    """A gateway as the link sees it."""

    def __init__(self) -> None:
        self.applied: list[Serve] = []
        self.counted: dict[JobId, VersionTotals] = {}
        self.tasks: tuple[TaskId, ...] = ()
        self.fails = False
        self.reports: tuple[VersionLoad, ...] = LOADS

    def apply(self, serve: Serve) -> None:
        if self.fails:
            raise KeyError("a fault")
        self.applied.append(serve)

    def loads(self) -> tuple[VersionLoad, ...]:
        return self.reports

    def ready(self) -> tuple[TaskId, ...]:
        return self.tasks

    def totals(self, job_id: JobId) -> VersionTotals | None:
        return self.counted.get(job_id)


class Tokens:
    """What is remembered of tokens."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def forget(self, name: str) -> None:
        self.heard.append(name)

    def doubt(self) -> None:
        self.heard.append("doubt")


class Clock:
    """A clock that a test sets; the link asks it with every attempt."""

    def __init__(self) -> None:
        self.now = 0.0
        self._num_asked = 0

    def __call__(self) -> float:
        self._num_asked += 1
        return self.now

    async def is_asked(self) -> None:
        """Wait until two more attempts have failed."""
        before = self._num_asked
        await until(lambda: self._num_asked > before + 2)


def serving(name: str) -> Serve:
    return Serve(endpoints=(ServedEndpoint(name=name, owner="ada", profile=ServingProfile()),))


def settings(orphan_s: float = 600.0, answer_s: float = PATIENCE_S, key: str = KEY) -> LinkSettings:
    return LinkSettings(key=key, pid=7, http_url="http://127.0.0.1:7312", orphan_s=orphan_s, answer_s=answer_s)


@asynccontextmanager
async def linked(
    file: Path, kernels: Kernels, given: LinkSettings | None = None, tokens: Tokens | None = None
) -> AsyncIterator[ServerLink]:
    """Run a link until the end of the block."""
    address = ServerAddress("http://127.0.0.1:9", file)
    link = ServerLink(given or settings(), address=address, clock=time.monotonic)
    running = asyncio.create_task(link.run(kernels, tokens or Tokens()))
    try:
        yield link
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await test()

    asyncio.run(whole())


def test_a_gateway_says_how_things_stand_to_every_server_and_finds_the_next_one_by_its_file(tmp_path: Path) -> None:
    file, kernels = tmp_path / "server.json", Kernels()

    async def meet(name: str, link: ServerLink, hello: GatewayHello) -> None:
        with played(file, greeting=(serving(name),)) as server:
            await until(lambda: server.of(Load))
            assert server.said_first(9) == [hello, READY, HUNG]
            assert server.of(Load)[0] == Load(versions=LOADS)
            await until(lambda: kernels.applied[-1:] == [serving(name)])
            assert link.is_there
        await until(lambda: not link.is_there)

    async def test() -> None:
        async with linked(file, kernels) as link:
            link.notify(READY)
            link.notify(KernelReady(task_id=TaskId("job-1.9")))  # it is gone when the server comes
            link.notify(HUNG)
            kernels.tasks = (TASK,)
            hello = GatewayHello(pid=7, http_url="http://127.0.0.1:7312", ready=(TASK,))
            for name in ("first", "second"):
                await meet(name, link, hello)

    run(test)


def test_one_of_several_gateways_proves_its_own_name_and_sends_counts_in_frames_that_are_taken(tmp_path: Path) -> None:
    file, kernels = tmp_path / "server.json", Kernels()
    every = dict.fromkeys(range(NUM_TIME_BUCKETS), 100_000)
    kernels.reports = tuple(
        CountedLoad(job_id=JobId(f"job-{number}"), seconds=0.25, latency_counts=every, service_counts=every)
        for number in range(100)
    )

    async def test() -> None:
        with played(file) as server:
            async with linked(file, kernels, replace(settings(), name="local-2")):
                await until(lambda: len(server.of(CountedLoads)) >= 2)
                first, second = server.of(CountedLoads)[:2]
                assert (*first.versions, *second.versions) == kernels.reports
                assert server.names[-1] == "local-2"
                assert server.of(Load) == []

    run(test)


def test_a_server_that_says_nothing_any_more_is_left_when_another_leads(tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    async def test() -> None:
        with played(file) as old:
            async with linked(file, Kernels()):
                await until(lambda: old.of(Load))
                with played(file) as new:
                    await until(lambda: new.of(Load))
                    await until(lambda: not old.is_connected)

    run(test)


def test_what_a_kernel_says_is_sent_at_once_and_too_much_metadata_is_left_out(tmp_path: Path) -> None:
    file, kernels = tmp_path / "server.json", Kernels()
    long = KernelReady(task_id=TASK, metadata={"platform": "x" * MAX_FROM_GATEWAY_BYTES})

    async def test() -> None:
        with played(file) as server:
            async with linked(file, kernels) as link:
                await until(lambda: server.of(Load))
                kernels.tasks = (TASK,)
                link.notify(long)
                link.notify(HUNG)
                await until(lambda: HUNG in server.said)
                assert server.said_first(9)[1:] == [KernelReady(task_id=TASK), HUNG]

    run(test)


def test_a_load_is_sent_soon_when_it_is_urged_but_no_faster_than_allowed(tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    async def test() -> None:
        with played(file) as server:
            async with linked(file, Kernels()) as link:
                await until(lambda: server.of(Load))
                begun, before = time.monotonic(), len(server.of(Load))
                while (passed := time.monotonic() - begun) < 4 * LOAD_S:
                    link.urge()
                    await asyncio.sleep(0.001)
                sent = len(server.of(Load)) - before
                assert sent > passed / LOAD_S + 1, "more than without"
                assert sent <= passed / URGED_S + 2

    run(test)


def test_a_question_waits_for_the_next_server_and_no_longer_than_it_may(tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    async def test() -> None:
        async with linked(file, Kernels()) as link:
            asked = asyncio.create_task(link.ask("s3cr3t"))
            await asyncio.sleep(0)
            with played(file, answers={"s3cr3t": ADA, "worthless": None}) as server:
                assert (await asked).name == "ada"
                assert (await link.ask("worthless")).name is None
                assert server.asked == ["s3cr3t", "worthless"]
        async with linked(file, Kernels(), settings(answer_s=0.05)) as link:
            with pytest.raises(Unavailable):
                await link.ask("s3cr3t")

    run(test)


def test_a_switch_waits_for_the_next_server_and_no_longer_than_it_may(tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    async def test() -> None:
        async with linked(file, Kernels()) as link:
            asked = asyncio.create_task(link.switch("s3cr3t", "digits", start=True, address="192.0.2.7"))
            await asyncio.sleep(0)
            with played(file) as server:
                await until(lambda: server.of(Switch))
                (heard,) = server.of(Switch)
                told = SwitchOutcome(number=heard.number, status=403, message="no")
                assert heard == Switch(
                    number=heard.number, token="s3cr3t", endpoint="digits", start=True, address="192.0.2.7"
                )
                assert "s3cr3t" not in repr(heard)
                server.send(told)
                assert await asked == told
        async with linked(file, Kernels(), settings(answer_s=0.05)) as link:
            with pytest.raises(Unavailable):
                await link.switch("s3cr3t", "digits", start=False, address="")

    run(test)


def test_a_stranger_at_the_old_port_gets_no_token_and_its_answer_counts_for_nothing(tmp_path: Path) -> None:
    file, kernels = tmp_path / "server.json", Kernels()

    async def test() -> None:
        with played(file, key="a guess", answers={"s3cr3t": ADA}, greeting=(serving("evil"), Retire())) as stranger:
            async with linked(file, kernels, settings(answer_s=1.0)) as link:
                link.notify(READY)
                with pytest.raises(Unavailable):
                    await link.ask("s3cr3t")
                await until(lambda: stranger.num_connections > 1)
                assert not link.is_there
        assert stranger.said == []
        assert kernels.applied == []
        heard = "\n".join(stranger.authorizations)
        assert KEY not in heard
        assert "s3cr3t" not in heard

    run(test)


def test_a_gateway_with_a_wrong_key_is_refused_and_asks_again(tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    async def test() -> None:
        with played(file) as server:
            async with linked(file, Kernels(), settings(key="another")) as link:
                await until(lambda: len(server.authorizations) > 1)
                assert not link.is_there
                assert server.said == []

    run(test)


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"kind":"load","versions":[]}'])
def test_a_message_that_is_none_is_ignored_and_one_that_leads_to_a_fault_does_not_end_the_gateway(
    tmp_path: Path, text: str
) -> None:
    file, kernels = tmp_path / "server.json", Kernels()

    async def test() -> None:
        with played(file) as server:
            async with linked(file, kernels):
                await until(lambda: server.of(Load))
                server.send_text(text)
                server.send(serving("digits"))
                await until(lambda: kernels.applied == [serving("digits")])
                assert server.num_connections == 1
                kernels.fails = True
                server.send(serving("other"))
                await until(lambda: server.num_connections == 2)

    run(test)


def test_tokens_are_doubted_on_every_connection_and_forgotten_when_the_server_says_so(tmp_path: Path) -> None:
    file, tokens = tmp_path / "server.json", Tokens()

    async def test() -> None:
        async with linked(file, Kernels(), tokens=tokens) as link:
            for _ in range(2):
                with played(file, greeting=(Forget(name="ada"),)):
                    await until(lambda: tokens.heard[-1:] == ["ada"])
                await until(lambda: not link.is_there)
                tokens.heard.append("gone")
        assert tokens.heard == ["doubt", "ada", "gone"] * 2

    run(test)


def test_a_server_that_retires_ends_the_link_for_good(tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    async def test() -> None:
        with played(file) as server:
            link = _link(file, settings())
            running = asyncio.create_task(link.run(Kernels(), Tokens()))
            await until(lambda: server.of(Load))
            server.send(Retire())
            async with asyncio.timeout(PATIENCE_S):
                assert "ended" in await running
            assert not link.is_there

    run(test)


def test_a_gateway_gives_up_when_no_server_was_there_for_long_and_not_before(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps({"url": "http://127.0.0.1:9"}))  # nobody listens there

    async def test() -> None:
        clock = Clock()
        link = ServerLink(settings(), address=ServerAddress("http://127.0.0.1:9", file), clock=clock)
        running = asyncio.create_task(link.run(Kernels(), Tokens()))
        await clock.is_asked()
        clock.now = 599.0
        with played(file) as server:
            await until(lambda: server.of(Load))
            clock.now = 10_000.0
        await until(lambda: not link.is_there)
        await clock.is_asked()
        clock.now = 10_599.0
        await clock.is_asked()
        assert not running.done()
        clock.now = 10_601.0
        async with asyncio.timeout(PATIENCE_S):
            assert "no server was there for 600 s" in await running

    run(test)


def _link(file: Path, given: LinkSettings) -> ServerLink:
    return ServerLink(given, address=ServerAddress("http://127.0.0.1:9", file), clock=time.monotonic)


def test_the_key_stands_in_no_text() -> None:
    assert KEY not in repr(settings())


def test_kernels_that_come_and_go_do_not_fill_the_memory_of_a_gateway_whose_server_does_not_read(
    tmp_path: Path,
) -> None:
    link = ServerLink(settings(), address=ServerAddress("http://127.0.0.1:9", tmp_path / "none"), clock=time.monotonic)
    link._connected_to = "http://127.0.0.1:9"  # a server that takes nothing

    for number in range(30_000):
        link.notify(KernelReady(task_id=TaskId(f"job-1.{number}")))

    assert len(link._metadata) <= 4096
    assert len(link._outbox) <= 3 * 4096
    assert link._outbox[-1] == KernelReady(task_id=TaskId("job-1.29999"))


def test_of_a_kernel_that_is_gone_nothing_is_kept(tmp_path: Path) -> None:
    link = ServerLink(settings(), address=ServerAddress("http://127.0.0.1:9", tmp_path / "none"), clock=time.monotonic)
    link.notify(READY)
    link.notify(KernelReady(task_id=TaskId("job-1.9")))

    link.forget(TaskId("job-1.9"))
    link.forget(TaskId("job-1.9"))  # its link is cut and its version is gone

    assert list(link._metadata) == [TASK]
