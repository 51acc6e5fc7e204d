"""What two tasks of different speed do together: with even shares, with shares by speed, and at best.

A real server with two slots. One task needs 10 ms for a part, the other one 20 ms: each part waits so long, so that two
cores are enough for both and others' work beside them counts little; the division, the sum and the exchange are real.
The limit is the sum of the speeds of both, each of which trains alone first. Medians of the last third of the steps,
when shares have long been found. A third pair is equally fast: there the option has nothing to gain. It is measured
three times with each kind of shares, by turns.

Claims: by speed two such tasks reach 85 % of the limit with V = 8, and 95 % with V = 32; two that are equally fast lose
at most 5 % by the option.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench._report import Claim, finish, head, table, verdicts
from bench.peers.server import Server
from bench.peers.session import open_place
from bench.speeds.slowed import STEPS_PER_EPOCH
from pliant.api.jobs import JobRequest
from pliant.core.job import Balance
from pliant.core.lifecycle import JobState

SCRIPT: Final = Path(__file__).parent / "slowed.py"
FAST_S, SLOW_S = 0.01, 0.02
REACHED: Final = {8: 0.85, 32: 0.95}
"""Of the limit, by V."""
MOST_LOST: Final = 1.05
SHORT_S, MIDDLE_S, LONG_S = 6.0, 12.0, 24.0
"""A training takes about so long; in all but the short one speeds are compared, after ten seconds."""
NUM_RUNS: Final = 3
LIMIT_S: Final = 240.0
OPEN: Final = ("--isolation", "off", "--uids", "off")


def step_s(
    server: Server, parts: int, seconds: Sequence[float], balance: Balance, wanted_s: float
) -> tuple[float, tuple[int, ...]]:
    """Return how long a step of such tasks takes, and the shares that they came to."""
    num_steps = wanted_s / (max(seconds) * parts / len(seconds))
    num_epochs = math.ceil(num_steps / STEPS_PER_EPOCH)
    request = JobRequest(
        script=SCRIPT.name,
        args=("--epochs", str(num_epochs), "--seconds", *map(str, seconds)),
        min_tasks=len(seconds),
        max_tasks=len(seconds),
        virtual_workers=parts,
        balance=balance,
        checkpoint_freq=0,
    )
    job = server.client.wait(server.client.submit(SCRIPT, request).id, timeout_s=LIMIT_S)
    if job.state is not JobState.COMPLETED or job.progress is None:
        raise RuntimeError(f"{job.id} is {job.state.value}: {job.reason}")
    return job.progress.metrics["step_s"], job.progress.shares


def compare(server: Server, parts: int) -> tuple[tuple[str, ...], Claim]:
    """Return the row and the claim of one V."""
    alone = [step_s(server, parts, [of_part], "even", SHORT_S)[0] for of_part in (FAST_S, SLOW_S)]
    limit_s = 1 / sum(1 / of_step for of_step in alone)
    even_s, _ = step_s(server, parts, (FAST_S, SLOW_S), "even", SHORT_S)
    speed_s, shares = step_s(server, parts, (FAST_S, SLOW_S), "speed", LONG_S)
    times = (f"{of_step * 1000:.0f}" for of_step in (*alone, even_s, speed_s))
    words = ", ".join(map(str, shares))
    row = (str(parts), *times, words, f"{limit_s / even_s:.2f}", f"{limit_s / speed_s:.2f}", f"{even_s / speed_s:.2f}")
    reached = limit_s / speed_s
    text = f"V = {parts}: at least {REACHED[parts]:.0%} of the limit by speed"
    return row, Claim(text=text, found=f"{reached:.0%}", holds=reached >= REACHED[parts])


def compare_equals(server: Server) -> Claim:
    """Return the claim of two tasks that are equally fast."""
    found: dict[Balance, list[float]] = {"even": [], "speed": []}
    for _ in range(NUM_RUNS):
        for balance, times in found.items():
            of_step, shares = step_s(server, 8, (FAST_S, FAST_S), balance, MIDDLE_S)
            times.append(of_step)
            if shares:
                raise RuntimeError(f"two tasks that are equally fast came to the shares {shares}")
    even_s, speed_s = (statistics.median(times) for times in found.values())
    lost = speed_s / even_s
    text = f"equally fast: a step takes at most {MOST_LOST:g} times as long by speed"
    return Claim(text=text, found=f"{lost:.2f}", holds=lost <= MOST_LOST)


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    given = parser.parse_args()
    with open_place("mlp", Path(sys.executable)) as place:
        server = Server(place.steps.parent, place.processes, slots=2, options=OPEN)
        rows, claims = zip(*(compare(server, parts) for parts in REACHED), strict=True)
        claim = compare_equals(server)
        server.close()
    titles = ("V", "fast alone, ms", "slow alone, ms", "both even, ms", "both by speed, ms", "shares")
    text = "\n".join(
        [
            head("Tasks of different speed", "python -m bench.speeds"),
            (__doc__ or "").split("Claims:")[0],
            table((*titles, "even / limit", "by speed / limit", "by speed / even"), *rows),
            verdicts([*claims, claim]),
        ]
    )
    return finish(text, [*claims, claim], given.out)


if __name__ == "__main__":
    sys.exit(main())
