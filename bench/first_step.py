"""From the grant of a slot to a task's first optimizer step, against a cold `python` that imports torch and trains.

A task: a real server grants a slot and forks the task from its zygote; the task connects, builds the model and data,
joins its first generation and steps. Cold: an interpreter is started, imports torch, builds the same and steps. Both
train the small CNN with one thread, in turns. The time from the submission (upload and decision included) is told
beside it.

Claim: 5 times shorter.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.peers.processes import Processes
from bench.peers.server import SCRIPTS, Server, until

LEAST = 5.0
LIMIT_S = 120.0


def warm_s(server: Server, report: Path) -> tuple[float, float]:
    """Return the time of a task's first step since its grant and since its submission, seconds."""
    to_monotonic = time.monotonic() - time.time()
    submitted = time.monotonic()
    job_id = server.submit("first_step.py", "pliant", str(report), max_tasks=1)
    until(report.exists, "the first step is done", LIMIT_S)
    stepped = float(report.read_text())
    granted = server.client.job(job_id).tasks[0].started_at + to_monotonic
    server.client.wait(job_id, timeout_s=LIMIT_S, poll_s=0.1)
    return stepped - granted, stepped - submitted


def cold_s(processes: Processes, report: Path) -> float:
    """Return the time of the first step since the interpreter was started, seconds."""
    began = time.monotonic()
    process = processes.start([sys.executable, SCRIPTS / "first_step.py", "plain", report])
    if process.wait(LIMIT_S) != 0:
        raise subprocess.SubprocessError(f"the plain training failed:\n{processes.tail()}")
    return float(report.read_text()) - began


def measure(num_rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Return the times since the grant, since the submission, and cold, seconds."""
    with tempfile.TemporaryDirectory(prefix="plb-") as root:
        folder = Path(root)
        processes = Processes(folder / "output.log")
        times = []
        try:
            server = Server(folder, processes, slots=1)
            for turn in range(num_rounds + 1):
                warm = warm_s(server, folder / f"{turn}.warm")
                times.append((*warm, cold_s(processes, folder / f"{turn}.cold")))
            server.close()
        finally:
            processes.end()
    granted, submitted, cold = zip(*times[1:], strict=True)  # the first round waits for the zygote and fills caches
    return list(granted), list(submitted), list(cold)


def main() -> int:
    """Measure, write the report; the exit status is 1 if the claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--rounds", type=int, default=8, help="how many starts of each kind (default 8)")
    given = parser.parse_args()
    granted, submitted, cold = ([seconds * 1000 for seconds in times] for times in measure(given.rounds))
    times = statistics.median(cold) / statistics.median(granted)
    text = f"a task's first step is {LEAST:.0f} × sooner than cold"
    judged = [Claim(text=text, found=f"{times:.1f} ×", holds=times >= LEAST)]
    rows = (
        ("a task, since its grant", spread(granted)),
        ("a task, since its submission", spread(submitted)),
        ("cold, since the start of the interpreter", spread(cold)),
    )
    report = "\n".join(
        [
            head("From the grant to the first step", f"python -m bench.first_step --rounds {given.rounds}"),
            (__doc__ or "").split("Claim:")[0],
            table(("milliseconds to the first step", "median [min max]"), *rows),
            verdicts(judged),
        ]
    )
    return finish(report, judged, given.out)


if __name__ == "__main__":
    sys.exit(main())
