"""From the grant of a slot to a task's first optimizer step, against a cold `python` that imports torch and trains.

A task: a real server grants a slot and forks the task from its zygote; the task connects, builds the model and data,
joins its first generation and steps. Cold: an interpreter is started, imports torch, builds the same and steps. Both
train the small CNN with one thread, in turns. The time from the submission (upload and decision included) is told
beside it.

Then by the command line, from the start of `pliant submit` to the first step: the first job of a server whose zygote is
warm and that has answered nobody yet, and later ones. Of that, the command line: from its start until the server has
the job. Pliant's bytecode is compiled ahead, as where it is installed.

Claims: 5 times shorter; the first job's step within 0.5 s, a later one's within 0.25 s, the command line 0.2 s of it.
"""

import argparse
import compileall
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.peers.processes import ROOT, Processes
from bench.peers.server import OPEN, SCRIPTS, Server, until

LEAST = 5.0
FIRST_MS = 500.0
LATER_MS = 250.0
COMMAND_MS = 200.0
LIMIT_S = 120.0
NUM_LATER = 3
"""So many jobs follow the first one of a server."""
AT_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds to the first step, by what they are counted from."""

    granted: list[float] = field(default_factory=list)
    submitted: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """Since the start of the command line, of the first job of a server."""
    later: list[float] = field(default_factory=list)
    command: list[float] = field(default_factory=list)
    """Since then, until the server has the job."""


def warm_s(server: Server, report: Path) -> tuple[float, float]:
    """Return the time of a task's first step since its grant and since its submission, seconds."""
    to_monotonic = time.monotonic() - time.time()
    submitted = time.monotonic()
    job_id = server.submit("first_step.py", "pliant", str(report), max_tasks=1)
    stepped = stepped_at(report)
    granted = server.client.job(job_id).tasks[0].started_at + to_monotonic
    server.client.wait(job_id, timeout_s=LIMIT_S, poll_s=0.1)
    return stepped - granted, stepped - submitted


def typed_s(server: Server, processes: Processes, report: Path, number: int) -> tuple[float, float]:
    """Return the time of a job's first step since the start of its command line, and what that took, seconds.

    Args:
        number: of the job; the server's first is 1.
    """
    to_monotonic = time.monotonic() - time.time()
    job_id = f"job-{number}"
    command: list[str | Path] = [sys.executable, "-m", "pliant.cli.app", "--home", server.home]
    began = time.monotonic()
    command += ["submit", SCRIPTS / "first_step.py", "--max", "1", "--", "pliant", report]
    process = processes.start(command)
    stepped = stepped_at(report)
    if process.wait(LIMIT_S) != 0:
        raise subprocess.SubprocessError(f"the job was not submitted:\n{processes.tail()}")
    has_it = server.client.job(job_id).job.submitted_at + to_monotonic
    server.client.wait(job_id, timeout_s=LIMIT_S, poll_s=0.1)
    return stepped - began, has_it - began


def cold_s(processes: Processes, report: Path) -> float:
    """Return the time of the first step since the interpreter was started, seconds."""
    began = time.monotonic()
    process = processes.start([sys.executable, SCRIPTS / "first_step.py", "plain", report])
    if process.wait(LIMIT_S) != 0:
        raise subprocess.SubprocessError(f"the plain training failed:\n{processes.tail()}")
    return float(report.read_text()) - began


def stepped_at(report: Path) -> float:
    """Wait for the first step; return when it was done, by the machine's monotonic clock."""
    until(report.exists, "the first step is done", LIMIT_S)
    return float(report.read_text())


def wait_for_zygote(server: Server) -> None:
    """Wait until the server's zygote has used no processor for a second: it has imported all and waits for orders."""
    state = f"--state-dir\0{server.home / 'agent'}".encode()
    found: list[Path] = []

    def is_there() -> bool:
        found[:] = [one.parent for one in Path("/proc").glob("[0-9]*/cmdline") if state in _read(one)]
        return bool(found)

    until(is_there, "there is a zygote", LIMIT_S)
    used, since = b"", time.monotonic()

    def is_at_rest() -> bool:
        nonlocal used, since
        now_used = b" ".join(_read(found[0] / "stat").rpartition(b")")[2].split()[11:13])
        if now_used != used:
            used, since = now_used, time.monotonic()
        return time.monotonic() - since > AT_REST_S

    until(is_at_rest, "the zygote is warm", LIMIT_S)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""


def measure(num_rounds: int, num_servers: int) -> Times:
    """Return what was measured."""
    compileall.compile_dir(ROOT / "src" / "pliant", quiet=1)
    times = Times()
    with tempfile.TemporaryDirectory(prefix="plb-") as root:
        folder = Path(root)
        processes = Processes(folder / "output.log")
        try:
            _measure_in_turns(folder, processes, times, num_rounds)
            for turn in range(num_servers + 1):
                place = folder / f"server-{turn}"
                place.mkdir()
                # the first server fills caches
                _measure_typed(place, processes, times if turn else Times())
        finally:
            processes.end()
    return times


def _measure_in_turns(folder: Path, processes: Processes, times: Times, num_rounds: int) -> None:
    server = Server(folder, processes, slots=1, options=OPEN)
    for turn in range(num_rounds + 1):
        granted, submitted = warm_s(server, folder / f"{turn}.warm")
        cold = cold_s(processes, folder / f"{turn}.cold")
        if turn:  # the first round waits for the zygote and fills caches
            times.granted.append(granted)
            times.submitted.append(submitted)
            times.cold.append(cold)
    server.close()


def _measure_typed(folder: Path, processes: Processes, times: Times) -> None:
    server = Server(folder, processes, slots=1, options=OPEN)
    wait_for_zygote(server)
    for number in range(1, NUM_LATER + 2):
        stepped, command = typed_s(server, processes, folder / f"{number}.typed", number)
        (times.first if number == 1 else times.later).append(stepped)
        times.command.append(command)
    server.close()


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--rounds", type=int, default=8, help="how many starts of each kind (default 8)")
    parser.add_argument("--servers", type=int, default=5, help="how many servers have a first job (default 5)")
    given = parser.parse_args()
    found = measure(given.rounds, given.servers)
    judged = claims(found)
    rows = (
        ("a task, since its grant", found.granted),
        ("a task, since its submission", found.submitted),
        ("cold, since the start of the interpreter", found.cold),
        ("the first job of a server, since the start of `pliant submit`", found.first),
        ("later jobs, since the start of `pliant submit`", found.later),
        ("of these, `pliant submit` until the server has the job", found.command),
    )
    command = f"python -m bench.first_step --rounds {given.rounds} --servers {given.servers}"
    report = "\n".join(
        [
            head("From the grant to the first step", command),
            (__doc__ or "").split("Claims:")[0],
            table(("milliseconds", "median [min max]"), *((name, spread(in_ms(taken))) for name, taken in rows)),
            verdicts(judged),
        ]
    )
    return finish(report, judged, given.out)


def claims(found: Times) -> list[Claim]:
    """Judge what was measured."""
    times = statistics.median(found.cold) / statistics.median(found.granted)
    text = f"a task's first step is {LEAST:.0f} × sooner than cold"
    budgets = (
        ("the first job of a server steps within {:.0f} ms", found.first, FIRST_MS),
        ("a later job steps within {:.0f} ms", found.later, LATER_MS),
        ("`pliant submit` takes {:.0f} ms of that at most", found.command, COMMAND_MS),
    )
    return [
        Claim(text=text, found=f"{times:.1f} ×", holds=times >= LEAST),
        *(_within(words.format(limit), in_ms(taken), limit) for words, taken, limit in budgets),
    ]


def _within(text: str, taken: Sequence[float], limit: float) -> Claim:
    median = statistics.median(taken)
    return Claim(text=text, found=f"{median:.0f} ms", holds=median <= limit)


def in_ms(seconds: Sequence[float]) -> list[float]:
    """Return milliseconds."""
    return [one * 1000 for one in seconds]


if __name__ == "__main__":
    sys.exit(main())
