"""Gateways that ask each other what they have counted, over real sockets."""

import asyncio
import contextlib
import os
import socket
import stat
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.gateway.played import PATIENCE_S, endpoint, in_loop, played, version
from tests.serve.gateway.played_grpc import spoken

from pliant.core.job import JobId
from pliant.core.serving import CountedLoad
from pliant.serve.gateway import siblings as module
from pliant.serve.gateway.gateway_share import GatewayShare
from pliant.serve.gateway.meter import TimeSum, VersionTotals
from pliant.serve.gateway.siblings import ANSWER_S, Siblings

JOB = JobId("job-9")
COUNTED = VersionTotals(
    success=TimeSum(3, 0.5),
    fail=TimeSum(1, 0.25),
    queue=TimeSum(4, 0.125),
    service=TimeSum(4, 0.5),
    batches={2: TimeSum(2, 0.5), 7: TimeSum(1, 0.1)},
    last_at=71.25,
)


@contextlib.asynccontextmanager
async def listening(folder: Path, number: int, of: int, known: Mapping[JobId, VersionTotals]) -> AsyncIterator[None]:
    """A gateway that has counted this."""
    running = asyncio.create_task(Siblings(folder, number, range(of)).listen(known.get))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not _answers(folder / f"sibling-{number}"):
                assert not running.done()
                await asyncio.sleep(0.001)
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _answers(path: Path) -> bool:
    place = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f"/proc/self/fd/{place}/{path.name}")
    except OSError:
        return False
    finally:
        os.close(place)
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose path is too long for a socket."""
    long = tmp_path / ("x" * 120)
    long.mkdir(mode=0o700)
    return long


@in_loop
async def test_all_others_are_asked_and_those_that_know_the_version_answer(folder: Path) -> None:
    here, second = Siblings(folder, 0, range(4)), VersionTotals(success=TimeSum(1, 0.1))
    async with listening(folder, 1, 4, {JOB: COUNTED}), listening(folder, 2, 4, {}):
        async with listening(folder, 3, 4, {JOB: second}):
            assert await here.totals(JOB) == [COUNTED, second]
            assert await here.totals(JobId("job-8")) == []
            assert stat.S_IMODE((folder / "sibling-3").stat().st_mode) == 0o600
        assert not (folder / "sibling-3").exists()
        assert await here.totals(JOB) == [COUNTED]
    assert await here.totals(JOB) == []
    assert await Siblings(folder, 0, range(1)).totals(JOB) == []
    assert await here.totals_of(()) == {}


@in_loop
async def test_the_gateways_of_a_machine_that_is_not_the_first_have_later_numbers(folder: Path) -> None:
    running = asyncio.create_task(Siblings(folder, 5, range(4, 6)).listen({JOB: COUNTED}.get))
    async with asyncio.timeout(PATIENCE_S):
        while not _answers(folder / "sibling-5"):
            await asyncio.sleep(0.001)
    assert await Siblings(folder, 4, range(4, 6)).totals(JOB) == [COUNTED]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@in_loop
async def test_many_versions_are_asked_about_at_once(folder: Path) -> None:
    known = {JobId(f"job-{number}"): VersionTotals(success=TimeSum(number, 0.0)) for number in range(500)}
    async with listening(folder, 0, 2, known):
        found = await Siblings(folder, 1, range(2)).totals_of([*known, JOB, JobId("unknown")])
    assert found == {**{job_id: [totals] for job_id, totals in known.items()}, JobId("unknown"): []}


@in_loop
async def test_a_socket_that_a_dead_process_has_left_is_replaced(folder: Path) -> None:
    module._open_socket(folder, "sibling-1").close()
    here = Siblings(folder, 0, range(2))
    assert await here.totals(JOB) == []
    async with listening(folder, 1, 2, {JOB: COUNTED}):
        assert await here.totals(JOB) == [COUNTED]


@in_loop
async def test_who_does_not_answer_is_left_out_and_holds_up_only_the_first_of_many(folder: Path) -> None:
    here = Siblings(folder, 0, range(3))
    async with listening(folder, 1, 3, {JOB: COUNTED}):
        with contextlib.closing(module._open_socket(folder, "sibling-2")):  # it takes connections, and says nothing
            begun = time.monotonic()
            answers = await asyncio.gather(*(here.totals(JOB) for _ in range(40)))
            passed = time.monotonic() - begun
    assert answers == [[COUNTED]] * 40
    assert ANSWER_S <= passed < 4 * ANSWER_S, "40 questions would take ten times as long"


@pytest.mark.parametrize(
    "answer",
    [b"x\n", b"[]\n", b"{}\n", b"7\n", b"[" * 60_000 + b"\n", b'"' + b"x" * 200_000, b"", b'{"success": [1]}\n'],
    ids=range(8),
)
@in_loop
async def test_an_answer_that_is_none_is_left_out(tmp_path: Path, answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(say, sock=module._open_socket(tmp_path, "sibling-1")):
        assert await Siblings(tmp_path, 0, range(2)).totals(JOB) == []


@in_loop
async def test_a_batch_of_every_size_is_counted_up_to_a_bound(tmp_path: Path) -> None:
    most = VersionTotals(batches={size: TimeSum(1 << 40, 1e9 / 3) for size in range(10**6, 10**6 + 128)}, last_at=0.1)
    beyond = VersionTotals(batches={size: TimeSum(1, 0.0) for size in range(2000)})
    async with listening(tmp_path, 1, 2, {JOB: most, JobId("job-2"): beyond}):
        here = Siblings(tmp_path, 0, range(2))
        assert await here.totals(JOB) == [most]
        assert await here.totals(JobId("job-2")) == []


@pytest.mark.parametrize(
    "question",
    [b"x\n", b"[]\n", b'{"job": ["x"]}\n', b"{}\n", b"[" * 1000 + b"\n", b"y" * 5000, b"\n", b'{"job'],
    ids=range(8),
)
@in_loop
async def test_nonsense_is_cut_off_and_others_are_answered(tmp_path: Path, question: bytes) -> None:
    async with listening(tmp_path, 1, 2, {JOB: COUNTED}):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "sibling-1"))
        writer.write(question)
        writer.write_eof()
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                assert await reader.read() in (b"", b"null\n")
        writer.close()
        assert await Siblings(tmp_path, 0, range(2)).totals(JOB) == [COUNTED]


@in_loop
async def test_connections_are_bounded_and_those_that_say_nothing_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IDLE_S", 0.2)
    async with listening(tmp_path, 1, 2, {JOB: COUNTED}):
        opened = [await asyncio.open_unix_connection(str(tmp_path / "sibling-1")) for _ in range(100)]
        async with asyncio.timeout(PATIENCE_S):
            for reader, writer in opened:
                assert await reader.read() == b""
                writer.close()
        assert await Siblings(tmp_path, 0, range(2)).totals(JOB) == [COUNTED]


_sums = st.builds(TimeSum, st.integers(0, 1 << 60), st.floats(0, 1e12))


@given(
    st.builds(
        VersionTotals,
        success=_sums,
        fail=_sums,
        queue=_sums,
        service=_sums,
        batches=st.dictionaries(st.integers(1, 1 << 40), _sums, max_size=20),
        last_at=st.none() | st.floats(0, 1e9),
    )
)
def test_what_is_said_is_what_is_read(totals: VersionTotals) -> None:
    assert module._read_totals(module._line(module._say_totals(totals))) == totals


@in_loop
async def test_a_client_that_asks_one_gateway_hears_of_all(tmp_path: Path) -> None:
    async with (
        listening(tmp_path, 1, 2, {JOB: COUNTED}),
        spoken(endpoint(version()), share=GatewayShare(of=2, siblings=Siblings(tmp_path, 0, range(2)))) as said,
    ):
        world = said.world
        kernel = await world.kernel()
        post = world.post()
        frame = await kernel.request()
        world.now[0] += 1
        kernel.answer(frame, busy_s=0.25, batch=2)
        await post

        (stats,) = (await world.get("/v2/models/digits/stats")).json()["model_stats"]
        assert (stats["inference_count"], stats["execution_count"]) == (3 + 1, 3 + 1)
        assert stats["inference_stats"]["success"] == {"count": 4, "ns": 1_500_000_000}
        assert [(one["batch_size"], one["compute_infer"]["count"]) for one in stats["batch_stats"]] == [(2, 3), (7, 1)]
        assert (await world.get("/v2/models/stats")).json() == {"model_stats": [stats]}
        (spoken_stats,) = (await said.ask("ModelStatistics", name="digits"))["model_stats"]
        assert spoken_stats["inference_count"] == 4
        assert world.gateway.totals(JOB) is not None
        assert world.gateway.totals(JobId("job-1")) is None
        (load,) = world.gateway.loads()
        assert isinstance(load, CountedLoad)
        assert sum(load.latency_counts.values()) == 1


@in_loop
async def test_the_only_gateway_says_no_counts() -> None:
    async with played(endpoint(version())) as world:
        (load,) = world.gateway.loads()
        assert not isinstance(load, CountedLoad)
