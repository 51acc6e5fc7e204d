"""What it costs a training that its tasks are on several machines, and how soon a machine is used, or missed.

The machines are hosts of network namespaces on this one, with a bridge between them; a server on one, agents on three
with two, one and one slots. A job with the V of four tasks goes 2 → 4 → 2 → 3 tasks, then one of three is killed by
SIGKILL in the middle of a step, several times over in every session; in the same run the same is done on one machine,
and the bridge takes frames as long as those of its loopback interface. What a change costs is the longest gap between
steps around it, beyond the usual step before it. Where more tasks share two processors their usual step is longer: that
is told beside it. A host joins while a job could use its slot: from the start of its agent, a new process, to the first
step that a task there has computed in. Until then it has a processor of its own, as a machine that joins has, and the
others have the rest. A host loses its power: from that to the next step of the others, who hear nothing of it until the
lease is over. Beside both stands how long one step of the others takes.

Claims: a change over hosts takes at most 1.3 times as long as on one machine, a join 5 s, a loss the lease and 0.5 s.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from tests.hosts import Host, Network, available

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.peers.page import MODELS
from bench.peers.processes import SETTINGS
from bench.peers.server import OPEN, Server, until
from bench.peers.session import EVENTS, Outcome, longer_s, open_place, play, wait_half_a_step
from bench.peers.sides import KINDS, Place, Pliant
from bench.peers.spare import SpareMemory
from bench.peers.steplog import NUM_USUAL, Logs, new_steps, usual_by_size
from pliant.api.machines import JoinTokenRequest

AGENTS: Final = {"b": 2, "c": 1, "d": 1}
"""Slots of each machine."""
SERVER: Final = "a"
AGENT_PORT: Final = 7314
LIMIT_S: Final = 120.0
MOST: Final = 1.3
JOIN_S: Final = 5.0
LEASE_S: Final = 2.0
LOSS_S: Final = LEASE_S + 0.5
FRAME_BYTES: Final = 65_535
"""Of changes, which are compared with those on one machine: as long as the frames of its loopback interface. A network
card cuts what is longer for nothing; here a processor does, and four tasks on two had steps a sixth longer."""
ALL: Final = frozenset(os.sched_getaffinity(0))
ROUNDS: Final = 4
NUM_JOINS: Final = 2
"""So many hosts join, and are lost, for each session: one takes 40 s."""
FREED_S: Final = 1.0
"""So long after a host was lost spare memory is freed, while the others still wait for its lease: later, and freeing it
would take processor from the step that is timed; sooner, and this machine's host would have it back before that."""
SESSION_S: Final = 600.0
CHANGES: Final = (
    *("model", "event", "on one machine, ms", "over hosts, ms", "ratio"),
    *("of it: steps of more tasks are longer", "without that"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A server on one host, and agents on others; this thread is on the server's."""

    hosts: dict[str, Host]
    place: Place
    server: Server

    def join(self, name: str, processors: Iterable[int]) -> None:
        """Start the agent of a host, which has never been here, on some of this machine's processors."""
        token = self.place.steps.parent / f"token-{name}"
        token.write_text(self.server.client.machines.make_token(JoinTokenRequest(machine=name)).token)
        argv: list[str | Path] = ["taskset", "-c", ",".join(map(str, processors)), sys.executable, "-P"]
        argv += ["-m", "pliant.entry.agent", "--slots", str(AGENTS[name])]
        argv += ["--join", f"{self.hosts[SERVER].address}:{AGENT_PORT}", "--token-file", token, "--name", name]
        argv += ["--state-dir", self.place.steps.parent / f"agent-{name}"]
        env = {key: value for key, value in os.environ.items() if not key.startswith("PLIANT_")} | SETTINGS
        del env["GLOO_SOCKET_IFNAME"]
        self.hosts[name].popen(argv, env=env, output=self.place.processes.output)

    def until_here(self, *names: str) -> None:
        def here() -> set[str]:
            return {one.name for one in self.server.client.machines.list() if one.state == "in use"}

        until(lambda: set(names) <= here(), f"{', '.join(names)} are there", LIMIT_S)

    def starts_on(self, name: str) -> bool:
        """Tell whether a task of the job is there, or is being started."""
        (job,) = [job for job in self.server.client.jobs().jobs if not job.ended]
        return any(task.node_id == name for task in self.server.client.job(job.id).tasks)

    def last(self, _logs: Logs) -> int:
        """Return the process of the task that was started last."""
        (job,) = [job for job in self.server.client.jobs().jobs if not job.ended]
        task = max(self.server.training(job.id), key=lambda one: int(one.id.rpartition(".")[2]))
        return self.hosts[str(task.node_id)].number_outside(task.pid or 0)


def begin(hosts: dict[str, Host], place: Place) -> Pool:
    """Start a server on its host."""
    options = ("--cluster", "agents", "--tls", "--host", hosts[SERVER].address, "--agent-port", str(AGENT_PORT))
    server = Server(place.steps.parent, place.processes, slots=0, options=(*options, *OPEN))
    return Pool(hosts=hosts, place=place, server=server)


@contextmanager
def open_hosts(frame_bytes: int = 1500) -> Iterator[dict[str, Host]]:
    """Yield the server's host and those of the agents; this thread is on the server's."""
    with Network(frame_bytes=frame_bytes) as network:
        hosts = {name: network.add(name) for name in (SERVER, *AGENTS)}
        with hosts[SERVER].inside():
            yield hosts


def play_on_one(model: str) -> Outcome:
    """Play all events on one machine."""

    def side(place: Place) -> Pliant:
        return Pliant(place, server=Server(place.steps.parent, place.processes, slots=4, options=OPEN))

    return play(replace(KINDS[0], make=side, limit_s=SESSION_S), model, Path(sys.executable), rounds=ROUNDS)


def play_over_hosts(model: str) -> Outcome:
    """Play all events over hosts."""
    pools: list[Pool] = []

    def side(place: Place) -> Pliant:
        pool = begin(hosts, place)
        for name in AGENTS:
            pool.join(name, ALL)
        pool.until_here(*AGENTS)
        pools.append(pool)
        return Pliant(place, server=pool.server)

    kind = replace(KINDS[0], make=side, limit_s=SESSION_S)
    with open_hosts(FRAME_BYTES) as hosts:
        return play(kind, model, Path(sys.executable), lambda logs: pools[0].last(logs), rounds=ROUNDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAndLoss:
    """What a host that came and went cost, seconds."""

    before_s: float
    """A step before it came, of tasks that share the other processors."""
    joined_s: float
    """From the start of its agent to the first step that it has computed in."""
    lost_s: float
    """From its loss to the next step without it."""
    usual_s: float
    """A step of those who remain."""


def play_join_and_loss(model: str) -> JoinAndLoss:
    """Let a host join a training, and lose it again."""
    own = {max(ALL)}
    others = ALL - own or ALL
    spare, more_spare = SpareMemory(model), SpareMemory(model)
    with open_hosts() as hosts, open_place(model, Path(sys.executable)) as place:
        with on_processors(others):
            pool, logs = begin(hosts, place), Logs(place.steps)
        for name in ("b", "c"):
            pool.join(name, others)
        pool.until_here("b", "c")
        pool.server.submit("by_pliant.py", model, str(place.steps), "exact", max_tasks=4)
        until(lambda: _size(logs) == 3, "three tasks train", LIMIT_S)
        spare.hold()
        more_spare.hold()
        until(lambda: _num_steps(logs, size=3) >= NUM_USUAL, "steps of three", LIMIT_S)
        before_s = usual_by_size(logs.read())[3]
        with on_processors(others):  # this process is not one of the machine that joins
            spare.free()
            began_at = time.monotonic()
            pool.join("d", own)
            until(lambda: pool.starts_on("d"), "a task of the host that has joined", LIMIT_S, look_s=0.2)
            more_spare.free()  # what its agent and its zygote needed was freed before
            joined_s = _step_of_last(logs, began_at, size=4) - began_at
        spread_processes()
        spare.hold()
        until(lambda: _num_steps(logs, size=4) >= NUM_USUAL, "steps of four", LIMIT_S)
        wait_half_a_step(logs, time.monotonic() + LIMIT_S)
        lost_at = time.monotonic()
        hosts["d"].kill(silently=True)
        time.sleep(max(0.0, lost_at + FREED_S - time.monotonic()))
        spare.free()
        lost_s = _step_after(logs, lost_at, size=3) - lost_at
        done = _num_steps(logs, size=3)
        until(lambda: _num_steps(logs, size=3) >= done + NUM_USUAL, "more steps of three", LIMIT_S)
        last = [step.at for step in new_steps(logs.read())][-NUM_USUAL:]
        pool.server.client.close()
        usual_s = statistics.median(after - before for before, after in pairwise(last))
        return JoinAndLoss(before_s=before_s, joined_s=joined_s, lost_s=lost_s, usual_s=usual_s)


@contextmanager
def on_processors(processors: Iterable[int]) -> Iterator[None]:
    """Let what this thread starts run on these processors alone."""
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, ALL)


def spread_processes() -> None:
    """Let all that this process has started, and what that has started, run on all processors."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found = [os.getpid()]
    for pid in found:
        found += parents.get(pid, [])
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), ALL)


def _step_after(logs: Logs, at: float, *, size: int) -> float:
    """Wait for the first new step after `at` of so many tasks; return when it was done."""
    found: list[float] = []

    def is_there() -> bool:
        found.extend(step.at for step in new_steps(logs.read()) if step.at > at and step.size == size)
        return bool(found)

    until(is_there, f"{size} tasks train", LIMIT_S)
    return found[0]


def _step_of_last(logs: Logs, at: float, *, size: int) -> float:
    """Wait for the first step of so many tasks that the last of them notes; return when it was done.

    The others note one before it: they had computed that one when the last task joined, and it got their sum.
    """
    found: list[float] = []

    def is_there() -> bool:
        found.extend(step.at for step in logs.read() if step.at > at and (step.size, step.rank) == (size, size - 1))
        return bool(found)

    until(is_there, f"a step that the last of {size} tasks computes in", LIMIT_S)
    return found[0]


def _size(logs: Logs) -> int:
    steps = logs.read()
    return steps[-1].size if steps else 0


def _num_steps(logs: Logs, *, size: int) -> int:
    """Return how many steps this many tasks have done together."""
    return len({step.number for step in logs.read() if step.size == size})


def compare(model: str, one: list[Outcome], over: list[Outcome]) -> tuple[list[tuple[str, ...]], list[Claim]]:
    """Return the rows and claims of one model's changes."""
    rows: list[tuple[str, ...]] = []
    judged = []
    for event in EVENTS:
        pauses = [
            [lost.lost_s * 1000 for outcome in side for lost in outcome.lost.get(event, ())] for side in (one, over)
        ]
        if not all(pauses):
            rows.append((model, event, *("not reached" if not side else spread(side) for side in pauses), "", "", ""))
            continue
        medians = [statistics.median(side) for side in pauses]
        longer = [longer_s(side, event) * 1000 for side in (one, over)]
        alone = [max(0.0, median - more) for median, more in zip(medians, longer, strict=True)]
        without = f"{alone[0]:.0f} and {alone[1]:.0f} ms" if any(longer) else ""
        more = f"{longer[0]:.0f} and {longer[1]:.0f} ms" if any(longer) else ""
        ratio = medians[1] / medians[0]
        rows.append((model, event, *map(spread, pauses), f"{ratio:.2f}", more, without))
        text = f"{model}, {event}: at most {MOST:g} times as long over hosts"
        judged.append(Claim(text=text, found=f"{ratio:.2f}", holds=ratio <= MOST))
    return rows, judged


def judge(model: str, what: str, found: list[float], most_s: float) -> tuple[tuple[str, ...], Claim]:
    """Return the row and the claim of a time."""
    median = statistics.median(found)
    text = f"{model}, {what}: at most {most_s:g} s"
    return (model, what, spread(found, 2)), Claim(text=text, found=f"{median:.2f} s", holds=median <= most_s)


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--runs", type=int, default=2, help="sessions per model and side (default 2)")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    given = parser.parse_args()
    if why := available():
        print(f"bench.hosts: nothing is measured: {why}", file=sys.stderr)
        return 0
    changes: list[tuple[str, ...]] = []
    times: list[tuple[str, ...]] = []
    judged: list[Claim] = []
    troubles: list[str] = []
    for model in given.models:
        sides: dict[Callable[[str], Outcome], list[Outcome]] = {play_on_one: [], play_over_hosts: []}
        for _ in range(given.runs):
            for side, outcomes in sides.items():
                outcomes.append(side(model))
        troubles += [
            f"- {model}, went no further: {one.trouble}" for side in sides.values() for one in side if one.trouble
        ]
        rows, claims = compare(model, *sides.values())
        changes, judged = changes + rows, judged + claims
        found = [play_join_and_loss(model) for _ in range(NUM_JOINS * given.runs)]
        joined, lost = [one.joined_s for one in found], [one.lost_s for one in found]
        for what, all_s, most_s in (("a host joins", joined, JOIN_S), ("a host is lost", lost, LOSS_S)):
            row, claim = judge(model, what, all_s, most_s)
            times.append(row)
            judged.append(claim)
        times.append((model, "a step before it has joined", spread([one.before_s for one in found], 2)))
        times.append((model, "a step after it was lost", spread([one.usual_s for one in found], 2)))
    text = "\n".join(
        [
            head("A training over several machines", f"python -m bench.hosts --runs {given.runs}"),
            (__doc__ or "").split("Claims:")[0],
            table(CHANGES, *changes),
            table(("model", "event", "s"), *times),
            verdicts(judged),
            *troubles,
        ]
    )
    return finish(text, judged, given.out)


if __name__ == "__main__":
    sys.exit(main())
