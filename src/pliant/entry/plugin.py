"""The process of an algorithm of somebody's own. Not for people to call.

`python -P -m pliant.entry.plugin KIND FOLDER SOCKET`: KIND is `ibm` or `optuna`, FOLDER has the code, and SOCKET is the
number of an open socket to who asks (`pliant.tune.adviser_messages`); standard input stays open as long as that one
lives, and nothing comes through it. With `--check` instead of SOCKET the code is loaded, and what it is comes as one
line of JSON on standard output (`pliant.tune.plugins.found_code.FoundCode`); what the code prints goes to standard
error. `--log-level` says from which level on an algorithm's log is written.

Exit codes: 0 when the socket is closed or the code was looked at, 3 if who asks is gone. Walls are put around this
process by who starts it. What it limits itself is for honest code that goes wrong.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MAX_MEMORY_BYTES: Final = 4 << 30
"""Of data, which is what it allocates; what is mapped from files does not count."""
MAX_FILE_BYTES: Final = 1 << 30
"""Of each file that it writes."""
LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(argv: Sequence[str]) -> int:
    """Answer who is at the other end of a socket, or say what code is."""
    parser = argparse.ArgumentParser(prog="pliant.entry.plugin")
    parser.add_argument("kind", choices=("ibm", "optuna"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="INFO")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("socket", type=int, nargs="?")
    given = parser.parse_args(argv)
    if given.check is (given.socket is not None):
        parser.error("give a socket, or --check")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
