"""How PostgreSQL is reached: which URLs name one, and what settings every connection has. Opens nothing.

Limits are the server's own, so that they hold also when this process is stopped or cut off.
"""

import os
import socket
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import URL

NAMES: Final = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
"""What a URL can begin with."""
DRIVER: Final = "postgresql+psycopg"

SESSION: Final[Mapping[str, str]] = {
    "statement_timeout": "60000",
    "lock_timeout": "10000",
    "timezone": "UTC",
}
"""Settings of every session; times in milliseconds."""
POOL: Final[Mapping[str, Any]] = {
    "pool_size": 8,
    "max_overflow": 8,
    "pool_timeout": 10,
    "pool_recycle": 1800,
    "pool_pre_ping": True,
}
"""At most 16 connections of one server; one that was lost is replaced before it is used."""
_WIRE: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
"""A peer that is gone is noticed within about ten seconds."""
LOCK_TABLES: Final = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL lock_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SELECT pg_advisory_xact_lock(hashtext('pliant migrations'), hashtext(current_schema()))",
)
"""Of a transaction that changes the tables."""
_MAX_NAME: Final = 63


def connect_args(url: URL, *, name: str, session: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of the driver beside the URL; what the URL says itself holds.

    Args:
        name: shown in `pg_stat_activity`.
        session: settings beside those of every session.
    """
    settings = {**SESSION, **session}
    options = " ".join(f"-c {key}={value}" for key, value in settings.items())
    theirs = url.query.get("options", "")
    theirs = theirs if isinstance(theirs, str) else " ".join(theirs)
    wire = {key: value for key, value in _WIRE.items() if key not in url.query}
    return {**wire, "application_name": name[:_MAX_NAME], "options": f"{options} {theirs}".strip()}


def session_name() -> str:
    """Return how this process is called in `pg_stat_activity`."""
    return f"pliant {os.getpid()} on {socket.gethostname()}"


def display_url(url: URL) -> str:
    """Return a URL without its secrets: what its query holds is left out."""
    bare = URL.create(url.drivername.partition("+")[0], url.username, None, url.host, url.port, url.database)
    return bare.render_as_string()
