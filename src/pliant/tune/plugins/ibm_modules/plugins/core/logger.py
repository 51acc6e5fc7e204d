"""The log of a plug-in: `logger`, whose lines are in the log of the algorithm."""

import logging
from typing import Final

logger: Final = logging.getLogger("plugins")


def get_logger(name: str = "") -> logging.Logger:
    """Return the log of a part of a plug-in."""
    return logger.getChild(name) if name else logger
