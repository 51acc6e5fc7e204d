"""A second server on the same database stands by, and takes over after the leader was killed, or stopped.

A database that goes away for a while stops no training.
"""

import json
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import LiteralString

import httpx
import pytest
from psycopg import sql
from tests.databases import cut_all, execute, new_database, server_url
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool
from tests.e2e.test_durable import pids_of, progress, with_password
from tests.e2e.test_shell import command, on_terminal, piped
from tests.plain_http import NO_TLS

from pliant.api.trust import Trust

TAKEOVER_S = 10.0
HANG_S = 30.0
DEPOSED = 3
WAYS = ("--after", "--after-any")


class Standby(Pool):
    """A server that waits for the lead; its home is another one's, or its own."""

    def listens(self) -> bool:
        record = self.home / "standby.json"
        return self.process is not None and record.exists() and f'"pid": {self.process.pid}' in record.read_text()

    def leads(self) -> bool:
        return super().listens()

    def url(self) -> str:
        return str(json.loads((self.home / "standby.json").read_text())["url"])


@pytest.fixture
def database() -> Iterator[str]:
    with new_database() as url:
        yield url


def leader_of(tmp_path: Path, database: str | None) -> Pool:
    return Pool(tmp_path / "home", slots=2, options=("--port", "0"), database=database)


def standby_of(home: Path, database: str | None) -> Standby:
    return Standby(home, slots=2, options=("--port", "0", "--standby"), database=database)


def begin_training(pool: Pool, pace: Pace) -> tuple[str, set[int]]:
    pace.set(0.1)  # a step takes four, longer than the time between two reports: every step has a point
    tasks = ("--min", "2", "--max", "2", "--virtual-workers", "8")
    job_id = pool.submit(HERE / "paced.py", *tasks, args=("--epochs", "1000", "--pace", str(pace)))
    with pool.client() as client:
        pids = pool.until(lambda: len(p := pids_of(pool, client, job_id)) == 2 and p, "two tasks train")
        pool.until(lambda: progress(client, job_id) > 2, "it trains")
    assert isinstance(pids, set)
    return job_id, pids


def until_leading(standby: Standby, job_id: str, pids: set[int]) -> None:
    """Wait until the standby leads and hears of the training, whose processes are the same."""
    took_s = standby.lacked_s(standby.leads, "the standby leads", since=time.time())
    assert took_s < TAKEOVER_S, f"it took over after {took_s:.1f} s"
    with standby.client() as client:
        before = progress(client, job_id)
        standby.until(lambda: progress(client, job_id) > before, "its tasks have found it", 10)
        assert pids_of(standby, client, job_id) == pids


def assert_no_gap(pool: Pool, job_id: str) -> None:
    with pool.client() as client:

        def told() -> list[int]:
            steps = [point.step for point in client.metrics(job_id, names=["loss"]).points]
            return steps if len(steps) > 5 else []

        steps = pool.until(told, "it has trained on for a few steps")
    assert all(after == before + 1 for before, after in pairwise(steps)), steps


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stopped_leader_is_replaced_and_then_a_killed_one_by_whom_others_trust(
    tmp_path: Path, database: str, pace: Pace
) -> None:
    database = with_password(database)
    first = leader_of(tmp_path, database)
    second, third = standby_of(first.home, database), standby_of(tmp_path / "elsewhere", database)
    for pool in (first, second, third):
        pool.options += ("--tls",)
    try:
        first.up()
        job_id, pids = begin_training(first, pace)
        pinned = tmp_path / "server.pem"
        pinned.write_bytes((first.home / "address/server.pem").read_bytes())
        trust = Trust(certificate=pinned).context()
        second.up()
        answer = httpx.get(f"{second.url()}/v1/healthz", verify=trust, timeout=HANG_S)
        assert answer.status_code == 503
        leading = json.loads((first.home / "server.json").read_text())["url"]
        assert f"stands by while another one leads; ask {leading}" in answer.json()["detail"]
        assert first.process is not None
        first.process.send_signal(signal.SIGSTOP)
        until_leading(second, job_id, pids)
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(HANG_S) == DEPOSED
        third.up()
        second.signal(signal.SIGKILL)
        until_leading(third, job_id, pids)
        url = json.loads((third.home / "server.json").read_text())["url"]
        answer = httpx.get(f"{url}/v1/healthz", verify=trust, timeout=HANG_S)
        assert answer.status_code == 200, "a standby of another folder shows the certificate of the pool"
        assert_no_gap(third, job_id)
        third.cli("stop", job_id)
    finally:
        for pool in (first, second, third):
            if pool.process is not None and not pool.process_ended():
                pool.process.send_signal(signal.SIGCONT)
                pool.close()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_second_server_on_a_folder_takes_over_when_the_first_is_killed(tmp_path: Path, pace: Pace) -> None:
    first = leader_of(tmp_path, None)
    second, third = standby_of(first.home, None), standby_of(first.home, None)
    try:
        first.up()
        job_id, pids = begin_training(first, pace)
        waiting = [first.submit(HERE / "paced.py", how, job_id, args=("--pace", str(pace))) for how in WAYS]
        second.up()
        assert httpx.get(f"{second.url()}/v1/jobs", timeout=HANG_S).status_code == 503
        with on_terminal(command(first, job_id, "--task", "1")) as terminal:
            terminal.until(f"{job_id}.1:")
            first.signal(signal.SIGKILL)
            assert terminal.process.wait(HANG_S) == 4
            terminal.until("the shell was ended: the connection to the server was lost")
            assert not terminal.is_raw()
        until_leading(second, job_id, pids)
        there = piped(second, job_id, "--task", "1", "--", "sh", "-c", "cat; pgrep -c bash", given=b"back\n")
        assert there.stdout == b"back\n0\n", "beside a task that was adopted, and alone"
        assert_no_gap(second, job_id)
        with second.client() as client:
            whys = [client.job(one).job.why for one in waiting]
            assert whys == [f"waits for {job_id} to complete", f"waits for {job_id} to end"]
            second.cli("stop", "--now", job_id)
            never = client.wait(waiting[0], timeout_s=HANG_S)
            assert never.reason == f"{job_id} was stopped, and {never.id} was to run after it had completed"
            second.until(lambda: client.job(waiting[1]).job.started_at, "what waited for any end has started", HANG_S)
        third.up()
        assert third.signal(signal.SIGTERM) == 0
        assert not (first.home / "standby.json").exists()
        assert second.leads()
    finally:
        for pool in (first, second, third):
            pool.close()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_database_that_goes_away_stops_requests_but_no_training(tmp_path: Path, database: str, pace: Pace) -> None:
    pool = leader_of(tmp_path, database)
    try:
        pool.up()
        job_id, pids = begin_training(pool, pace)
        for seconds in (0.0, 7.0):  # its server starts again at once; is away for longer than a lease
            allow(database, False)
            pool.until(lambda: cut_all_from_outside(database) == 0, "nobody is connected to the database")
            until = time.monotonic() + seconds
            with pool.client() as client:
                pool.until(lambda: status(pool, job_id) == 503, "requests are refused")
                pool.until(lambda: time.monotonic() > until, "the outage is over")  # noqa: B023
                allow(database, True)
                pool.until(lambda: status(pool, job_id) == 200, "requests are answered", 10)
                before = progress(client, job_id)
                pool.until(lambda: progress(client, job_id) > before, "the loop goes on", 10)  # noqa: B023
                assert pids_of(pool, client, job_id) == pids
        assert cut_all(database) > 0
        assert_no_gap(pool, job_id)
        pool.cli("stop", job_id)
        assert pool.signal(signal.SIGTERM) == 0
    finally:
        pool.close()


def status(pool: Pool, job_id: str) -> int:
    record = json.loads((pool.home / "server.json").read_text())
    token = (pool.home / "token").read_text()
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{record['url']}/v1/jobs/{job_id}", headers=headers, timeout=HANG_S, verify=NO_TLS).status_code


def allow(database: str, connections: bool) -> None:
    """Let nobody connect to a database, or everybody again."""
    name = sql.Identifier(database.rpartition("/")[2])
    execute(server_url(), sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(name, sql.Literal(connections)))


def cut_all_from_outside(database: str) -> int:
    """End every session of a database that nobody can connect to; return how many there were."""
    statement: LiteralString = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    return len(execute(server_url(), statement, database.rpartition("/")[2]))
