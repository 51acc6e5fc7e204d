"""What a step costs at a fixed number of workers: Pliant's `fast` and `exact` against DDP and against a plain loop.

All train the same model on the same global batch, one thread per worker, over gloo on this machine. No server runs. The
contenders take turns (A B C D, D C B A, …); whoever does not have its turn does nothing. All start anew several times,
since the same program can be some per cent faster or slower for the life of a process. DDP runs as its documentation
teaches, with `gradient_as_bucket_view=True`.

Claims, of DDP's step on the CNN, both MLPs and the transformer: `exact` with the V that a job of up to four tasks gets
if it asks for none at most 1.05, with 1 to 4 workers; with V = 4 N at most 1.10; `fast` at most 1.00 on the smaller MLP
and the transformer. Alone, `fast` and `exact` with V = 1 at most 1.01 of the plain loop's step. Within the walls that a
server puts around tasks, `fast` takes at most 1.01 of what it takes without. Of DDP that accumulates the gradients of
as many parts, `exact` takes at most 1.05 with any V: the rest of what it costs is the parts'.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.fixed.contest import Contender, Paces, contest
from bench.fixed.models import TRAININGS
from pliant.core.virtual_workers import choose

DDP = Contender(name="DDP", how="ddp")
DDP_PARTS, DDP_FINE = "DDP in as many parts", "DDP in 4 N parts"
PLAIN = Contender(name="plain loop", how="plain")
FAST = Contender(name="fast", how="fast")
WALLED = Contender(name="fast, within walls", how="fast", is_walled=True)
EXACT, FINE = "exact", "exact, V = 4 N"
EXACT_1 = Contender(name="exact, V = 1", how="exact", num_parts=1)
OTHERS = ("cnn", "mlp100")
"""Of these only `exact` is judged."""
SIZES = (1, 2, 3, 4)
MOST_FAST, MOST_EXACT, MOST_FINE, MOST_ALONE, MOST_WALLED = 1.00, 1.05, 1.10, 1.01, 1.01

Results = dict[tuple[str, int], dict[str, Paces]]


def contenders(training: str, size: int) -> list[Contender]:
    """Return who takes part with so many workers."""
    alone = [PLAIN, EXACT_1] if size == 1 else []
    if training == "digits":
        return [*alone, FAST, WALLED]
    usual, fine = default_parts(training), 4 * size
    found = [DDP, FAST, *([] if training in OTHERS else [WALLED])]
    found.append(Contender(name=EXACT, how="exact", num_parts=usual))
    if usual > size:  # else it is DDP
        found.append(Contender(name=DDP_PARTS, how="ddp", num_parts=usual))
    found.append(Contender(name=FINE, how="exact", num_parts=fine))
    if fine != usual:
        found.append(Contender(name=DDP_FINE, how="ddp", num_parts=fine))
    return [*found, *alone]


def default_parts(training: str) -> int:
    """Return the V of a job of up to four tasks that asks for none."""
    return choose(max(SIZES), TRAININGS[training].batch_size)


def ratio(paces: Mapping[str, Paces], one: str, other: str) -> float:
    """Return how much longer one takes than the other: the median over the turns, each against its own neighbour."""
    pairs = zip(paces[one].blocks, paces[other].blocks, strict=True)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def measure(names: list[str], sizes: list[int], num_rounds: int, num_blocks: int, block_s: float) -> Results:
    """Return the paces of everybody, by training and number of workers."""
    found: Results = {}
    for name in names:
        for size in sizes if name != "digits" else [n for n in sizes if n == 1]:
            taking_part = contenders(name, size)
            rounds = [
                contest(name, size, taking_part, num_blocks=num_blocks, block_s=block_s) for _ in range(num_rounds)
            ]
            found[name, size] = paces = {
                one.name: Paces(blocks=tuple(chain.from_iterable(each[one.name].blocks for each in rounds)))
                for one in taking_part
            }
            print(name, size, {who: f"{pace.median * 1000:.2f} ms" for who, pace in paces.items()}, flush=True)
    return found


def claims(found: Results) -> Iterator[Claim]:
    """Yield every claim with what was found."""
    for (name, size), paces in found.items():
        if WALLED.name in paces:
            yield _claim(name, size, paces, WALLED.name, FAST.name, MOST_WALLED)
        if DDP.name in paces and name not in OTHERS:
            yield _claim(name, size, paces, FAST.name, DDP.name, MOST_FAST)
        if EXACT in paces:
            yield _claim(name, size, paces, EXACT, DDP.name, MOST_EXACT)
            yield _claim(name, size, paces, FINE, DDP.name, MOST_FINE)
            if DDP_PARTS in paces:
                yield _claim(name, size, paces, EXACT, DDP_PARTS, MOST_EXACT)
            if DDP_FINE in paces:
                yield _claim(name, size, paces, FINE, DDP_FINE, MOST_EXACT)
        if size == 1 and name not in OTHERS:
            yield _claim(name, size, paces, FAST.name, PLAIN.name, MOST_ALONE)
            yield _claim(name, size, paces, EXACT_1.name, PLAIN.name, MOST_ALONE)


def _claim(name: str, size: int, paces: Mapping[str, Paces], one: str, other: str, most: float) -> Claim:
    got = ratio(paces, one, other)
    text = f"{name}, N = {size}: {one} at most {most:.2f} of {other}"
    return Claim(text=text, found=f"{got:.3f}", holds=round(got, 2) <= most)


def page(found: Results, command: str, judged: list[Claim]) -> str:
    """Return the report."""
    rows = []
    for (name, size), paces in found.items():
        base = PLAIN if name == "digits" else DDP
        for who, pace in paces.items():
            times = [block * 1000 for block in pace.blocks]
            against = ratio(paces, who, base.name)
            batch = TRAININGS[name].batch_size
            parts = f" (default, V = {default_parts(name)})" if who in (EXACT, DDP_PARTS) else ""
            rows.append((name, str(batch), str(size), who + parts, spread(times, 2), f"{against:.3f} of {base.name}"))
    columns = ("model", "global batch", "N", "who", "ms a step, median [min max] of blocks", "ratio")
    return (
        head("What a step costs with a fixed number of workers", command)
        + f"\n{(__doc__ or '').split('Claims:')[0].strip()}\n\n"
        + "With V parts a micro-batch is the global batch / V. The ratio is the median over the turns. `fast` computes "
        + "its whole share in one piece, as DDP does. Up to four workers share two cores: of three, where a batch has "
        + "four parts, one has twice as much to do as the others.\n\n"
        + table(columns, *rows)
        + "\n"
        + verdicts(judged)
    )


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--models", nargs="+", choices=sorted(TRAININGS), default=list(TRAININGS))
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3, help="times that all start anew (default 3)")
    parser.add_argument("--blocks", type=int, default=4, help="turns of each in a round (default 4)")
    parser.add_argument("--block-s", type=float, default=0.8, help="about how long a turn takes (default 0.8)")
    given = parser.parse_args()
    found = measure(given.models, given.sizes, given.rounds, given.blocks, given.block_s)
    judged = list(claims(found))
    command = f"python -m bench.steps --rounds {given.rounds} --blocks {given.blocks} --block-s {given.block_s:g}"
    return finish(page(found, command, judged), judged, given.out)


if __name__ == "__main__":
    sys.exit(main())
