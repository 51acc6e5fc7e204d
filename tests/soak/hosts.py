"""Plays a soak over several hosts: cables are cut; workers, agents, servers and whole hosts are killed or stop.

All tasks are on machines with an agent; the server's own host has no slots. After every move what was broken is mended,
at once or a while later, and whoever trains goes on. Every job must have used each sample once an epoch and come to the
bits of one that nobody disturbed, and when all have ended no process of theirs is left on any host.
"""

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.e2e.hosts_pool import ORPHAN_S, SERVER, HostsPool
from tests.e2e.trial import WIDTH, Trial, undisturbed
from tests.hosts import HostProcess, Network
from tests.soak.record import Record

from pliant.client import Client

EPOCHS: Final = (30, 60)
PACE_S: Final = 0.05
PATIENCE_S: Final = 90.0
"""What is wholly on a host that is gone starts again 40 s later."""
CLEAR_S: Final = 40.0
WEIGHTS: Final = {
    "cut": 8,
    "unplug": 4,
    "kill worker": 6,
    "kill agent": 4,
    "stop agent": 4,
    "kill server": 3,
    "stop server": 3,
    "kill host": 4,
    "long cut": 1,
}
_LONG_CUT_S: Final = ORPHAN_S + 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMove:
    """One thing that is done to a host."""

    kind: str
    host: str
    seconds: float
    """How long it lasts, or until somebody mends it."""
    at_once: bool
    """The next move comes before the jobs have trained again."""


class SoakHosts(HostsPool):
    """A server on a host without slots, and so many machines."""

    def __init__(self, home: Path, network: Network, num_machines: int, *, is_apart: bool, encrypts: bool) -> None:
        self.names = tuple("bcdefghijkl"[:num_machines])
        self.is_apart = is_apart
        super().__init__(home, network, options=("--slots", "0", *(["--encrypt-state"] if encrypts else [])))

    def own_folders(self, name: str) -> Mapping[str, str]:
        self.home.mkdir(mode=0o700, exist_ok=True)
        return {str(self.home): "512m"} if self.is_apart and name != SERVER else {}


@dataclass(slots=True, kw_only=True)
class HostsSoak:
    """One soak over so many hosts, in its own folder."""

    folder: Path
    seed: int
    num_jobs: int
    num_hosts: int
    record: Record
    is_apart: bool = False
    """The machines share no files with the server, and a host that is killed loses its disk."""
    encrypts: bool = False
    """State goes from host to host encrypted."""
    hosts: SoakHosts = field(init=False)
    client: Client = field(init=False)
    trials: list[Trial] = field(default_factory=list)
    _dice: random.Random = field(init=False)
    _num_begun: int = 0

    def play(self, minutes: float) -> None:
        """Hurt hosts and jobs for so many minutes, let the last jobs end, and see that nothing is left."""
        self._dice = random.Random(self.seed)
        for epochs in EPOCHS:
            undisturbed(epochs, WIDTH)
        (self.folder / "pool").mkdir(mode=0o777)
        with ExitStack() as stack:
            network = stack.enter_context(Network())
            home = self.folder / "pool" / "home"
            self.hosts = SoakHosts(home, network, self.num_hosts, is_apart=self.is_apart, encrypts=self.encrypts)
            stack.enter_context(self.hosts.hosts[SERVER].inside())
            self.hosts.up()
            self.client = self.hosts.client()
            stack.callback(lambda: self.client.close())
            self._mend()
            until = time.monotonic() + minutes * 60
            while time.monotonic() < until and not self.record.wrong:
                self._replace_ended()
                self._make(self._next())
            self._mend()
            for trial in list(self.trials):
                trial.pace(0)
                self._end(trial)
            self._see_none(self._tasks_left, "all jobs have ended")
            self._close()
            self._see_none(self._left, "the server and the agents have ended")

    def _next(self) -> HostMove:
        kind = self._dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        names: tuple[str, ...] = (*self.hosts.names, SERVER) if kind in ("cut", "unplug") else self.hosts.names
        names = (SERVER,) if kind in ("kill server", "stop server") else names
        seconds = self._dice.choice([0.5, 1.5, 4.0]) * (0.5 + self._dice.random())
        at_once = self._dice.random() < 0.25
        return HostMove(kind=kind, host=self._dice.choice(names), seconds=round(seconds, 2), at_once=at_once)

    def _make(self, move: HostMove) -> None:
        number = sum(self.record.num_moves.values()) + 1
        self.record.num_moves[move.kind] += 1
        self.record.tell(f"{number:4} {move.kind} {move.host} for {move.seconds} s")
        reached = {trial.job_id: _reached(trial) for trial in self.trials}
        _MOVES[move.kind](self, move)
        if move.at_once:
            return
        self._mend()
        for trial in self.trials:
            self._await_progress(trial, reached[trial.job_id])

    def _mend(self) -> None:
        """Have all machines there again."""
        for name in self.hosts.names:
            if not self.hosts.hosts[name].is_up:
                self.hosts.restart_host(name)
            if name not in self.hosts.agents or self.hosts.agents[name].poll() is not None:
                self.hosts.join(name)
        try:
            for name in self.hosts.names:
                self.hosts.until_state(name, "in use", PATIENCE_S)
        except AssertionError as error:
            self.record.complain(str(error))

    def _await_progress(self, trial: Trial, reached: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while _reached(trial) <= reached and not trial.job().ended:
            if time.monotonic() > deadline:
                self.record.complain(f"{trial.job_id} has not trained for {PATIENCE_S:g} s\n{trial.story()}")
                return
            time.sleep(0.05)

    def _replace_ended(self) -> None:
        for trial in list(self.trials):
            if trial.job().ended:
                self._end(trial)
        while len(self.trials) < self.num_jobs:
            self._num_begun += 1
            options: dict[str, Any] = {
                "epochs": self._dice.choice(EPOCHS),
                "max_tasks": self._dice.randint(1, 5),
                "checkpoint_freq": self._dice.choice([0, 1, 3]),
                "pace": PACE_S,
            }
            trial = Trial.begin(self.hosts, self.client, self.folder / f"trial-{self._num_begun}", **options)
            self.trials.append(trial)
            self.record.tell(f"{trial.job_id} begins: {options}")

    def _end(self, trial: Trial) -> None:
        self.trials.remove(trial)
        try:
            job = self.client.wait(trial.job_id, timeout_s=2 * PATIENCE_S, poll_s=0.1)
        except TimeoutError:
            self.record.complain(f"{trial.job_id} does not end\n{trial.story()}")
            return
        self.record.ended(trial, job)
        try:
            assert job.state == "completed", job.reason
            trial.check(job, samples=not self.is_apart)  # a host that is killed takes its newest notes along
        except AssertionError as error:
            self.record.complain(f"{trial.job_id}: {error}\n{trial.story()}")
            return
        self.record.tell(f"{trial.job_id} is whole, with {len(trial.events('task.lost'))} losses")

    def _close(self) -> None:
        self.hosts.close()
        for agent in self.hosts.agents.values():
            agent.kill(signal.SIGTERM)
            agent.wait(CLEAR_S)

    def _tasks_left(self) -> list[str]:
        return [line for line in self._left() if ": job-" in line]

    def _left(self) -> list[str]:
        """Return what runs on the hosts, but their first processes and what looks for them."""
        script = "for one in /proc/[0-9]*; do case ${one#/proc/} in 1|$$) ;; *) cat $one/comm; esac; done 2>/dev/null"
        found = []
        for name, host in self.hosts.hosts.items():
            lines = host.run(["sh", "-c", script], check=False).stdout.splitlines()
            found += [f"{name}: {line}" for line in lines if line not in ("cat", "sh")]
        return found

    def _see_none(self, left: Callable[[], list[str]], when: str) -> None:
        deadline = time.monotonic() + CLEAR_S
        while found := left():
            if time.monotonic() > deadline:
                self.record.complain(f"{CLEAR_S:g} s after {when} this is left: {'; '.join(found)}")
                return
            time.sleep(0.2)

    def follow(self, client: Client) -> None:
        """Speak to the next server from now on."""
        self.client.close()
        self.client = client
        for trial in self.trials:
            trial.client = client


def _reached(trial: Trial) -> int:
    """Return how many steps were ever committed."""
    return max((beat.step for beat in trial.beats()), default=0)


def _cut(soak: HostsSoak, move: HostMove) -> None:
    with soak.hosts.network.cut(soak.hosts.hosts[move.host]):
        time.sleep(_LONG_CUT_S if move.kind == "long cut" else move.seconds)


def _unplug(soak: HostsSoak, move: HostMove) -> None:
    with soak.hosts.network.unplug(soak.hosts.hosts[move.host]):
        time.sleep(move.seconds)


def _kill_worker(soak: HostsSoak, move: HostMove) -> None:
    """Kill one of the processes that train on the host, if there is one."""
    script = "for one in /proc/[0-9]*; do grep -q ^job- $one/comm && kill -9 ${one#/proc/} && break; done 2>/dev/null"
    if soak.hosts.hosts[move.host].is_up:
        soak.hosts.hosts[move.host].run(["sh", "-c", script], check=False)


def _kill_agent(soak: HostsSoak, move: HostMove) -> None:
    if (agent := soak.hosts.agents.get(move.host)) is not None and agent.poll() is None:
        agent.kill(signal.SIGKILL)
        time.sleep(move.seconds)


def _stop_agent(soak: HostsSoak, move: HostMove) -> None:
    if (agent := soak.hosts.agents.get(move.host)) is not None and agent.poll() is None:
        _stop(agent, move.seconds)


def _kill_server(soak: HostsSoak, move: HostMove) -> None:
    soak.hosts.signal(signal.SIGKILL)
    time.sleep(move.seconds)
    soak.hosts.up()
    soak.follow(soak.hosts.client())


def _stop_server(soak: HostsSoak, move: HostMove) -> None:
    assert soak.hosts.server is not None
    _stop(soak.hosts.server, move.seconds)


def _kill_host(soak: HostsSoak, move: HostMove) -> None:
    if soak.hosts.hosts[move.host].is_up:
        soak.hosts.kill_host(move.host)
        time.sleep(move.seconds)


def _stop(process: HostProcess, seconds: float) -> None:
    process.kill(signal.SIGSTOP)
    time.sleep(seconds)
    process.kill(signal.SIGCONT)


_MOVES: Final[dict[str, Callable[[HostsSoak, HostMove], None]]] = {
    "cut": _cut,
    "long cut": _cut,
    "unplug": _unplug,
    "kill worker": _kill_worker,
    "kill agent": _kill_agent,
    "stop agent": _stop_agent,
    "kill server": _kill_server,
    "stop server": _stop_server,
    "kill host": _kill_host,
}
