"""`python -m tests.soak [--minutes 30] [--seed N] [--serve]`: random faults and resizes over several jobs at once.

Prints one line per move and a table at the end; ends with code 1 if anything was wrong, and keeps the folder then. The
same seed makes the same moves; what they meet depends on the machine's speed as well. With `--serve` two endpoints are
asked all the time beside the jobs, and what serves is hurt, too: every answer is known. `--gateways 2` has two of them.
With `--hosts 3` the jobs are on so many hosts beside the server's, and what is hurt are hosts, cables, agents and the
server; that needs root.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.hosts import available
from tests.soak.hosts import HostsSoak
from tests.soak.play import Soak
from tests.soak.record import Record
from tests.soak.script import SERVE_WEIGHTS, WEIGHTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long jobs are hurt (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the moves; drawn and printed if left out")
    parser.add_argument("--jobs", type=int, default=3, help="that train side by side (%(default)s)")
    parser.add_argument("--serve", action="store_true", help="endpoints beside the jobs, asked and hurt")
    parser.add_argument("--gateways", type=int, default=1, metavar="N", help="processes that answer (%(default)s)")
    parser.add_argument("--hosts", type=int, default=0, metavar="N", choices=range(12), help="machines of namespaces")
    parser.add_argument("--apart", action="store_true", help="these machines share no files with the server")
    parser.add_argument("--encrypt-state", action="store_true", help="state goes from machine to machine encrypted")
    kinds = (*WEIGHTS, *SERVE_WEIGHTS)
    parser.add_argument("--without", action="append", default=[], choices=kinds, help="leave out this kind of move")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix=f"pliant-soak-{seed}-"))
    folder.chmod(0o777)  # scripts run as users of their own, and write what they have seen
    os.umask(0)
    record = Record(say=lambda text: print(text, flush=True))
    record.tell(f"seed {seed}, {given.minutes:g} minutes, {given.jobs} jobs; files in {folder}")
    if given.hosts:
        if why := available():
            parser.error(why)
        over = HostsSoak(
            folder=folder,
            seed=seed,
            num_jobs=given.jobs,
            num_hosts=given.hosts,
            record=record,
            is_apart=given.apart,
            encrypts=given.encrypt_state,
        )
        over.play(given.minutes)
        return _judge(record, folder, seed)
    without = frozenset(given.without)
    with (folder / "moves.txt").open("w") as script:
        soak = Soak(
            folder=folder,
            seed=seed,
            num_jobs=given.jobs,
            serves=given.serve,
            num_gateways=given.gateways,
            without=without,
            record=record,
            script=script,
        )
        soak.play(given.minutes)
    return _judge(record, folder, seed)


def _judge(record: Record, folder: Path, seed: int) -> int:
    """Print what came of it; return the exit code."""
    print(record.table())
    if record.wrong:
        print(f"{len(record.wrong)} things were wrong; see {folder}, play it again with --seed {seed}:")
        print("\n".join(record.wrong))
        return 1
    print("nothing was wrong")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
