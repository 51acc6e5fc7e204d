"""Gateways on several hosts: an endpoint is asked on any of them, all kernels answer for all, and limits hold once.

Host b has a gateway and no file system in common with the server's; host c has kernels alone.
"""

import json
import signal
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from tests.e2e.hosts_pool import SERVER, HostsPool, runs_on
from tests.e2e.serving import call_model, crowd, write_model, write_tensor_model
from tests.hosts import Network, require_hosts

from pliant.api.endpoints import GatewayView
from pliant.api.trust import Trust
from pliant.client import Client
from pliant.core.errors import Unavailable

MAX_RATE = 20.0
RATED_S = 4.0
NEWS_S = 1.0
"""Far more than it takes until one gateway knows what the other has let pass."""
BACK_S = 45.0
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class GatewaysPool(HostsPool):
    """A pool with gateways on hosts a and b."""

    names = ("b", "c")

    def own_folders(self, name: str) -> Mapping[str, str]:
        self.home.mkdir(mode=0o700, exist_ok=True)
        return {str(self.home): "512m"} if name == "b" else {}

    def join_all(self) -> None:
        for name in self.names:
            if not self.hosts[name].is_up:
                self.restart_host(name)
            if name not in self.agents or self.agents[name].poll() is not None:
                self.join(name)
        self.until_here(SERVER, *self.names)

    def gateways(self, client: Client, first: str | None = None) -> tuple[GatewayView, ...]:
        """Return where the endpoint is asked, once that is on both machines; the first is the server's own."""

        def both() -> tuple[GatewayView, ...] | None:
            found = client.endpoints.address("digits").gateways
            return found if [one.machine for one in found] == [first, "b"] else None

        found: tuple[GatewayView, ...] = self.until(both, "both machines have gateways", BACK_S)
        return found

    def kernels_on(self, client: Client) -> set[str]:
        """Return the machines on which kernels are, once two are ready."""
        (version,) = client.endpoints.get("digits").versions
        return {kernel.node_id for kernel in version.kernels} if version.num_ready >= 2 else set()

    def trust(self, gateway: GatewayView) -> ssl.SSLContext:
        """Return what trusts a gateway as people do who were told its certificate."""
        if gateway.certificate is None:
            return Trust(certificate=self.certificate).context()
        return Trust(pem=gateway.certificate).context()

    def asking(self, gateway: GatewayView) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(
            base_url=gateway.http_url, headers=headers, verify=self.trust(gateway), timeout=60, trust_env=False
        )

    def local_gateway(self) -> int:
        """Return the process of the gateway that the server has started."""
        return _pid_of(self.home / "gateway")

    def gateway_of(self, name: str) -> int:
        """Return the process of the gateway that an agent has started."""
        return _pid_of(self.home.parent / f"agent-{name}" / "gateway")


def _pid_of(folder: Path) -> int:
    return int(json.loads((folder / "gateway.json").read_text())["pid"])


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewaysPool]:
    require_hosts()
    folder = tmp_path_factory.mktemp("gateways")
    folder.chmod(0o777)
    with Network() as network:
        pool = GatewaysPool(folder / "home", network, options=("--serve-on", "b"))
        with pool.hosts[SERVER].inside():
            pool.up()
            pool.join_all()
            with pool.client() as client:
                client.endpoints.deploy(
                    "digits",
                    write_model(folder / "digits", seconds=0.02),
                    kernel_min=2,
                    kernel_max=6,
                    batch_size=1,
                )
                client.endpoints.wait("digits", timeout_s=60)
            yield pool
            pool.close()


@pytest.fixture
def client(pool: GatewaysPool) -> Iterator[Client]:
    with pool.client() as client:
        yield client
    pool.join_all()


def test_every_gateway_has_the_kernels_of_all_machines_and_statistics_are_those_of_both(
    pool: GatewaysPool, client: Client, tmp_path: Path
) -> None:
    own, other = pool.gateways(client)
    with pool.without(SERVER, "b"), pool.asking(own) as here, pool.asking(other) as there:
        pool.until(lambda: pool.kernels_on(client) == {"c"}, "its kernels are where no gateway is", BACK_S)
        for asked, value in ((here, 3), (there, 4)):
            answer = asked.post("/dlim/v1/inference/digits", json={"value": value})
            assert (answer.status_code, answer.json()["value"]) == (200, 2 * value), answer.text
        said = [asked.get("/v2/models/digits/stats").json()["model_stats"][0] for asked in (here, there)]
    assert said[0]["inference_stats"]["success"]["count"] == said[1]["inference_stats"]["success"]["count"] >= 2

    client.endpoints.deploy("doubles", write_tensor_model(tmp_path / "doubles"))
    client.endpoints.wait("doubles", timeout_s=60)
    assert other.certificate is not None
    values = call_model(other.grpc_address, pool.token, "doubles", [1.5], certificate=other.certificate.encode())
    assert values == [3.0]
    client.endpoints.remove("doubles")


def test_a_limit_holds_for_the_gateways_of_all_machines_together(pool: GatewaysPool, client: Client) -> None:
    own, other = pool.gateways(client)
    client.endpoints.change("digits", max_rate=MAX_RATE)
    began_at = time.monotonic()
    with (
        crowd(own.http_url, pool.token, "digits", num_clients=3, trust=pool.trust(own)) as here,
        crowd(other.http_url, pool.token, "digits", num_clients=3, trust=pool.trust(other)) as there,
    ):
        pool.until(lambda: time.monotonic() > began_at + RATED_S, "they have asked for a while")
    took_s = time.monotonic() - began_at
    client.endpoints.change("digits", max_rate=None)

    answered = here.num_answered + there.num_answered
    assert set(here.statuses) | set(there.statuses) == {200, 429}
    assert here.num_answered
    assert there.num_answered
    assert answered <= MAX_RATE * (took_s + NEWS_S) + 2 * MAX_RATE, "each for itself would be twice as many"


def test_a_gateway_elsewhere_answers_while_neither_the_server_nor_its_own_gateway_is_there(
    pool: GatewaysPool, client: Client
) -> None:
    own, other = pool.gateways(client)
    assert client.endpoints.predict("digits", {"value": 1}, raw=True)["value"] == 2
    with crowd(other.http_url, pool.token, "digits", num_clients=4, trust=pool.trust(other)) as asked:
        pool.until(lambda: asked.num_answered > 20, "it knows the token")
        pool.hosts[SERVER].run(["kill", "-9", str(pool.local_gateway())])
        pool.signal(signal.SIGKILL)
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 50, "it answers all the time")
        for _ in range(2):  # a client that was told of both asks the one that is there
            try:
                answer = client.endpoints.predict("digits", {"value": 5}, raw=True)
            except Unavailable:
                continue
        assert answer["value"] == 10
        pool.up()
        pool.until_here(SERVER, *pool.names)
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 50, "it answers all the time")
        assert [one.http_url for one in pool.gateways(client)] == [own.http_url, other.http_url]
    assert (asked.wrong, set(asked.statuses), asked.num_broken) == ([], {200}, 0)


def test_a_host_that_is_lost_with_its_gateway_is_no_address_until_it_is_back(
    pool: GatewaysPool, client: Client
) -> None:
    own, _ = pool.gateways(client)
    with crowd(own.http_url, pool.token, "digits", num_clients=4, trust=pool.trust(own)) as asked:
        pool.kill_host("b")
        pool.until(
            lambda: [one.machine for one in client.endpoints.address("digits").gateways] == [None],
            "it is no address any more",
            BACK_S,
        )
        pool.join_all()
        _, other = pool.gateways(client)
        with pool.asking(other) as there:
            assert there.post("/dlim/v1/inference/digits", json={"value": 7}).json()["value"] == 14
    assert set(asked.statuses) == {200}


def test_a_server_that_ends_for_good_takes_the_gateways_of_all_machines_with_it(
    pool: GatewaysPool, client: Client
) -> None:
    pool.gateways(client)
    number = pool.gateway_of("b")
    assert runs_on(pool.hosts["b"], number)
    pool.close()
    pool.until(lambda: not runs_on(pool.hosts["b"], number), "it has ended")
    pool.up()
    pool.until_here(SERVER, *pool.names)
    pool.gateways(client)
    assert pool.gateway_of("b") != number


def test_where_the_servers_own_machine_is_named_its_agent_keeps_the_gateway_and_a_killed_server_changes_nothing(
    pool: GatewaysPool, client: Client
) -> None:
    own, _ = pool.gateways(client)
    pool.close()
    pool.options = ("--serve-on", SERVER, "--serve-on", "b")
    pool.up()
    pool.until_here(SERVER, *pool.names)
    here, there = pool.gateways(client, SERVER)
    number = pool.gateway_of(SERVER)
    with crowd(here.http_url, pool.token, "digits", num_clients=2, trust=pool.trust(here)) as asked:
        pool.until(lambda: asked.num_answered > 20, "it is asked")
        pool.signal(signal.SIGKILL)
        pool.up()
        pool.until_here(SERVER, *pool.names)
        assert pool.gateways(client, SERVER) == (here, there)
        num = asked.num_answered
        pool.until(lambda: asked.num_answered > num + 20, "it is asked")

    assert (asked.wrong, set(asked.statuses), asked.num_broken) == ([], {200}, 0)
    assert here.http_url == own.http_url, "it is where the server's was"
    assert pool.gateway_of(SERVER) == number
