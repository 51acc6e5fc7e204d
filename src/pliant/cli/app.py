"""Where the command line begins: quiet whenever Ctrl-C comes, and quick, because it imports what it needs, no more."""

import gc
import sys
from collections.abc import Sequence
from typing import Final

from pliant.entry.interrupt import INTERRUPTED, exit_with, leaving_at_once

_NEW_OBJECTS: Final = 100_000
"""So many objects come before a command looks for garbage. Next to nothing of what modules make is any, and with
Python's own number, 700, a tenth of their imports was the looking."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        argv: the command; None: that of this process, which is ours then.

    Raises:
        SystemExit: always, with the exit code.
    """
    if argv is None:
        gc.set_threshold(_NEW_OBJECTS)
    try:
        with leaving_at_once():
            from pliant.cli.commands import run  # typer takes longer to come than a hand to the keys

        code = run(argv)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        if argv is None:
            gc.freeze()  # Python's last looks for garbage, at its end, take a fifth of a short command
    if argv is None:
        exit_with(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
