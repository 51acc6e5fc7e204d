"""What several gateways say of endpoints, as control and people get to know it."""

from collections.abc import Callable

import pytest
from tests.server.conftest import Served
from tests.server.test_endpoints import deploy
from tests.server.test_monitoring import get, key, scraped, totals

from pliant.core.job import JobId, TaskId
from pliant.core.serving import GatewayHello, KernelHung, KernelReady, Load, VersionLoad
from pliant.server.serving import GatewayNews


def hello(
    pid: int, number: int = 0, machine: str = "", url: str = "http://127.0.0.1:7312", ready: tuple[TaskId, ...] = ()
) -> GatewayHello:
    return GatewayHello(
        pid=pid, number=number, machine=machine, http_url=url, grpc_address="127.0.0.1:7313", ready=ready
    )


@pytest.fixture
def news(server: Served) -> GatewayNews:
    return GatewayNews(server.control.kernels, lambda: None)


def served_job(server: Served) -> JobId:
    deploy(server.http, kernel_max=3)
    server.load_model("digits")
    server.tick(1.0)
    (job_id,) = server.control.kernels.statuses()
    return job_id


def test_people_are_sent_to_the_first_gateway_of_each_machine_and_to_the_last_ones_while_none_is_connected(
    news: GatewayNews,
) -> None:
    first, second, far = hello(1), hello(2, 1), hello(3, 2, "gpu3")

    def places_after(change: Callable[[], None]) -> tuple[GatewayHello, ...]:
        change()
        return news.places

    assert places_after(lambda: None) == ()
    assert places_after(lambda: news.gateway_ready("gpu3-2", far)) == (far,)
    assert places_after(lambda: news.gateway_ready("local-1", second)) == (second, far)
    assert places_after(lambda: news.gateway_ready("local", first)) == (first, far)
    assert places_after(lambda: news.gateway_gone("local")) == (second, far)
    assert places_after(lambda: news.gateway_gone("local-1")) == (far,)
    assert places_after(lambda: news.gateway_gone("gpu3-2")) == (far,)


def test_what_several_gateways_report_is_shown_as_one(server: Served, news: GatewayNews) -> None:
    job_id = served_job(server)
    for pid, name in enumerate(("local", "local-1"), 1):
        news.gateway_ready(name, hello(pid))
    for name, queued, num in (("local", 3, 5), ("local-1", 4, 7)):
        server.clock.advance(0.125)
        load = VersionLoad(job_id=job_id, seconds=0.25, queued=queued, mean_load=queued, totals=totals(num))
        news.take_load(name, Load(versions=(load,)))

    found = scraped(get(server))
    shown = server.http.get("/endpoints/digits").json()["versions"][0]["load"]

    assert (shown["queued"], shown["seconds"], shown["mean_load"]) == (7, pytest.approx(0.125), 7.0)
    assert "latency_counts" not in shown
    version = {"endpoint": "digits", "version": "1"}
    assert found[key("pliant_endpoint_queue_length", **version)] == 7
    assert found[key("pliant_endpoint_requests_total", **version, outcome="success")] == 12
    assert found[key("pliant_endpoint_batch_size_sum", **version)] == 48


def test_a_kernel_that_all_gateways_find_hanging_is_ended_once(server: Served, news: GatewayNews) -> None:
    job_id = served_job(server)
    (task,) = server.control.kernels.statuses()[job_id].kernels
    before = scraped(get(server)).get(key("pliant_events_total", kind="warning"), 0)

    for name in ("local", "local-1", "local-2", "local"):
        news.kernel_hung(name, KernelHung(task_id=task.id, why="is silent"))

    after = scraped(get(server))[key("pliant_events_total", kind="warning")]
    assert after - before == 2, "what one gateway says again is heard again"


def test_a_kernel_is_ready_as_soon_as_one_gateway_says_so(server: Served, news: GatewayNews) -> None:
    deploy(server.http)
    server.tick(1.0)
    (job_id,) = server.control.kernels.statuses()
    (task,) = server.control.kernels.statuses()[job_id].kernels

    news.kernel_ready("local-1", KernelReady(task_id=task.id))

    assert server.control.kernels.statuses()[job_id].num_ready == 1
    news.gateway_ready("local", hello(1, ready=(task.id,)))
    assert server.control.kernels.statuses()[job_id].num_ready == 1
