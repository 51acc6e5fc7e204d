"""Processes that stand still, or die, while endpoints answer: a kernel, the gateway, the server, the zygote.

Each test hurts one of them under load (`crowd`: every answer is known). `test_endpoints` shows what dies; here is what
is stopped, which keeps its connections and its place, and may go on later.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.pool import Pool
from tests.e2e.serving import Asked, crowd, write_model
from tests.soak import census

from pliant.api.endpoints import EndpointView, KernelView
from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAME = "double"
EXECUTION_TIMEOUT_S = 4.0
"""Enough for a kernel that others' work keeps from a processor."""
HELD = 2
"""Requests that a kernel is given at once."""


@pytest.fixture
def view(pool: Pool, client: Client, tmp_path: Path) -> Iterator[EndpointView]:
    """An endpoint with two kernels that are ready."""
    model = write_model(tmp_path / "model", seconds=0.01)
    bounds: dict[str, Any] = {"kernel_min": 2, "kernel_max": 3, "batch_size": HELD, "pipe_size": 1}
    client.endpoints.deploy(NAME, model, execution_timeout_s=EXECUTION_TIMEOUT_S, **bounds)
    yield pool.until(lambda: num_ready(found := client.endpoints.get(NAME)) == 2 and found, "both kernels are ready")
    client.endpoints.remove(NAME)


def kernels(view: EndpointView) -> tuple[KernelView, ...]:
    return view.versions[-1].kernels


def num_ready(view: EndpointView) -> int:
    return sum(kernel.state == "ready" for kernel in kernels(view))


@contextmanager
def asked(pool: Pool, view: EndpointView) -> Iterator[Asked]:
    """Let four clients ask all the time."""
    assert view.http_url is not None
    with crowd(view.http_url, (pool.home / "token").read_text().strip(), NAME, num_clients=4) as found:
        goes_on(pool, found, "it answers")
        yield found


def goes_on(pool: Pool, found: Asked, what: str) -> None:
    """Wait until many more answers have come than clients had asked for."""
    num = found.num_answered
    pool.until(lambda: found.num_answered > num + 20, what)


@contextmanager
def stopped(pid: int | None) -> Iterator[None]:
    """Let a process stand still while the block runs."""
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def gateway_pid(pool: Pool) -> int:
    return int(json.loads((pool.home / "gateway" / "gateway.json").read_text())["pid"])


def test_a_kernel_that_is_stopped_is_replaced_and_only_what_it_held_fails(
    pool: Pool, client: Client, view: EndpointView
) -> None:
    victim = kernels(view)[0]
    assert victim.pid is not None

    with asked(pool, view) as found:
        os.kill(victim.pid, signal.SIGSTOP)
        goes_on(pool, found, "the other kernel answers")
        pool.until(
            lambda: victim.task_id not in str(now := client.endpoints.get(NAME)) and num_ready(now) == 2,
            "another kernel has taken its place",
        )
        goes_on(pool, found, "both answer")

    assert found.num_broken == 0
    assert len(found.wrong) <= HELD
    for status, text in found.wrong:
        assert status == 504
        assert f"kernel {victim.task_id} has computed for more than" in text


def test_while_the_server_is_stopped_a_kernel_that_stood_still_comes_back_by_itself(
    pool: Pool, client: Client, view: EndpointView
) -> None:
    victim, server = kernels(view)[0], pool.process
    assert server is not None

    with asked(pool, view) as found:
        with stopped(server.pid):
            with stopped(victim.pid):
                goes_on(pool, found, "the other kernel answers without a server")
                pool.until(lambda: found.wrong, "what it held is refused")
            goes_on(pool, found, "answers go on")
        pool.until(lambda: num_ready(client.endpoints.get(NAME)) == 2, "the server knows two kernels that are ready")
        goes_on(pool, found, "answers go on")

    assert found.num_broken == 0
    assert 0 < len(found.wrong) <= HELD
    assert {status for status, _ in found.wrong} == {504}


def test_a_gateway_that_is_stopped_is_waited_for_and_nobody_starts_a_second_one(
    pool: Pool, client: Client, view: EndpointView
) -> None:
    pid = gateway_pid(pool)

    with asked(pool, view) as found:
        with stopped(pid):
            stopped_at = time.monotonic()
            num = found.num_answered
            pool.until(lambda: time.monotonic() > stopped_at + 3.0, "it has stood still for longer than it forgives")
            during = found.num_answered - num
            gateways = [process.pid for process in census.count(pool.home).role("gateway")]
        goes_on(pool, found, "it answers again")

    assert during <= 4, "what was on its way to the clients"
    assert (gateways, gateway_pid(pool)) == ([pid], pid)
    assert (found.wrong, found.num_broken) == ([], 0)
    assert {kernel.task_id for kernel in kernels(client.endpoints.get(NAME))} == {one.task_id for one in kernels(view)}


def test_kernels_serve_without_a_zygote_and_the_next_one_starts_what_was_ordered_of_it(
    pool: Pool, client: Client, view: EndpointView
) -> None:
    zygote = max(process.pid for process in census.count(pool.home).role("zygote"))

    with asked(pool, view) as found:
        os.kill(zygote, signal.SIGSTOP)
        client.endpoints.change(NAME, kernel_min=3)
        pool.until(lambda: len(kernels(client.endpoints.get(NAME))) == 3, "a third kernel is ordered")
        goes_on(pool, found, "it answers while the zygote is stopped")
        os.kill(zygote, signal.SIGKILL)
        goes_on(pool, found, "it answers without a zygote")
        pool.until(lambda: num_ready(client.endpoints.get(NAME)) == 3, "the third kernel is ready")

    assert (found.wrong, found.num_broken) == ([], 0)
    first = {kernel.task_id for kernel in kernels(view)}
    assert first < {kernel.task_id for kernel in kernels(client.endpoints.get(NAME))}
