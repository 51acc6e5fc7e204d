"""Where the command line begins: quiet whenever Ctrl-C comes, and quick, because it imports what it needs, no more."""

import sys
from collections.abc import Sequence

from pliant.cli.imports import without_garbage_collection
from pliant.entry.interrupt import INTERRUPTED, exit_with, leaving_at_once


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        argv: the command; None: that of this process, which is ours then.

    Raises:
        SystemExit: always, with the exit code.
    """
    try:
        with leaving_at_once(), without_garbage_collection():
            from pliant.cli.commands import run  # typer takes longer to come than a hand to the keys

        code = run(argv)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if argv is None:
        exit_with(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
