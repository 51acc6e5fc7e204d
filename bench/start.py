"""How fast a task starts: forked by a warm zygote against an interpreter that imports torch itself.

Both are timed in the same run, alternating, by the machine's monotonic clock: from the order to the first line of the
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
from importlib.metadata import version
from pathlib import Path

import pliant
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.channel import AgentThread
from pliant.cluster.local import LocalCluster
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder, TaskExit

NODE = NodeId("bench")
COLD = "import torch, time; print(time.monotonic())"
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


def warm_start_s(cluster: LocalCluster, exits: list[TaskExit], folder: Path, number: int) -> float:
    task_id, report = TaskId(f"job-1.{number}"), folder / f"{number}.txt"
    began = time.monotonic()
    cluster.start(
        StartOrder(
            task_id=task_id,
            node_id=NODE,
            slots=(0,),
            argv=(str(report),),
            env={},
            cwd=str(folder),
            log_dir=str(folder / "log"),
        )
    )
    until(lambda: bool(exits) and exits[-1].task_id == task_id, f"task {task_id} has ended")
    return float(report.read_text().split()[0]) - began


def cold_start_s(folder: Path) -> float:
    began = time.monotonic()
    command = [sys.executable, "-c", COLD]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    return float(ended.stdout) - began


def measure(rounds: int) -> tuple[list[float], list[float], float]:
    """Return the warm and the cold times, and how long the zygote took to warm up, in seconds."""
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(pliant.__file__).parents[1])])
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        agent = AgentSettings(
            node_id=NODE,
            state_dir=folder / "agent",
            num_slots=2,
            preload=("torch", "start"),
            entry="start:first_line",
        )
        base_env = {**os.environ, "PYTHONPATH": paths}
        cluster = LocalCluster(AgentThread(agent, clock=_WallClock(), base_env=base_env))
        try:
            exits: list[TaskExit] = []
            cluster.watch(exits.append)
            until(lambda: cluster.readiness().warm, "the zygote is warm")
            pairs = [
                (warm_start_s(cluster, exits, folder, number), cold_start_s(folder)) for number in range(rounds + 1)
            ]
            warm_up_s = cluster.readiness().warm_up_s or 0.0
        finally:
            cluster.close()
    warm, cold = zip(*pairs[1:], strict=True)  # the first round fills the disk cache
    return list(warm), list(cold), warm_up_s


def page(rounds: int, warm: list[float], cold: list[float], warm_up_s: float) -> str:
    ratio = statistics.median(cold) / statistics.median(warm)
    rows = [
        f"| {name} | {statistics.median(times) * 1e3:.1f} | {min(times) * 1e3:.1f} | {max(times) * 1e3:.1f} |"
        for name, times in (("forked by a warm zygote", warm), (f"`python -c '{COLD.split(';')[0]}'`", cold))
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
        f"Ratio of the medians: {ratio:.0f}. The zygote imported torch once, in {warm_up_s:.1f} s.",
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
