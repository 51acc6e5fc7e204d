"""The systems that are compared, each behind the same few verbs: start, grow, shrink, end.

A worker is killed the same way everywhere: SIGKILL to the process that logs its steps.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.peers.processes import Processes
from bench.peers.server import OPEN, SCRIPTS, Server
from pliant.api.jobs import JobPatch

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a side is given: a model, folders of its own, and the interpreter that has the peers."""

    model: str
    steps: Path
    """Where the workers' logs of steps go."""
    memory: Path
    """In the machine's memory, for snapshots."""
    processes: Processes
    python: Path


class Side(Protocol):
    """One system in one training."""

    def start(self, size: int) -> None: ...

    def grow(self, num: int) -> None:
        """Ask for that many workers more; returns at once."""

    def shrink(self, num: int) -> None:
        """Take that many workers away, as politely as the system can; returns at once."""

    def close(self) -> None: ...


class Pliant:
    """A real server with four slots and a job; its maximum of tasks is what changes."""

    def __init__(self, place: Place, mode: str = "exact", server: Server | None = None, *, device: str = "cpu") -> None:
        self._args = (place.model, str(place.steps), mode, device)
        self._server = server or Server(place.steps.parent, place.processes, slots=4, options=OPEN)
        self._job = ""
        self._size = 0

    def start(self, size: int) -> None:
        self._size = size
        self._job = self._server.submit("by_pliant.py", *self._args, max_tasks=size)

    def grow(self, num: int) -> None:
        self._size += num
        self._server.client.change(self._job, JobPatch(max_tasks=self._size))

    def shrink(self, num: int) -> None:
        self.grow(-num)

    def close(self) -> None:
        self._server.close()


@dataclass(slots=True)
class Torchrun:
    """An elastic agent per node, one worker each; the first agent's node keeps the rendezvous."""

    place: Place
    port: int = field(default_factory=lambda: free_port())

    def start(self, size: int) -> None:
        self.grow(size)

    def grow(self, num: int) -> None:
        for _ in range(num):
            place = self.place
            place.processes.start(
                [
                    place.python, "-m", "torch.distributed.run", "--nnodes=2:4", "--nproc-per-node=1",
                    "--max-restarts=1000", "--monitor-interval=0.1", "--rdzv-backend=c10d", "--rdzv-id=bench",
                    f"--rdzv-endpoint={LOOPBACK}:{self.port}", f"--local-addr={LOOPBACK}",
                    f"--rdzv-conf={RENDEZVOUS}", SCRIPTS / "by_torchrun.py", place.model, place.steps,
                    place.memory / "snapshot.pt",
                ],
                env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
            )  # fmt: skip

    def shrink(self, num: int) -> None:
        for agent in self.place.processes.started[-num:]:
            agent.terminate()

    def close(self) -> None:
        """Nothing has to be saved."""


RENDEZVOUS = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=4,join_timeout=60"
"""As shipped: a last call of 30 s (1 s is the shortest that it takes), and a node that leaves or dies is gone after
3 × 5 s. With 2 s, and one node as the least, two busy cores ended in two halves that trained by themselves; so it is
4 s and at least two nodes. The store is not shared between agents and workers, because in 2.13 a newcomer then waits
for an address that a first agent which has been in a round before does not write again."""


@dataclass(slots=True)
class Torchft:
    """A lighthouse and a process per replica group."""

    place: Place
    join_ms: int
    heartbeat_ms: int | None
    timeout_s: float
    """Of a collective: who is no neighbour of the dead in gloo's ring waits as long."""
    share: int = 0
    port: int = field(default_factory=lambda: free_port())

    def start(self, size: int) -> None:
        lighthouse: list[str | Path] = [
            self.place.python.parent / "torchft_lighthouse", "--min_replicas", "1", "--quorum_tick_ms", "100",
            "--join_timeout_ms", str(self.join_ms), "--bind", f"{LOOPBACK}:{self.port}",
        ]  # fmt: skip
        if self.heartbeat_ms is not None:
            lighthouse += ["--heartbeat_timeout_ms", str(self.heartbeat_ms)]
        self.place.processes.start(lighthouse)
        self.share = 64 // size
        self.grow(size)

    def grow(self, num: int) -> None:
        for _ in range(num):
            env = {
                "TORCHFT_LIGHTHOUSE": f"http://{LOOPBACK}:{self.port}",
                "MASTER_ADDR": LOOPBACK,
                "MASTER_PORT": str(free_port()),
                "RANK": "0",
                "WORLD_SIZE": "1",
            }
            place = self.place
            numbers = (str(self.share), str(self.timeout_s))
            argv: Sequence[str | Path] = (
                place.python, SCRIPTS / "by_torchft.py", place.model, place.steps, *numbers,
            )  # fmt: skip
            place.processes.start(argv, env=env)

    def shrink(self, num: int) -> None:
        for replica in self.place.processes.started[-num:]:
            replica.terminate()

    def close(self) -> None:
        """Nothing has to be saved."""


@dataclass(slots=True)
class Ray:
    """A driver that makes its own cluster and hears on its standard input what to change."""

    place: Place

    def start(self, size: int) -> None:
        place = self.place
        env = {
            "RAY_TRAIN_V2_ENABLED": "1",  # its elastic engine
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.1",  # 2 s as shipped, which is what every reported step then takes
            "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": "1",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # it is what lets Ray stay on the loopback interface
            "RAY_TMPDIR": str(place.steps.parent),
        }
        argv: Sequence[str | Path] = (
            place.python, SCRIPTS / "by_ray.py", place.model, place.steps, place.memory, str(size),
        )  # fmt: skip
        place.processes.start(argv, env=env, pipe=True)

    def grow(self, num: int) -> None:
        self._tell(f"add {num}\n")

    def shrink(self, num: int) -> None:
        self._tell(f"drain {num}\n")

    def _tell(self, line: str) -> None:
        pipe = self.place.processes.started[0].stdin
        assert pipe is not None
        pipe.write(line.encode())
        pipe.flush()

    def close(self) -> None:
        """Nothing has to be saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One system in one setting."""

    key: str
    peer: str
    """Its part of the environment; empty for Pliant."""
    label: str
    make: Callable[[Place], Side]
    models: tuple[str, ...]
    size_after_kill: int | None
    limit_s: float
    """A session longer than that is given up."""


KINDS = (
    Kind(key="pliant", peer="", label="Pliant", make=Pliant, models=("cnn", "mlp"), size_after_kill=None, limit_s=150),
    Kind(
        key="pliant-fast",
        peer="",
        label="Pliant, `fast`",
        make=lambda place: Pliant(place, mode="fast"),
        models=("mlp",),
        size_after_kill=None,
        limit_s=150,
    ),
    Kind(
        key="torchrun",
        peer="torchrun",
        label="torchrun elastic, tuned",
        make=Torchrun,
        models=("cnn", "mlp"),
        size_after_kill=None,
        limit_s=160,
    ),
    Kind(
        key="torchft-readme",
        peer="torchft",
        label="torchft, settings of its README (collectives 5 s, as its example)",
        make=lambda place: Torchft(place, join_ms=10_000, heartbeat_ms=None, timeout_s=5),
        models=("cnn",),
        size_after_kill=None,
        limit_s=120,
    ),
    Kind(
        key="torchft-tuned",
        peer="torchft",
        label="torchft, join 1 s, heartbeat 1 s, collectives 2 s",
        make=lambda place: Torchft(place, join_ms=1000, heartbeat_ms=1000, timeout_s=2),
        models=("cnn",),
        size_after_kill=None,
        limit_s=120,
    ),
    Kind(
        key="torchft-300ms",
        peer="torchft",
        label="torchft, join 1 s, heartbeat 300 ms, collectives 2 s",
        make=lambda place: Torchft(place, join_ms=1000, heartbeat_ms=300, timeout_s=2),
        models=("cnn", "mlp"),
        size_after_kill=None,
        limit_s=120,
    ),
    Kind(
        key="ray",
        peer="ray",
        label="Ray Train elastic, resize monitor 1 s",
        make=Ray,
        models=("cnn",),
        size_after_kill=None,
        limit_s=300,
    ),
)


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on now."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])
