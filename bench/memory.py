"""What memory a task takes beyond the user's tensors, against a worker under DDP.

Two workers of each train the same model for ten steps and then rest, one thread each. Counted is the proportional set
size (PSS: a page that several processes share counts once, divided among them), minus the model's parameters and
gradients, which both have (the optimizer, SGD, has no state). Tasks are forked from a real server's zygote; DDP's
workers are started cold. What Pliant needs once per machine (server and zygote) is told beside it; torchrun's
own agent is not counted: DDP's workers are started without one. Nobody saves: checkpoints would cost Pliant's leader
one copy of the state more.

Claim: smaller.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.peers.processes import Processes, marked
from bench.peers.server import SCRIPTS, Server, until
from bench.peers.sides import LOOPBACK, free_port

PARAMETERS = {"cnn": 1_199_882, "mlp": 24_916_868}
NUM_WORKERS = 2
LIMIT_S = 120.0
MIB = float(1 << 20)


def pss_mib(pid: int) -> float:
    """Return the proportional set size of a process, MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def tensors_mib(model: str) -> float:
    """Return the size of parameters and gradients, MiB."""
    return 2 * 4 * PARAMETERS[model] / MIB


def resting(folder: Path) -> list[int]:
    """Return the workers once all rest."""

    def pids() -> list[int]:
        return [int(path.stem) for path in folder.glob("*.rests")]

    until(lambda: len(pids()) == NUM_WORKERS, f"{NUM_WORKERS} workers rest", LIMIT_S)
    return pids()


def under_pliant(mode: str, model: str, folder: Path, processes: Processes) -> tuple[list[float], float]:
    """Return the PSS of every task, and of everything else that runs for them (server and zygote)."""
    server = Server(folder, processes, slots=NUM_WORKERS)
    server.submit("resting.py", mode, model, str(folder), max_tasks=NUM_WORKERS, min_tasks=NUM_WORKERS, saves=False)
    pids = resting(folder)
    others = [pid for pid in marked(processes.mark) if pid not in pids]
    return [pss_mib(pid) for pid in pids], sum(pss_mib(pid) for pid in others)


def under_ddp(model: str, folder: Path, processes: Processes) -> tuple[list[float], float]:
    """Return the PSS of every worker; nothing else runs."""
    port = str(free_port())
    for rank in range(NUM_WORKERS):
        env = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(NUM_WORKERS)}
        processes.start([sys.executable, SCRIPTS / "resting.py", "ddp", model, folder], env=env)
    return [pss_mib(pid) for pid in resting(folder)], 0.0


def measured(
    look: Callable[[str, Path, Processes], tuple[list[float], float]], model: str
) -> tuple[list[float], float]:
    """Look at the processes of one system, and end them."""
    folder = Path(tempfile.mkdtemp(prefix="plb-"))
    processes = Processes(folder / "output.log")
    try:
        return look(model, folder, processes)
    finally:
        (folder / "over").touch()
        processes.end()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Measure, write the report; the exit status is 1 if the claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    given = parser.parse_args()
    rows, judged = [], []
    for model in PARAMETERS:
        tensors = tensors_mib(model)
        workers, _ = measured(under_ddp, model)
        theirs = [pss - tensors for pss in workers]
        rows.append((model, f"{tensors:.0f}", "DDP's worker", spread(theirs), "0"))
        for mode in ("fast", "exact"):
            tasks, others = measured(partial(under_pliant, mode), model)
            ours = [pss - tensors for pss in tasks]
            rows.append((model, f"{tensors:.0f}", f"a task, {mode}", spread(ours), f"{others:.0f} once"))
            mine, ddps = statistics.mean(ours), statistics.mean(theirs)
            found = f"{mine:.0f} MiB against {ddps:.0f} MiB: {mine / ddps:.2f}"
            judged.append(Claim(text=f"{model}, {mode}: less than DDP's worker", found=found, holds=mine < ddps))
    columns = ("model", "parameters and gradients, MiB", "who", "beyond them, MiB", "server and zygote, MiB")
    text = "\n".join(
        [
            head("Memory beyond the user's tensors", "python -m bench.memory"),
            (__doc__ or "").split("Claim:")[0],
            table(columns, *rows),
            verdicts(judged),
        ]
    )
    return finish(text, judged, given.out)


if __name__ == "__main__":
    sys.exit(main())
