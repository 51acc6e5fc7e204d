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
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput
from pliant.tune.plugins.failures import shown
from pliant.tune.plugins.found_code import FoundCode, encode_found
from pliant.tune.plugins.ibm.ibm_adviser import IbmAdviser
from pliant.tune.plugins.ibm.optimizer_class import look_at_optimizer
from pliant.tune.plugins.log import write_log
from pliant.tune.questions import end_with_server, serve

MAX_MEMORY_BYTES: Final = 4 << 30
"""Of data, which is what it allocates; what is mapped from files does not count."""
MAX_FILE_BYTES: Final = 1 << 30
"""Of each file that it writes."""
LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_CHECKED: Final = "the algorithm"
"""How messages call one that is looked at: it may have no name yet."""


def main(argv: Sequence[str]) -> None:
    """Answer who is at the other end of a socket, or say what code is; end the process, with its threads."""
    parser = argparse.ArgumentParser(prog="pliant.entry.plugin")
    parser.add_argument("kind", choices=("ibm", "optuna"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="INFO")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("socket", type=int, nargs="?")
    given = parser.parse_args(argv)
    if given.check is (given.socket is not None):
        parser.error("give a socket, or --check")
    _limit()
    end_with_server(_taken_input())
    write_log(given.log_level)
    sys.dont_write_bytecode = True  # the folder is for reading
    folder = given.folder.absolute()
    if given.check:
        _say(given.kind, folder)
    else:
        _serve(given.kind, folder, given.socket)
    os._exit(0)


def _limit() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    limits = {
        resource.RLIMIT_DATA: MAX_MEMORY_BYTES,
        resource.RLIMIT_FSIZE: MAX_FILE_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    for limit, most in limits.items():
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))


def _taken_input() -> int:
    """Return standard input as a descriptor that the code does not meet, and let it read nothing."""
    taken = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return taken


def _serve(kind: str, folder: Path, channel: int) -> None:
    os.set_inheritable(channel, False)
    with socket.socket(fileno=channel) as end, end.makefile("rwb") as lines:
        serve(lines, _maker(kind, folder))


def _maker(kind: str, folder: Path) -> Callable[[AdviserInput], Adviser]:
    if kind == "ibm":
        return lambda opening: IbmAdviser(opening, folder)
    from pliant.tune.adviser.folder_sampler import folder_adviser  # IBM's plug-ins do without Optuna

    return lambda opening: folder_adviser(opening, folder)


def _say(kind: str, folder: Path) -> None:
    answer = os.dup(1)
    os.dup2(2, 1)
    os.write(answer, encode_found(_found(kind, folder)))


def _found(kind: str, folder: Path) -> FoundCode:
    try:
        if kind == "ibm":
            return look_at_optimizer(_CHECKED, folder)
        from pliant.tune.adviser.folder_sampler import look_at_sampler

        return look_at_sampler(_CHECKED, folder)
    except AdviserFailure as error:
        return FoundCode(problem=shown(str(error), 2000))


if __name__ == "__main__":
    main(sys.argv[1:])
