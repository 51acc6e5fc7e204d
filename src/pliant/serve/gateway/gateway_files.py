"""What the process of a gateway is known by: its variable, and the names of the files in its state folder."""

from typing import Final

KEY_VARIABLE: Final = "PLIANT_GATEWAY_KEY"
"""Holds what opens the link to the server; the process takes it out of its environment."""
RECORD: Final = "gateway.json"
"""Which process it is: `pid`, `stamp` (no other process has it), and the `url` where it listens."""
LOCK: Final = "lock"
"""Held with flock by the one that runs."""
LOG: Final = "log"
"""Of the gateway, or of the process that keeps several; see `log_name`."""
SECOND: Final = 3
"""Exit code of one that another one is in the way of."""


def log_name(number: int | None = None) -> str:
    """Return the name of the log of one of several processes; without a number, of the one that keeps them."""
    return LOG if number is None else f"{LOG}-{number}"
