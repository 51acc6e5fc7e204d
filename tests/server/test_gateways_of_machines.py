"""The server's hub between a gateway of its own, with its own end of the link, and one of another machine."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from tests.link_proofs import new_proof
from tests.server.conftest import SECRET, Served
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from pliant.api.server_address import ServerAddress
from pliant.api.serving_link import (
    GATEWAY_PATH,
    MAX_JOBS,
    MAX_ROWS,
    decode_from_gateway,
    decode_to_gateway,
    encode_from_gateway,
    gateway_key,
)
from pliant.core.errors import InvalidInput
from pliant.core.job import JobId, TaskId
from pliant.core.serving import (
    AskTotals,
    CountedTimes,
    FromGateway,
    GatewayHello,
    KernelEntry,
    Retire,
    Serve,
    SharedRow,
    SharedUse,
    TotalsElsewhere,
    TotalsSaid,
    TotalsWanted,
    UseElsewhere,
    VersionLoad,
)
from pliant.serve.gateway.elsewhere import Elsewhere
from pliant.serve.gateway.meter import TimeSum, VersionTotals
from pliant.serve.gateway.server_link import LinkSettings, ServerLink
from pliant.serve.gateway.shared_counts import SharedCounts, SharedTable

KEY, LIMIT = gateway_key(SECRET), "5f" * 16
JOB = JobId("job-1")
TIMES = CountedTimes(success=(3, 0.5), fail=(0, 0.0), queue=(3, 0.1), service=(3, 0.4), idle_s=2.0)
PATIENCE_S = 30.0


class OwnGateway:
    """A gateway of the server's own machine, as its link sees it."""

    def apply(self, serve: Serve) -> None:
        pass

    def loads(self) -> tuple[VersionLoad, ...]:
        return ()

    def ready(self) -> tuple[TaskId, ...]:
        return ()

    def totals(self, job_id: JobId) -> VersionTotals | None:
        return VersionTotals(success=TimeSum(1, 0.5)) if job_id == JOB else None

    def forget(self, name: str) -> None:
        pass

    def doubt(self) -> None:
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("machines"))
    yield made
    made.close()


class Other:
    """A gateway of another machine, which a test plays."""

    def __init__(self, link: ClientConnection) -> None:
        self._link = link

    async def say(self, message: FromGateway) -> None:
        await self._link.send(encode_from_gateway(message))

    async def hear(self, kind: type) -> Any:
        """Return the next message of a kind."""
        while True:
            message = decode_to_gateway(await self._link.recv())
            if isinstance(message, kind):
                return message


@asynccontextmanager
async def connected(served: Served, number: int = 2, machine: str = "gpu3") -> AsyncIterator[Other]:
    name = f"{machine or 'local'}-{number}"
    header = {"Authorization": new_proof(name, "").authorization(gateway_key(SECRET, machine))}
    url = f"ws://{served.address}{GATEWAY_PATH}?gateway={name}"
    async with connect(url, additional_headers=header, compression=None, proxy=None) as link:
        made = Other(link)
        await made.say(GatewayHello(pid=8, http_url="http://gpu3:7312", number=number, machine=machine))
        yield made


@asynccontextmanager
async def own(served: Served, counts: SharedCounts, folder: Path) -> AsyncIterator[Elsewhere]:
    """Run the server's own gateway, number 0."""
    file = folder / "server.json"
    file.write_text(json.dumps({"url": f"http://{served.address}", "challenge": ""}))
    elsewhere = Elsewhere(counts, 1, time.monotonic)
    settings = LinkSettings(key=KEY, pid=7, http_url="http://127.0.0.1:7312")
    address = ServerAddress("http://127.0.0.1:9", file)
    link = ServerLink(settings, address=address, clock=time.monotonic, elsewhere=elsewhere)
    gateway = OwnGateway()
    running = asyncio.create_task(link.run(gateway, gateway))
    try:
        await until(lambda: link.is_there)
        yield elsewhere
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def play(act: Callable[[], Any]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await act()

    asyncio.run(whole())


def test_gateways_of_two_machines_hear_what_each_other_uses_and_has_counted(served: Served, tmp_path: Path) -> None:
    with ExitStack() as stack:
        counts = SharedCounts(stack.enter_context(closing(SharedTable())), 0, time.monotonic)
        count = counts.of("token", b"t")

        async def test() -> None:
            async with own(served, counts, tmp_path) as elsewhere:
                count.add(2)
                async with connected(served) as other:
                    heard = await other.hear(UseElsewhere)
                    while not heard.rows:
                        heard = await other.hear(UseElsewhere)
                    ((key, row),) = heard.rows.items()
                    assert (heard.gateway, row) == (0, SharedRow(num=2))
                    await other.say(SharedUse(rows={key: SharedRow(num=3)}, is_whole=True))
                    await until(lambda: count.num == 5)
                    await other.say(SharedUse(rows={key: SharedRow(num=1, spent_s=60.0)}))
                    await until(lambda: count.num == 3)
                    assert count.due > time.monotonic() + 30
                    count.add(-2)
                    assert (await other.hear(UseElsewhere)).rows == {key: SharedRow(num=0)}
                    await ask_both_ways(elsewhere, other)
                    await other.say(SharedUse(rows={key: SharedRow(num=4)}))
                    await until(lambda: count.num == 4)
                await until(lambda: count.num == 0)

        play(test)


async def ask_both_ways(elsewhere: Elsewhere, other: Other) -> None:
    await other.say(AskTotals(number=5, job_ids=(JOB, JobId("job-2"))))
    answer = await other.hear(TotalsElsewhere)
    assert (answer.number, [list(totals) for totals in answer.totals]) == (5, [[JOB]])
    assert answer.totals[0][JOB].success == (1, 0.5)
    asking = asyncio.create_task(elsewhere.totals_of([JOB]))
    wanted = await other.hear(TotalsWanted)
    await other.say(TotalsSaid(number=wanted.number, totals=dict.fromkeys(wanted.job_ids, TIMES)))
    (totals,) = (await asking)[JOB]
    assert totals.success == TimeSum(3, 0.5)


def test_a_gateway_that_says_hello_again_as_another_one_speaks_for_itself_alone(served: Served, tmp_path: Path) -> None:
    with ExitStack() as stack:
        counts = SharedCounts(stack.enter_context(closing(SharedTable())), 0, time.monotonic)

        async def test() -> None:
            async with own(served, counts, tmp_path), connected(served) as other, connected(served, 6) as liar:
                await liar.say(GatewayHello(pid=8, http_url="http://gpu3:7312", number=2, machine="gpu3"))
                await liar.say(SharedUse(rows={LIMIT: SharedRow(num=7)}))
                await liar.say(AskTotals(number=1, job_ids=()))
                await liar.hear(TotalsElsewhere)
                await other.say(SharedUse(rows={LIMIT: SharedRow(num=1)}))
                await until(lambda: dict(counts.numbers_of(2)))
                assert [list(dict(counts.numbers_of(number)).values()) for number in (2, 6)] == [[1], [7]]

        play(test)


ROW = SharedRow(num=1)
TOO_MANY = tuple(JobId(f"job-{number}") for number in range(MAX_JOBS + 1))


@pytest.mark.parametrize(
    "message",
    [
        SharedUse(rows={"5F" * 16: ROW}),
        SharedUse(rows={"5f" * 15: ROW}),
        SharedUse(rows={"x" * 1000: ROW}),
        SharedUse(rows={LIMIT: SharedRow(num=-1)}),
        SharedUse(rows={LIMIT: SharedRow(num=1_000_001)}),
        SharedUse(rows={LIMIT: SharedRow(num=1, spent_s=-0.5)}),
        SharedUse(rows={LIMIT: SharedRow(num=1, spent_s=1e7)}),
        SharedUse(rows={f"{number:032x}": ROW for number in range(MAX_ROWS + 1)}),
        AskTotals(number=1, job_ids=TOO_MANY),
        TotalsSaid(number=1, totals=dict.fromkeys(TOO_MANY, TIMES)),
        TotalsSaid(number=1, totals={JOB: CountedTimes(success=(-1, 0.0), fail=(0, 0), queue=(0, 0), service=(0, 0))}),
        TotalsSaid(number=1, totals={JOB: CountedTimes(success=(1, -1.0), fail=(0, 0), queue=(0, 0), service=(0, 0))}),
        TotalsSaid(
            number=1,
            totals={
                JOB: CountedTimes(
                    success=(0, 0), fail=(0, 0), queue=(0, 0), service=(0, 0), batches=dict.fromkeys(range(129), (1, 0))
                )
            },
        ),
    ],
    ids=range(13),
)
def test_who_says_what_cannot_be_is_cut_off(served: Served, message: FromGateway) -> None:
    async def test() -> None:
        async with connected(served) as other:
            await other.say(message)
            await other._link.wait_closed()
            assert other._link.close_code == 1008

    play(test)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", '"x"', "null"])
def test_a_number_that_is_none_is_cut_off(served: Served, number: str) -> None:
    async def test() -> None:
        async with connected(served) as other:
            row = f'{{"num": 1, "spent_s": {number}}}'
            await other._link.send(f'{{"kind": "shared_use", "rows": {{"{LIMIT}": {row}}}}}')
            await other._link.wait_closed()
            assert other._link.close_code == 1008

    play(test)


@pytest.mark.parametrize(
    ("url", "grpc_address"),
    [
        ("javascript:alert(1)", ""),
        ("https://gpu3:7312/a", ""),
        ("https://ada@gpu3:7312", ""),
        ("https://gpu3:7312\n", ""),
        ("https://gpu3", ""),
        ("", ""),
        ("https://gpu3:7312", "gpu3"),
        ("https://gpu3:7312", "gpu3:x"),
    ],
)
def test_what_is_no_place_is_told_nobody(url: str, grpc_address: str) -> None:
    with pytest.raises(InvalidInput):
        decode_from_gateway(encode_from_gateway(GatewayHello(pid=8, http_url=url, grpc_address=grpc_address)))


@pytest.mark.parametrize("host", ["10.0.0.3", "[fd00::3]", "gpu3.lab-4.example.org"])
def test_where_a_gateway_is_is_taken(host: str) -> None:
    hello = GatewayHello(pid=8, http_url=f"https://{host}:7312", grpc_address=f"{host}:7313")
    assert decode_from_gateway(encode_from_gateway(hello)) == hello


NO_KEY = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("certificate", ["no certificate", NO_KEY, NO_KEY.replace("AAAA", "A" * 20_000)])
def test_who_shows_what_is_no_certificate_is_cut_off(served: Served, certificate: str) -> None:
    async def test() -> None:
        async with connected(served) as liar:
            entry = KernelEntry(host="gpu3", port=1, certificate=certificate)
            await liar.say(GatewayHello(pid=8, http_url="https://gpu3:7312", kernels=entry))
            with pytest.raises(ConnectionClosed, match="certificate"):
                await liar.hear(Retire)

    play(test)


def test_a_machine_that_is_removed_from_the_pool_loses_the_links_of_its_gateways_alone(
    served: Served, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        counts = SharedCounts(stack.enter_context(closing(SharedTable())), 0, time.monotonic)

        async def test() -> None:
            async with own(served, counts, tmp_path), connected(served) as gone, connected(served, 3, "gpu4") as other:
                await until(lambda: len(served.gateways) == 3)
                served.gateways.drop("gpu3")
                with pytest.raises(ConnectionClosed, match="gpu3 was removed from the pool"):
                    await gone.hear(Retire)
                await other.say(AskTotals(number=1, job_ids=()))
                await other.hear(TotalsElsewhere)
                assert len(served.gateways) == 2

        play(test)


def test_a_gateway_of_another_machine_that_says_nothing_is_taken_for_lost_and_one_of_the_servers_own_is_not(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.server.gateways.SILENT_S", 0.2)

    async def test() -> None:
        async with connected(served, 1, "") as here, connected(served) as silent:
            with pytest.raises(ConnectionClosed):
                await silent.hear(Retire)
            await until(lambda: len(served.gateways) == 1)
            await here.say(AskTotals(number=1, job_ids=()))
            await here.hear(TotalsElsewhere)

    play(test)
