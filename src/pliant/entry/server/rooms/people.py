"""People when the server starts: its first administrator, how they log on, and a new password for them.

A password that was made up is written once, to a descriptor that somebody reads, and to no file.
"""

import logging
import os
import secrets
from pathlib import Path
from typing import Final

from pliant.core.errors import Conflict, NotFound
from pliant.core.ports import Clock
from pliant.core.registry import AuditEntry, AuditLog, Registry
from pliant.entry.clock import SystemClock
from pliant.entry.server.home import Home
from pliant.people.people import People, make_people
from pliant.people.user import ADMIN
from pliant.server.middleware.audit import LOG_ON
from pliant.store.sql import SqlStore

log = logging.getLogger(__name__)

STDERR = 2
_PAGE: Final = 1000
_NUM_PAGES: Final = 10
_RIGHT: Final = 200


def open_people(
    registry: Registry, audit: AuditLog, clock: Clock, home: Home, *, url: str, login_fd: int | None, alone: str = ""
) -> People:
    """Return the people of a server; at its first start make the administrator, and tell how to log on.

    Raises:
        Conflict: there are several, and `alone` says why only one may use this server.
    """
    people = make_people(registry, clock, file_token=home.token, token_hex=secrets.token_hex, alone=alone)
    if alone and len(people.accounts.page("", 2)) > 1:
        raise Conflict(f"there are several users, and {alone}")
    password = people.accounts.first_administrator()
    if password is not None:
        print_once(_first_logon(url, password, home.path), login_fd)
    elif login_fd is not None:
        os.close(login_fd)
    people.credentials.forget_expired_sessions()
    recall_addresses(people, audit)
    return people


def recall_addresses(people: People, audit: AuditLog) -> None:
    """Let people be known where they have logged on, as far as the newest entries of the audit log tell."""
    found: list[AuditEntry] = []
    before: int | None = None
    for _ in range(_NUM_PAGES):
        page = audit.entries(before=before, limit=_PAGE)
        found += [entry for entry in page if entry.action == LOG_ON and entry.status == _RIGHT and entry.who]
        if len(page) < _PAGE:
            break
        before = page[-1].seq
    for entry in reversed(found):
        people.authenticator.know(entry.who, entry.address, entry.at)


def reset_administrator(home: Path, database: str) -> str:
    """Give the administrator of a home a new password, also while its server runs; return how to log on.

    Raises:
        NotFound: no server has ever run there.
        Conflict, Unavailable: as `SqlStore`.
    """
    if not (home / "token").exists():
        raise NotFound(f"{home} is not the state folder of a server; give the --home that it was started with")
    store = SqlStore(database, now=SystemClock().now)
    try:
        people = make_people(store.registry, SystemClock(), file_token="", token_hex=secrets.token_hex)
        password = people.accounts.reset_administrator()
    finally:
        store.close()
    return f"The administrator has a new password, which is shown this once:\n{_login(password)}"


def print_once(text: str, descriptor: int | None) -> None:
    """Write a text to a descriptor and close that; None: to stderr, past every log."""
    data = text.encode()
    try:
        while data:
            data = data[os.write(STDERR if descriptor is None else descriptor, data) :]
    except BrokenPipeError:
        log.warning("nobody read the administrator's password any more; --reset-admin gives a new one")
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _first_logon(url: str, password: str, home: Path) -> str:
    return (
        f"This server is new. Its administrator logs on with what is shown this once:\n"
        f"  address   {url}\n{_login(password)}"
        f"Whoever can read {home / 'token'} is the administrator without logging on.\n"
    )


def _login(password: str) -> str:
    return f"  user      {ADMIN}\n  password  {password}\n"
