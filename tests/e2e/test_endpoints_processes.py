"""Several gateway processes of one server: each answers, limits hold for all, and one that dies is one of several."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import running
from tests.e2e.pool import Pool
from tests.e2e.serving import call_model, crowd, write_model, write_tensor_model
from tests.plain_http import NO_TLS
from tests.process_state import has_ended, state_of

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NUM = 2


@pytest.fixture(scope="module")
def _processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(tmp_path_factory.mktemp("pool") / "home", slots=2, options=("--serve-processes", str(NUM)))
    yield made
    made.close()


@pytest.fixture
def pool(_processes: Pool) -> Iterator[Pool]:
    """A server whose gateway is several processes."""
    running(_processes)
    yield _processes
    running(_processes)
    with _processes.client() as client:
        for endpoint in client.endpoints.list().endpoints:
            client.endpoints.remove(endpoint.name)


class Served:
    """An endpoint whose requests can be sent to the one process or the other."""

    def __init__(self, pool: Pool, url: str) -> None:
        self._pool = pool
        self._url = url
        self._headers = {"Authorization": f"Bearer {(pool.home / 'token').read_text().strip()}"}

    def connect(self, stack: ExitStack) -> httpx.Client:
        """Return a client with a connection of its own."""
        made = httpx.Client(base_url=self._url, headers=self._headers, verify=NO_TLS, timeout=60, trust_env=False)
        stack.enter_context(made)
        made.get("/v2/health/live").raise_for_status()
        return made

    def gateways(self) -> list[int]:
        """Return the processes that answer."""
        record = json.loads((self._pool.home / "gateway" / "gateway.json").read_text())
        return children_of(int(record["pid"]))

    def num_connected(self) -> int:
        """Return how many of them have a link to the server."""
        text = httpx.get(
            f"http://127.0.0.1:{self._pool.port}/metrics", headers=self._headers, trust_env=False, timeout=30
        ).text
        lines = (line.split() for line in text.splitlines())
        return next(int(float(line[1])) for line in lines if line[0] == "pliant_gateways_connected")


def children_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if not has_ended(int(child))]


def owner_of(client: httpx.Client, pids: list[int]) -> int:
    """Return which of these processes has the other end of a client's connection."""
    (pooled,) = client._transport._pool.connections  # type: ignore[attr-defined]
    port = pooled._connection._network_stream.get_extra_info("client_addr")[1]
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inode = next(row[9] for row in table if int(row[2].rpartition(":")[2], 16) == port and row[3] == "01")
    for pid in pids:
        if f"socket:[{inode}]" in {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}:
            return pid
    raise AssertionError(f"none of {pids} has {inode}")


@pytest.fixture
def client(pool: Pool) -> Iterator[Client]:
    with pool.client() as made:
        yield made


def deployed(pool: Pool, client: Client, folder: Path, **settings: Any) -> Served:
    client.endpoints.deploy("double", folder, kernel_min=1, **settings)
    view = client.endpoints.wait("double", timeout_s=60)
    assert view.http_url is not None
    served = Served(pool, view.http_url)
    pool.until(lambda: served.num_connected() == NUM, "all have a link to the server")
    return served


def one_for_each(stack: ExitStack, served: Served) -> dict[int, httpx.Client]:
    """Return a connection to each of the processes."""
    found: dict[int, httpx.Client] = {}

    def look() -> bool:
        made = served.connect(stack)
        found.setdefault(owner_of(made, served.gateways()), made)
        return len(found) == NUM

    Pool.until(look, "connections come to all processes")
    return found


def ask(client: httpx.Client, value: int = 1) -> httpx.Response:
    return client.post("/dlim/v1/inference/double", json={"value": value})


def test_all_give_requests_to_the_same_kernel_and_count_together(pool: Pool, client: Client, tmp_path: Path) -> None:
    served = deployed(pool, client, write_model(tmp_path / "model"), kernel_max=1)
    with ExitStack() as stack:
        clients = list(one_for_each(stack, served).values())
        answers = [ask(clients[number % NUM], number) for number in range(20)]
        assert [(one.status_code, one.json()["value"]) for one in answers] == [(200, 2 * n) for n in range(20)]
        stats = [one.get("/v2/models/double/stats").json()["model_stats"][0] for one in clients]
        assert [one["inference_count"] for one in stats] == [20] * NUM
        pool.until(
            lambda: (load := client.endpoints.get("double").versions[0].load) and load.totals.succeeded == 20,
            "the server has heard of all",
        )


def test_limits_hold_for_all_together(pool: Pool, client: Client, tmp_path: Path) -> None:
    served = deployed(pool, client, write_model(tmp_path / "model", seconds=0.5), kernel_max=1, max_concurrent=1)
    with ExitStack() as stack, ThreadPoolExecutor(NUM) as threads:
        clients = list(one_for_each(stack, served).values())
        statuses = Counter(one.status_code for one in threads.map(ask, clients))
        assert statuses == {200: 1, 429: NUM - 1}
        assert ask(clients[0]).status_code == ask(clients[1]).status_code == 200


def test_one_that_stands_still_or_dies_is_one_of_several(pool: Pool, client: Client, tmp_path: Path) -> None:
    served = deployed(pool, client, write_model(tmp_path / "model"), kernel_max=1)
    task_id = client.endpoints.get("double").versions[0].kernels[0].task_id
    with ExitStack() as stack:
        found = one_for_each(stack, served)
        hurt, healthy = found
        os.kill(hurt, signal.SIGSTOP)
        pool.until(lambda: state_of(hurt) == "T", "it stands still")
        try:
            assert [ask(found[healthy], value).json()["value"] for value in range(50)] == list(range(0, 100, 2))
            assert ask(served.connect(stack)).status_code == 200, "no new connection waits for it"
        finally:
            os.kill(hurt, signal.SIGCONT)
        assert ask(found[hurt]).status_code == 200

        os.kill(hurt, signal.SIGKILL)
        assert ask(found[healthy]).status_code == 200
        pool.until(lambda: hurt not in (now := served.gateways()) and len(now) == NUM, "another one has started")
        pool.until(lambda: served.num_connected() == NUM, "it has a link to the server")
        for connection in one_for_each(stack, served).values():
            assert ask(connection, 4).json()["value"] == 8
    assert [one.task_id for one in client.endpoints.get("double").versions[0].kernels] == [task_id]


def test_no_answer_fails_while_the_server_is_killed_and_kernels_come_and_go(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    served = deployed(pool, client, write_model(tmp_path / "model", seconds=0.01), kernel_max=2, batch_size=4)
    token, url = (pool.home / "token").read_text().strip(), str(client.endpoints.get("double").http_url)
    with crowd(url, token, "double", num_clients=6) as asked:
        pool.until(lambda: asked.num_answered > 20, "it answers")
        client.endpoints.change("double", kernel_min=2)
        pool.until(lambda: client.endpoints.get("double").versions[0].num_ready == 2, "there are two kernels")
        pool.signal(signal.SIGKILL)
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 50, "it answers without a server")
        pool.up()
        pool.until(lambda: served.num_connected() == NUM, "all know the next server")
        client.endpoints.change("double", kernel_min=1, kernel_max=1)
        pool.until(lambda: client.endpoints.get("double").versions[0].num_kernels == 1, "one kernel has left")
        client.endpoints.deploy("double", write_model(tmp_path / "next", factor=3, seconds=0.01))
        pool.until(lambda: asked.num_answered and asked.factors[-1][1] == 3, "the next version answers")
    assert (asked.wrong, asked.num_broken) == ([], 0)


def test_it_is_asked_over_grpc_and_ends_with_its_server(pool: Pool, client: Client, tmp_path: Path) -> None:
    served = deployed(pool, client, write_tensor_model(tmp_path / "model"), kernel_max=1)
    token = (pool.home / "token").read_text().strip()
    for _ in range(8):
        address = client.endpoints.get("double").grpc_address
        assert call_model(address, token, "double", [1.5, 2.0]) == [3.0, 4.0]
    pids = served.gateways()
    assert pool.signal(signal.SIGTERM) == 0
    assert all(has_ended(pid) for pid in pids)
    assert not list((pool.home / "address").glob("gateway*"))
