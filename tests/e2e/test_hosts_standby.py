"""A server with PostgreSQL and a standby on another host: the whole host of the server is lost, and nothing else.

No host reaches the PostgreSQL of this machine; what carries to it is a socket in the folder that all of them see.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from tests.databases import new_database
from tests.e2e.hosts_pool import PORT, SERVER, HostsPool
from tests.e2e.trial import Trial
from tests.hosts import HostProcess, Network, require_hosts
from tests.hosts.carrier import Carrier

from pliant.entry.server.lead import DEPOSED

STANDBY = "s"
TAKEOVER_S = 30.0
"""Five of it are PostgreSQL's, which ends the session of a leader that says nothing; the rest is a busy machine's."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


ONCE = """
import sys, time, pathlib
begun, gate = map(pathlib.Path, sys.argv[1:])
with begun.open("a") as file:
    file.write("begun\\n")
while not gate.exists():
    time.sleep(0.05)
"""


class StandbyHosts(HostsPool):
    names = ("b", "c", STANDBY)
    standby: HostProcess | None = None

    def until_standby_leads(self) -> None:
        """Wait until the standby has taken over; it is the server from then on."""
        self.server, self.server_host = self.standby, STANDBY
        address = f"{self.hosts[STANDBY].address}:{PORT}"
        self.until(lambda: address in leads_at(self), "it leads", TAKEOVER_S)


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


@contextmanager
def hosts_with_standby(folder: Path, database: tuple[str, Carrier]) -> Iterator[StandbyHosts]:
    """A server, two other machines, and a standby that waits; this thread is on the standby's host."""
    folder.mkdir()
    folder.chmod(0o777)
    with Network() as network:
        hosts = StandbyHosts(folder / "home", network, database=database[0])
        with hosts.hosts[STANDBY].inside():
            hosts.up()
            for name in ("b", "c"):
                hosts.join(name)
            hosts.until_here(SERVER, "b", "c")
            hosts.standby = hosts.start_server(STANDBY, "--standby")
            hosts.until(lambda: (hosts.home / "standby.json").exists(), "the standby waits", 60)
            yield hosts
            hosts.close()


def test_a_training_goes_on_with_the_same_tasks_when_the_whole_host_of_the_server_is_lost(
    tmp_path: Path, database: tuple[str, Carrier]
) -> None:
    with hosts_with_standby(tmp_path / "pool", database) as hosts:
        with hosts.client() as client, hosts.without(SERVER):
            job = Trial.begin(hosts, client, tmp_path / "trial", epochs=40, max_tasks=4)
            before = {task.id for task in job.until_calm(4)}
        at, step = time.time(), job.beats()[-1].step
        database[1].holds = True
        hosts.kill_host(SERVER)
        hosts.until_standby_leads()
        database[1].holds = False
        with hosts.client() as client:
            job.client = client
            hosts.until_here("b", "c", STANDBY)
            job.until_step(step + 20)
            assert {task.id for task in job.training()} >= before
            assert [event for event in job.events("task.lost") if event.at > at] == []
            job.end()


def test_what_runs_on_the_server_s_own_machine_is_not_begun_twice_when_that_is_cut_off_and_lives(
    tmp_path: Path, database: tuple[str, Carrier]
) -> None:
    script, gate, begun = tmp_path / "once.py", tmp_path / "gate", tmp_path / "begun"
    script.write_text(ONCE)
    begun.touch()
    begun.chmod(0o666)
    with hosts_with_standby(tmp_path / "pool", database) as hosts:
        with hosts.client() as client, hosts.without("b", "c"):
            job_id = hosts.submit(script, "--fixed", "1", args=(str(begun), str(gate)))
            hosts.until(lambda: begun.read_text() == "begun\n", "it runs")
            (task,) = client.job(job_id).tasks
        assert task.node_id == SERVER
        old = hosts.server
        assert old is not None
        with database[1].severed(old.pid), hosts.network.cut(hosts.hosts[SERVER]):
            hosts.until_standby_leads()
            with hosts.client() as client:
                hosts.until_here("b", "c", STANDBY)
                assert hosts.state(SERVER) == "away"
                assert [one.id for one in client.job(job_id).tasks if one.state == "training"] == [task.id]
        assert old.wait(30) == DEPOSED
        hosts.until_here(SERVER)
        gate.touch()
        with hosts.client() as client:
            assert client.wait(job_id, timeout_s=60).state == "completed"
            assert [one.id for one in client.job(job_id).tasks] == [task.id]
        assert begun.read_text() == "begun\n"


def leads_at(hosts: HostsPool) -> str:
    try:
        return (hosts.home / "server.json").read_text()
    except FileNotFoundError:
        return ""
