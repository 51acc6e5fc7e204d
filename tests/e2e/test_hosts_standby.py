"""A server with PostgreSQL and a standby on another host: the whole host of the server is lost, and nothing else.

No host reaches the PostgreSQL of this machine; what carries to it is a socket in the folder that all of them see.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from tests.databases import new_database
from tests.e2e.hosts_pool import PORT, SERVER, HostsPool
from tests.e2e.trial import Trial
from tests.hosts import Network, require_hosts
from tests.hosts.carrier import Carrier

STANDBY = "s"
TAKEOVER_S = 30.0
"""Five of it are PostgreSQL's, which ends the session of a leader that says nothing; the rest is a busy machine's."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class StandbyHosts(HostsPool):
    names = ("b", "c", STANDBY)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[str, Carrier]]:
    """The URL of a database that hosts reach, and what carries to it."""
    require_hosts()
    with new_database() as url:
        parts = urlsplit(url)
        folder = tmp_path / "postgres"
        folder.mkdir()
        folder.chmod(0o777)
        address = parts.hostname or "127.0.0.1", parts.port or 5432
        with Carrier(folder / f".s.PGSQL.{address[1]}", address) as carrier:
            user = parts.netloc.rpartition("@")[0] or "postgres"
            name = parts.path.strip("/")
            yield f"postgresql://{user}@/{name}?host={quote(str(folder))}&port={address[1]}", carrier


def test_a_training_goes_on_with_the_same_tasks_when_the_whole_host_of_the_server_is_lost(
    tmp_path: Path, database: tuple[str, Carrier]
) -> None:
    url, carrier = database
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool").chmod(0o777)
    with Network() as network:
        hosts = StandbyHosts(tmp_path / "pool" / "home", network, database=url)
        with hosts.hosts[STANDBY].inside():
            hosts.up()
            for name in ("b", "c"):
                hosts.join(name)
            hosts.until_here("b", "c")
            standby = hosts.start_server(STANDBY, "--standby")
            hosts.until(lambda: (hosts.home / "standby.json").exists(), "the standby waits", 60)
            with hosts.client() as client, hosts.without(SERVER):
                job = Trial.begin(hosts, client, tmp_path / "trial", epochs=40, max_tasks=4)
                before = {task.id for task in job.until_calm(4)}
            at, step = time.time(), job.beats()[-1].step
            carrier.holds = True
            hosts.kill_host(SERVER)
            hosts.server, hosts.server_host = standby, STANDBY
            hosts.until(lambda: f"{hosts.hosts[STANDBY].address}:{PORT}" in leads_at(hosts), "it leads", TAKEOVER_S)
            carrier.holds = False
            with hosts.client() as client:
                job.client = client
                hosts.until_here("b", "c")
                job.until_step(step + 20)
                assert {task.id for task in job.training()} >= before
                assert [event for event in job.events("task.lost") if event.at > at] == []
                job.end()
            hosts.close()


def leads_at(hosts: HostsPool) -> str:
    try:
        return (hosts.home / "server.json").read_text()
    except FileNotFoundError:
        return ""
