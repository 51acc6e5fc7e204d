"""What a server with a thousand machines needs, and how soon it decides for ten thousand tasks there.

The machines are played (`bench.nodes.agents`) over real TLS links; the server is a real one. At rest nothing but
renewals comes. Then jobs of the fixed kind are submitted, until 10,000 tasks run. What the server needs is processor
time by the kernel's count, of a core; a tick and a decision are timed by the server itself (`/metrics`), so their
quantiles are bounds of buckets.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx

from bench._report import Claim, finish, head, table, verdicts
from bench.nodes.agents import note_machines
from bench.peers.processes import Processes
from bench.peers.server import Server, until
from pliant.api.jobs import JobRequest
from pliant.client.http.home import read_record, read_token

LIMIT_S: Final = 120.0
SETTLE_S: Final = 3.0
GOAL_REST: Final = 0.25
GOAL_TICK_S: Final = 0.1
GOAL_DECISION_S: Final = 1.0
TICKS: Final = "pliant_tick_duration_seconds"
PLANS: Final = "pliant_schedule_duration_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What was seen in one part of a run."""

    name: str
    server: float
    """Cores."""
    played: float
    """Cores, of who plays the agents."""
    ticks: Mapping[float, int]
    """How many took longer than the bound before and at most this long."""
    plans: Mapping[float, int]
    load: float

    def row(self) -> tuple[str, ...]:
        """Return it as a row of the table."""
        ticks, plans = self.ticks, self.plans
        return (
            self.name,
            f"{100 * self.server:.0f} %",
            f"{100 * self.played:.0f} %",
            f"{sum(ticks.values())}: {bound(ticks, 0.5)}, {bound(ticks, 0.99)}, {bound(ticks, 1)}",
            f"{sum(plans.values())}: {bound(plans, 0.5)}, {bound(plans, 0.99)}, {bound(plans, 1)}",
            f"{self.load:.1f}",
        )


def quantile(counts: Mapping[float, int], part: float) -> float:
    """Return the bound that so many of them keep."""
    rest = part * sum(counts.values())
    for limit in sorted(counts):
        rest -= counts[limit]
        if rest <= 0:
            return limit
    return 0.0


def bound(counts: Mapping[float, int], part: float) -> str:
    """Return the quantile in words."""
    return f"≤ {1000 * quantile(counts, part):g} ms" if counts else "none"


class Pool:
    """A server, and who plays its machines."""

    def __init__(self, folder: Path, processes: Processes, machines: int, slots: int) -> None:
        home = folder / "home"
        home.mkdir(mode=0o700)
        note_machines(home, machines)
        options = ("--cluster", "agents", "--tls", "--host", "127.0.0.1", "--agent-port", "0")
        self.server = Server(folder, processes, slots=0, options=options)
        self._report = folder / "report.json"
        announced = json.loads((home / "address" / "agents.json").read_text())["servers"][0]
        port = announced.rpartition(":")[2]
        began = time.monotonic()
        argv = (sys.executable, "-m", "bench.nodes.agents", home, port, str(machines), str(slots), self._report)
        playing = processes.start(argv)
        until(lambda: self.seen().get("num_met", 0) >= machines, "all machines are there", LIMIT_S)
        self.met_s = time.monotonic() - began
        record = processes.started[0].pid
        self._pids = (record, playing.pid)
        server = read_record(home)
        headers = {"Authorization": f"Bearer {read_token(home)}"}
        self._http = httpx.Client(base_url=server.url, headers=headers, timeout=LIMIT_S, verify=server.trust.context())

    def seen(self) -> dict[str, float]:
        """Return what the agents have seen."""
        return dict(json.loads(self._report.read_text())) if self._report.exists() else {}

    def watch(self, name: str, work: Callable[[], None]) -> Phase:
        """Look on while something is done."""
        before, used, began = self._counts(), [cpu_s(pid) for pid in self._pids], time.monotonic()
        work()
        took = time.monotonic() - began
        server, played = ((cpu_s(pid) - one) / took for pid, one in zip(self._pids, used, strict=True))
        after = self._counts()
        ticks, plans = (difference(before[family], after[family]) for family in (TICKS, PLANS))
        return Phase(name=name, server=server, played=played, ticks=ticks, plans=plans, load=os.getloadavg()[0])

    def _counts(self) -> dict[str, dict[float, int]]:
        text = self._http.get("/metrics").raise_for_status().text
        found: dict[str, dict[float, int]] = {TICKS: {}, PLANS: {}}
        for line in text.splitlines():
            family, _, rest = line.partition('_bucket{le="')
            if family in found:
                limit, _, value = rest.partition('"} ')
                found[family][float(limit)] = int(float(value))
        return found


def difference(before: Mapping[float, int], after: Mapping[float, int]) -> dict[float, int]:
    """Return how many came between two looks at a histogram, each in one bucket."""
    found, so_far = {}, 0
    for limit in sorted(after):
        total = after[limit] - before.get(limit, 0)
        found[limit], so_far = total - so_far, total
    return {limit: count for limit, count in found.items() if count}


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(given: argparse.Namespace) -> tuple[list[Phase], list[tuple[str, str]]]:
    """Return what was seen in each phase, and other figures in words."""
    with tempfile.TemporaryDirectory(prefix="plb-") as name:
        folder = Path(name)
        processes = Processes(folder / "output.log")
        try:
            pool = Pool(folder, processes, given.machines, given.slots)
            time.sleep(SETTLE_S)
            phases = [pool.watch("at rest", partial(time.sleep, given.seconds))]
            per_job = given.tasks // given.jobs
            began = time.monotonic()
            start = partial(start_all, pool, folder, given.jobs, per_job)
            phases.append(pool.watch("tasks start", start))
            seen = pool.seen()
            time.sleep(SETTLE_S)
            phases.append(pool.watch("tasks run", partial(time.sleep, given.seconds)))
            figures = [
                ("machines linked, from the start of who plays them", f"{pool.met_s:.1f} s"),
                (
                    f"from the first submission of {given.jobs}, one after the other, to the first order",
                    f"{seen['first_start'] - began:.2f} s",
                ),
                (f"to the last of {per_job * given.jobs} orders", f"{seen['last_start'] - began:.2f} s"),
                ("links lost", str(pool.seen()["num_lost"])),
            ]
        finally:
            processes.end()
    return phases, figures


def start_all(pool: Pool, folder: Path, jobs: int, per_job: int) -> None:
    """Submit jobs one after the other, and wait until all their tasks were ordered."""
    script = folder / "sleeps.py"
    script.write_text("import time\ntime.sleep(3600)\n")
    request = JobRequest(script=script.name, min_tasks=per_job, max_tasks=per_job, fixed=True)
    for _ in range(jobs):
        pool.server.client.submit(script, request)
    until(lambda: pool.seen()["num_starts"] >= per_job * jobs, "all tasks have started", LIMIT_S)


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=10, help="of each machine (default 10)")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=10_000, help="of all jobs together (default 10,000)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each part is looked at (default 10)")
    given = parser.parse_args()
    phases, figures = play(given)
    rest, running = phases[0], phases[2]
    slowest = max(quantile(phase.plans, 1) for phase in phases)
    claims = [
        Claim(
            text=f"at rest the server needs {100 * GOAL_REST:.0f} % of a core at most",
            found=f"{100 * rest.server:.0f} %",
            holds=rest.server <= GOAL_REST,
        ),
        Claim(
            text=f"while tasks start, 99 of 100 ticks take {1000 * GOAL_TICK_S:.0f} ms at most",
            found=bound(phases[1].ticks, 0.99),
            holds=quantile(phases[1].ticks, 0.99) <= GOAL_TICK_S,
        ),
        Claim(
            text=f"while tasks run, 99 of 100 ticks take {1000 * GOAL_TICK_S:.0f} ms at most",
            found=bound(running.ticks, 0.99),
            holds=quantile(running.ticks, 0.99) <= GOAL_TICK_S,
        ),
        Claim(
            text=f"no decision takes longer than {GOAL_DECISION_S:g} s",
            found=f"≤ {1000 * slowest:g} ms",
            holds=slowest <= GOAL_DECISION_S if any(phase.plans for phase in phases) else None,
        ),
    ]
    counts = f"--machines {given.machines} --jobs {given.jobs} --tasks {given.tasks}"
    command = f"python -m bench.nodes {counts} --seconds {given.seconds:g}"
    columns = ("", "server, of a core", "agents, of a core", "ticks: 50, 99, 100 %", "decisions", "load average")
    text = "\n".join(
        (
            head(f"A server with {given.machines} machines of {given.slots} slots", command),
            (__doc__ or "").partition("\n")[2],
            table(columns, *(phase.row() for phase in phases)),
            table(("", ""), *figures),
            verdicts(claims),
        )
    )
    return finish(text, claims, given.out)


if __name__ == "__main__":
    sys.exit(main())
