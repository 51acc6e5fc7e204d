"""How fast a task starts: forked by a warm zygote, within walls and without, and by an interpreter that imports torch.

All are timed in the same run, alternating, by the machine's monotonic clock: from the order to the first line of the
task's program with torch imported.

    python bench/start.py [--rounds 20] [--out bench/results/start.md]
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pliant
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.channel import AgentThread
from pliant.cluster.node import NodeCluster
from pliant.core.confinement import Confinement, IsolationMode, RunAs
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder, TaskExit
from pliant.isolation.users import FIRST_UID

NODE = NodeId("bench")
COLD = "import torch, time; print(time.monotonic())"
WALLED = "forked by a warm zygote, within walls"
BARE = "forked by a warm zygote, without (`--isolation off`)"
PLAIN = f"`python -c '{COLD.split(';')[0]}'`"
DEADLINE_S = 120.0


class _WallClock:
    def now(self) -> float:
        return time.time()


def first_line(argv: list[str]) -> int:
    """The program of the tasks that are timed."""
    import torch  # what the zygote has done already

    Path(argv[0]).write_text(f"{time.monotonic()} {torch.__version__}")
    return 0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"gave up after {DEADLINE_S:.0f} s: {what}")
        time.sleep(0.001)


@dataclass(frozen=True)
class Warm:
    """A cluster whose zygote is warm, and a folder for what its tasks write."""

    cluster: NodeCluster
    folder: Path
    exits: list[TaskExit] = field(default_factory=list)


def bring_up(root: Path, isolation: IsolationMode) -> Warm:
    """Start an agent and wait until its zygote is warm."""
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(pliant.__file__).parents[1])])
    folder = root / isolation / "job"
    folder.mkdir(parents=True)
    agent = AgentSettings(
        node_id=NODE,
        state_dir=root / isolation / "agent",
        num_slots=2,
        memory_root=Path("/dev/shm") / f"pliant-bench-{os.getuid()}",
        isolation=isolation,
        preload=("torch", "start"),
        entry="start:first_line",
    )
    base_env = {**os.environ, "PYTHONPATH": paths}
    warm = Warm(NodeCluster(AgentThread(agent, clock=_WallClock(), base_env=base_env)), folder)
    warm.cluster.watch(warm.exits.append)
    until(lambda: warm.cluster.readiness().warm, "the zygote is warm")
    return warm


def warm_start_s(warm: Warm, number: int, user: RunAs | None) -> float:
    """Start a task and return the time to its first line, seconds."""
    folder = warm.folder
    task_id, report = TaskId(f"job-1.{number}"), folder / f"{number}.txt"
    began = time.monotonic()
    warm.cluster.start(
        StartOrder(
            task_id=task_id,
            node_id=NODE,
            slots=(0,),
            argv=(str(report),),
            env={"PLIANT_JOB_ID": "job-1"},
            cwd=str(folder),
            log_dir=str(folder / "log"),
            confinement=Confinement(user=user, writes=(str(folder),), hides=(str(folder.parent),)),
        )
    )
    until(lambda: bool(warm.exits) and warm.exits[-1].task_id == task_id, f"task {task_id} has ended")
    return float(report.read_text().split()[0]) - began


def cold_start_s(folder: Path) -> float:
    began = time.monotonic()
    command = [sys.executable, "-c", COLD]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    return float(ended.stdout) - began


def measure(rounds: int) -> tuple[dict[str, list[float]], float]:
    """Return the times by what was started, and how long a zygote took to warm up, in seconds."""
    user = RunAs(uid=FIRST_UID) if os.geteuid() == 0 else None
    times: dict[str, list[float]] = {WALLED: [], BARE: [], PLAIN: []}
    with tempfile.TemporaryDirectory() as root:
        walled, bare = bring_up(Path(root), "auto"), bring_up(Path(root), "off")
        try:
            for number in range(rounds + 1):
                times[WALLED].append(warm_start_s(walled, number, user))
                times[BARE].append(warm_start_s(bare, number, None))
                times[PLAIN].append(cold_start_s(Path(root)))
            warm_up_s = bare.cluster.readiness().warm_up_s or 0.0
        finally:
            walled.cluster.close()
            bare.cluster.close()
    return {name: taken[1:] for name, taken in times.items()}, warm_up_s  # the first round fills the disk cache


def page(rounds: int, times: dict[str, list[float]], warm_up_s: float) -> str:
    walled, bare, plain = (statistics.median(taken) for taken in times.values())
    rows = [
        f"| {name} | {statistics.median(taken) * 1e3:.1f} | {min(taken) * 1e3:.1f} | {max(taken) * 1e3:.1f} |"
        for name, taken in times.items()
    ]
    lines = [
        "# How fast a task starts",
        "",
        f"`python bench/start.py --rounds {rounds}` · Python {platform.python_version()}, torch {version('torch')}, "
        f"Pliant {pliant.__version__}, Linux {platform.release()}, {len(os.sched_getaffinity(0))} CPUs",
        "",
        "From the order to the first line of the task's program with torch imported, milliseconds:",
        "",
        "| start | median | fastest | slowest |",
        "|---|---|---|---|",
        *rows,
        "",
        f"Ratio of the medians: {plain / walled:.0f}. The walls take {(walled - bare) * 1e3:.1f} ms. The zygote"
        f" imported torch once, in {warm_up_s:.1f} s.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="how many starts of each kind (default 20)")
    parser.add_argument("--out", type=Path, help="also write the page to this file")
    options = parser.parse_args()
    text = page(options.rounds, *measure(options.rounds))
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)


if __name__ == "__main__":
    main()
