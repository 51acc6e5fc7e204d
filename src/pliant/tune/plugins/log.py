"""What an algorithm logs: its lines are printed, and so are in its log."""

import logging
import sys
from typing import Final

_OF_ALGORITHMS: Final = ("plugins", "optimizer", "sampler")
"""IBM's log, and those that the two files have by their names."""


def write_log(level: str) -> None:
    """Print what an algorithm logs from a level on, and warnings of what it imports."""
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
    for name in _OF_ALGORITHMS:
        logging.getLogger(name).setLevel(level)
