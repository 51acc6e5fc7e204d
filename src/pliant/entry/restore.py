"""The process of `pliant restore`: `python -m pliant.entry.restore FILE --home FOLDER`.

The database is the one that PLIANT_DATABASE names, else SQLite in the folder. Exit codes: 0, or 2 if it could not be
restored, or 130 at Ctrl-C; the folder is as it was then.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pliant.core.errors import PliantError
from pliant.entry.interrupt import INTERRUPTED, exit_with, leaving_at_once


def main(argv: Sequence[str]) -> int:
    """Restore; return the exit code."""
    parser = argparse.ArgumentParser(prog="pliant restore", description="Make a server's state from a backup.")
    parser.add_argument("file", type=Path, help="what `pliant backup` wrote")
    parser.add_argument("--home", type=Path, required=True, help="a new or empty state folder")
    given = parser.parse_args(argv)
    with leaving_at_once():
        from pliant.entry.server.restore import restore_backup
    try:
        number = restore_backup(given.file, given.home, os.environ.get("PLIANT_DATABASE") or None)
    except PliantError as error:
        print(f"pliant: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"pliant: interrupted; {given.home} is as it was", file=sys.stderr)
        return INTERRUPTED
    print(f"{given.home} holds the server of {given.file} again, {number:,} rows; start it with `pliant up`")
    return 0


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
