"""What a gateway says to those of other machines over its link, and hears of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from tests.serve.gateway.played import PATIENCE_S, Played, endpoint, in_loop, version
from tests.serve.gateway.played import played as played_gateway
from tests.serve.gateway.played_server import KEY as LINK_KEY
from tests.serve.gateway.played_server import PlayedServer, played

from pliant.api.server_address import ServerAddress
from pliant.core.job import JobId, TaskId
from pliant.core.serving import (
    AskTotals,
    CountedTimes,
    GatewayHello,
    Load,
    Serve,
    SharedRow,
    SharedUse,
    TotalsElsewhere,
    TotalsSaid,
    TotalsWanted,
    UseElsewhere,
    VersionLoad,
)
from pliant.serve.gateway import elsewhere as module
from pliant.serve.gateway.elsewhere import Elsewhere, ForElsewhere
from pliant.serve.gateway.gateway_share import GatewayShare
from pliant.serve.gateway.meter import TimeSum, VersionTotals
from pliant.serve.gateway.server_link import LinkSettings, ServerLink
from pliant.serve.gateway.shared_counts import SharedCounts, SharedTable
from pliant.serve.gateway.use_news import LOST_S

JOB = JobId("job-9")
TIMES = CountedTimes(
    success=(3, 0.5), fail=(1, 0.25), queue=(4, 0.125), service=(4, 0.5), batches={2: (2, 0.5)}, idle_s=30.0
)


class Served:
    """A gateway as the link sees it."""

    def __init__(self) -> None:
        self.counted: dict[JobId, VersionTotals] = {}

    def apply(self, serve: Serve) -> None:
        raise AssertionError(f"nobody says {serve}")

    def loads(self) -> tuple[VersionLoad, ...]:
        return ()

    def ready(self) -> tuple[TaskId, ...]:
        return ()

    def totals(self, job_id: JobId) -> VersionTotals | None:
        return self.counted.get(job_id)


class Tokens:
    """What is remembered of tokens: nothing."""

    def forget(self, name: str) -> None:
        raise AssertionError(f"nobody says {name}")

    def doubt(self) -> None:
        pass


@pytest.fixture
def table() -> Iterator[SharedTable]:
    with closing(SharedTable()) as made:
        yield made


@asynccontextmanager
async def linked(file: Path, counts: SharedCounts, served: Served, elsewhere: Elsewhere) -> AsyncIterator[ServerLink]:
    """Run the link of gateway 0 of a machine with one, until the end of the block."""
    settings = LinkSettings(key=LINK_KEY, pid=7, http_url="http://127.0.0.1:7312")
    address = ServerAddress("http://127.0.0.1:9", file)
    link = ServerLink(settings, address=address, clock=time.monotonic, elsewhere=elsewhere)
    running = asyncio.create_task(link.run(served, Tokens()))
    try:
        yield link
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert counts.noted is None, "nobody reads what it would note"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def uses(server: PlayedServer) -> list[SharedUse]:
    return server.of(SharedUse)


@in_loop
async def test_a_gateway_says_all_that_it_uses_to_every_server_and_then_what_has_changed(
    tmp_path: Path, table: SharedTable
) -> None:
    file, counts = tmp_path / "server.json", SharedCounts(table, 0, time.monotonic)
    count = counts.of("token", b"t")
    count.add(2)
    async with linked(file, counts, Served(), Elsewhere(counts, 1, time.monotonic)) as link:
        with played(file) as server:
            await until(lambda: uses(server))
            assert isinstance(server.said[0], GatewayHello)
            (key,) = uses(server)[0].rows
            assert uses(server) == [SharedUse(rows={key: SharedRow(num=2)}, is_whole=True)]
            num_loads = len(server.of(Load))
            await until(lambda: len(server.of(Load)) > num_loads + 2)
            assert len(uses(server)) == 1, "nothing has changed"
            count.add(-1)
            await until(lambda: len(uses(server)) == 2)
            assert uses(server)[1] == SharedUse(rows={key: SharedRow(num=1)})
            count.spend(time.monotonic(), 0.5)
            await until(lambda: len(uses(server)) == 3)
            assert uses(server)[2] == SharedUse(rows={key: SharedRow(num=1, spent_s=0.5)})
        await until(lambda: not link.is_there)
        count.spend(time.monotonic(), 0.5)
        with played(file) as server:
            await until(lambda: uses(server))
            assert uses(server) == [SharedUse(rows={key: SharedRow(num=1)}, is_whole=True)]


@in_loop
async def test_what_others_use_counts_until_the_server_has_been_away_for_long(
    tmp_path: Path, table: SharedTable
) -> None:
    file, counts = tmp_path / "server.json", SharedCounts(table, 0, time.monotonic)
    count, now = counts.of("token", b"t"), [1000.0]
    async with linked(file, counts, Served(), Elsewhere(counts, 1, lambda: now[0])):
        with played(file) as server:
            count.add(1)
            await until(lambda: [one for one in uses(server) if one.rows])
            (key,) = uses(server)[-1].rows
            server.send(UseElsewhere(gateway=0, rows={key: SharedRow(num=9)}, is_whole=True))
            server.send_text('{"kind": "use_elsewhere", "gateway": 1, "rows": {"x": {"num": 1}}, "is_whole": true}')
            server.send_text(f'{{"kind":"use_elsewhere","gateway":1,"rows":{{"{key}":{{"num":-1}}}},"is_whole":true}}')
            server.send(UseElsewhere(gateway=1, rows={key: SharedRow(num=3, spent_s=50.0)}, is_whole=True))
            await until(lambda: count.num == 4)
            assert count.due > time.monotonic() + 40
        await until(lambda: counts.noted is None)
        now[0] += LOST_S - 0.1
        with played(file) as server:
            await until(lambda: uses(server))
            assert count.num == 4
        await until(lambda: counts.noted is None)
        now[0] += LOST_S + 0.1
        await until(lambda: count.num == 1)


@in_loop
async def test_a_gateway_says_what_it_has_counted_itself(tmp_path: Path, table: SharedTable) -> None:
    file, served = tmp_path / "server.json", Served()
    counts = SharedCounts(table, 0, time.monotonic)
    served.counted[JOB] = VersionTotals(
        success=TimeSum(3, 0.5),
        fail=TimeSum(1, 0.25),
        queue=TimeSum(4, 0.125),
        service=TimeSum(4, 0.5),
        batches={2: TimeSum(2, 0.5)},
        last_at=970.0,
    )
    served.counted[JobId("job-2")] = VersionTotals(success=TimeSum(1 << 80, 0.5))
    async with linked(file, counts, served, Elsewhere(counts, 1, lambda: 1000.0)):
        with played(file) as server:
            await until(lambda: uses(server))
            server.send(TotalsWanted(number=4, job_ids=(JobId("unknown"), JOB, JobId("job-2"))))
            await until(lambda: server.of(TotalsSaid))
            assert server.of(TotalsSaid) == [TotalsSaid(number=4, totals={JOB: TIMES})]


class Asked:
    """A server that answers what gateways of other machines have counted, or does not."""

    def __init__(self, table: SharedTable) -> None:
        self.elsewhere = Elsewhere(SharedCounts(table, 0, time.monotonic), 1, lambda: 1000.0)
        self.asked: list[AskTotals] = []
        self.answers = True

    def send(self, message: ForElsewhere) -> None:
        if isinstance(message, AskTotals):
            self.asked.append(message)
            if self.answers:
                known = {job_id: TIMES for job_id in message.job_ids if job_id == JOB}
                self.elsewhere.hear(TotalsElsewhere(number=message.number, totals=({}, known)), lambda _: None)

    @asynccontextmanager
    async def there(self) -> AsyncIterator[None]:
        speaking = asyncio.create_task(self.elsewhere.speak(self.send, lambda: True))
        await asyncio.sleep(0)
        yield
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)


@in_loop
async def test_many_versions_are_asked_about_in_questions_of_a_few(table: SharedTable) -> None:
    asked = Asked(table)
    many = [JobId(f"job-{number}") for number in range(150)]
    nothing: dict[JobId, list[VersionTotals]] = {job_id: [] for job_id in many}
    assert await asked.elsewhere.totals_of(many) == nothing
    assert asked.asked == [], "no server is there"
    async with asked.there():
        found = await asked.elsewhere.totals_of(many)
        assert await asked.elsewhere.totals_of(()) == {}
    assert [len(one.job_ids) for one in asked.asked] == [64, 64, 22]
    (totals,) = found[JOB]
    assert (totals.success, totals.batches, totals.last_at) == (TimeSum(3, 0.5), {2: TimeSum(2, 0.5)}, 970.0)
    assert dict(found) == {**nothing, JOB: [totals]}


@in_loop
async def test_a_server_that_does_not_answer_is_not_asked_for_a_moment_and_one_that_goes_ends_the_wait(
    table: SharedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(table)
    asked.answers = False
    monkeypatch.setattr(module, "SILENT_S", PATIENCE_S)
    monkeypatch.setattr(module, "ANSWER_S", 10 * PATIENCE_S)
    async with asked.there():
        waiting = asyncio.create_task(asked.elsewhere.totals_of([JOB]))
        await until(lambda: asked.asked)
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting == {JOB: []}
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    async with asked.there():
        assert await asyncio.gather(*(asked.elsewhere.totals_of([JOB]) for _ in range(40))) == [{JOB: []}] * 40
        assert len(asked.asked) <= 1 + 4


@asynccontextmanager
async def counting(share: GatewayShare) -> AsyncIterator[Played]:
    """A gateway that has answered one request in a batch of two."""
    async with played_gateway(endpoint(version()), share=share) as world:
        kernel = await world.kernel()
        post = world.post()
        frame = await kernel.request()
        world.now[0] += 1
        kernel.answer(frame, busy_s=0.25, batch=2)
        await post
        yield world


@in_loop
async def test_a_client_that_asks_one_gateway_hears_of_those_on_other_machines(table: SharedTable) -> None:
    asked = Asked(table)
    async with counting(GatewayShare(of=2, elsewhere=asked.elsewhere)) as world:
        (alone,) = (await world.get("/v2/models/digits/stats")).json()["model_stats"]
        async with asked.there():
            (both,) = (await world.get("/v2/models/digits/stats")).json()["model_stats"]
    assert (alone["inference_stats"]["success"]["count"], both["inference_stats"]["success"]["count"]) == (1, 4)
    assert [one["compute_infer"]["count"] for one in both["batch_stats"]] == [1 + 2]
    assert both["last_inference"] == alone["last_inference"], "the one here was the last one"
