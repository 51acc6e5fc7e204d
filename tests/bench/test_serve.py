"""The benchmark of serving asks, counts and judges rightly."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.peers.sides import free_port
from bench.serve import cnn, echo, life
from bench.serve.cnn import CnnFound, Goodput
from bench.serve.echo import EchoFound, Turn
from bench.serve.life import LifeFound, Overload
from bench.serve.load import Answer, Measured, Target, ask_once, closed_loop, open_loop, percentile
from bench.serve.page import Found, claims, page
from bench.serve.payload import echo_target
from bench.serve.place import SCRIPTS
from bench.serve.scripts import pliant_model
from bench.serve.sides import SIDES

DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Yield the port of the bare echo that Pliant is compared with."""
    number = free_port()
    argv = [sys.executable, str(SCRIPTS / "by_uvicorn.py"), str(number), "h11"]
    with subprocess.Popen(argv) as server:
        try:
            asyncio.run(asyncio.wait_for(_answers(number), DEADLINE_S))
            yield number
        finally:
            server.kill()


async def _answers(number: int) -> None:
    while True:
        try:
            assert (await ask_once(echo_target(number, "/", "", 100))).is_good
        except OSError:
            await asyncio.sleep(0.02)
        else:
            return


@pytest.mark.parametrize("num_bytes", list(echo.SIZES))
def test_the_body_has_the_length_that_the_report_names(num_bytes: int) -> None:
    assert len(echo_target(1, "/", "", num_bytes).body) == num_bytes


@pytest.mark.parametrize("num_bytes", list(echo.SIZES))
def test_every_client_asks_again_after_its_answer(port: int, num_bytes: int) -> None:
    measured = asyncio.run(closed_loop(echo_target(port, "/", "", num_bytes), 4, 0.3, warm_s=0.1))

    assert measured.num_failed == 0
    assert measured.rate > 0
    assert 0 < measured.latency_s(50) <= measured.latency_s(99)
    assert measured.rate_within(measured.latency_s(100)) == measured.rate


def test_an_answer_that_is_too_short_counts_as_failed(port: int) -> None:
    target = replace(echo_target(port, "/", "", 100), least_bytes=101)

    measured = asyncio.run(closed_loop(target, 1, 0.2, warm_s=0.1))

    assert measured.num_failed == len(measured.answers)
    assert measured.rate == 0


def test_an_open_loop_waits_for_every_answer(port: int) -> None:
    measured = asyncio.run(open_loop(echo_target(port, "/", "", 100), 200, 0.5))

    assert 50 < len(measured.answers) < 150  # Poisson, with a fixed seed
    assert measured.num_failed == 0


def test_a_connection_that_is_cut_counts_as_failed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def cut() -> Answer:
            loop = asyncio.get_running_loop()
            server = await asyncio.start_server(lambda _, writer: writer.close(), sock=listener)
            async with server:
                return await asyncio.wait_for(
                    ask_once(Target(port=listener.getsockname()[1], path="/", body=b"{}")), loop.time() + DEADLINE_S
                )

        assert not asyncio.run(cut()).is_good


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]

    assert (percentile(values, 50), percentile(values, 99), percentile(values[:1], 99)) == (50.0, 99.0, 1.0)


def test_what_is_deployed_sends_back_what_it_is_given() -> None:
    names: dict[str, type] = {}
    exec(pliant_model.ECHO, names)

    assert names["Model"]().predict([{"x": 1}, {"x": 2}]) == [{"x": 1}, {"x": 2}]


def test_a_ratio_is_taken_in_the_same_round_and_judged_at_the_worst_cell() -> None:
    found = EchoFound()
    for key, rates in {"v2": (100.0, 10.0, 100.0), "ray": (10.0, 1.0, 20.0), "uvicorn": (150.0, 15.0, 300.0)}.items():
        for num_bytes in echo.SIZES:
            for num_clients in echo.NUM_CLIENTS:
                found.turns[key, num_bytes, num_clients] = [turn(rate) for rate in rates]
    found.turns["v2", 100, 8] = [turn(rate / 4) for rate in (100.0, 10.0, 100.0)]
    found.turns["ray", 100, 1][0] = None  # it did not start in that round

    judged = {claim.text: claim for claim in echo.claims(found)}

    assert echo.ratio(found, "v2", ("ray",), 10_000, 64) == 10.0
    assert echo.ratio(found, "v2", ("ray",), 100, 1) == 7.5
    ray = judged["Pliant, v2 over HTTP: at least 4 × Ray Serve, as shipped, in every cell"]
    assert (ray.holds, ray.found) == (False, "2.50 at the least (100 B, c = 8), 10.00 at the most")
    found.turns["ray", 100, 64] = [turn(0.0)] * 3  # it answered nothing in that time
    partly = next(echo.claims(found))
    assert (partly.holds, partly.found) == (None, "only 5 of 6 cells have answers of both")
    assert judged["Pliant, v2 over HTTP: at least 2 × LitServe, in every cell"].holds is None
    assert judged["Pliant, v2 over HTTP, c = 1, 100 B: p50 at most 1 ms over the kernel's function"].holds is False


def test_the_report_has_every_part_and_says_what_had_no_turn() -> None:
    found = Found()
    found.echo.turns["v2", 100, 1] = [turn(100.0)]
    found.cnn = CnnFound(turns={"v2": [goodput(200.0)], "litserve": [goodput(100.0)], "ray": [None]})
    usual = Measured(answers=(Answer(1.0, 0.01, 200),), seconds=1.0, mine_s=0.0)
    heavy = Measured(answers=(Answer(1.0, 0.02, 200), Answer(1.0, 0.0, 429)), seconds=1.0, mine_s=0.0)
    found.life = LifeFound(from_zero_s={life.PYTHON: [0.5]}, overload=[Overload(peak=1.0, usual=usual, heavy=heavy)])
    found.troubles["ray, cnn, round 1"] = "no answer"

    judged = list(claims(found))
    text = page(found, {"bentoml": "no such wheel"}, "python -m bench.serve", judged, "x==1", "1 core(s)")

    held = {claim.text for claim in judged if claim.holds}
    assert "3 × overload: p99 of what is accepted at most 3 × that at 70 % load" in held
    assert f"{next(cnn.claims(found.cnn)).text}" in held
    assert "| Pliant, v2 over HTTP | 100 |" in text
    assert "**bentoml could not be installed and is not in the tables:** no such wheel" in text
    assert "- ray, cnn, round 1 had no turn: no answer" in text
    assert "50 %" in text


def test_every_way_of_every_side_has_a_name_of_its_own() -> None:
    keys = [way.key for side in SIDES for way in side.ways]

    assert sorted(keys) == sorted(set(keys))
    assert {"ray", "mlserver", "litserve", "bentoml", "uvicorn"} <= set(keys)


def turn(rate: float) -> Turn:
    return Turn(rate=rate, p50_s=0.002, p99_s=0.002, num_failed=0, server_s=0.001, generator_s=0.0001)


def goodput(rate: float) -> Goodput:
    return Goodput(rate=rate, num_clients=8, p99_s=0.04, num_failed=0)
