"""Who of several servers leads: the one that holds the folder's lock, or the database's lead. Knows no HTTP.

A server that has lost the lead ends at once, without a word to tasks or to disk: whoever leads now answers for them.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from pliant.core.errors import Conflict, Deposed, Unavailable
from pliant.entry.server.database import display_url, is_server
from pliant.entry.server.home import FolderLock
from pliant.entry.server.settings import ServerSettings
from pliant.store.leadership import Leadership

log = logging.getLogger("pliant")

DEPOSED: Final = 3
"""Exit code of a server that was deposed."""
_KEEP_S: Final = 1.0
SURE_S: Final = 4.0
"""So long after it was kept a lead may be taken for ours; see `cluster.joined.hearing` for who counts on that."""


class FolderLead:
    """The lead over a database that is a file of the folder: whoever holds the folder's lock has it."""

    def __init__(self, lock: FolderLock) -> None:
        self.term: int | None = None
        self._lock = lock

    def take(self) -> bool:
        return self._lock.take()

    def keep(self) -> None:
        return  # the kernel keeps a lock for as long as its process lives, stopped or not

    def close(self) -> None:
        return  # the lock is let go with the folder


Lead = FolderLead | Leadership
"""What one server at a time has."""


def lead_of(settings: ServerSettings, lock: FolderLock) -> Lead:
    """Return the lead that a server of these settings needs.

    Raises:
        Conflict: a server whose database is a file in the folder uses it.
    """
    if not is_server(settings.database):
        return FolderLead(lock)
    if not lock.take(shared=True):
        raise lock.refusal()
    return Leadership(settings.database)


def refusal(settings: ServerSettings, lock: FolderLock) -> Conflict | None:
    """Return why a server that does not lead cannot wait; None if it can."""
    if settings.standby or is_server(settings.database):
        return None
    return lock.refusal()


class Keeper:
    """Takes a lead, and from then on keeps it in a thread of its own.

    Args:
        stale: tells whether this server must start again, because its memory is behind the database.
    """

    def __init__(self, lead: Lead, database: str) -> None:
        self.stale: Callable[[], bool] = lambda: False
        self._lead = lead
        self._database = display_url(database)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pliant-lead", daemon=True)
        self._kept_at = 0.0
        """Monotonic."""

    def is_sure(self) -> bool:
        """Tell whether we led a moment ago for sure: then nobody else has taken the lead for good yet."""
        return time.monotonic() - self._kept_at < SURE_S

    @property
    def term(self) -> int | None:
        return self._lead.term

    def take(self) -> bool:
        """Take the lead unless another server has it; tell whether we have it now.

        Raises:
            Unavailable: the database does not answer.
        """
        if not self._lead.take():
            return False
        self._kept_at = time.monotonic()
        self._thread.start()
        return True

    def close(self) -> None:
        """Let go of the lead."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._lead.close()

    def _run(self) -> None:
        logged = ""
        while not self._stop.wait(_KEEP_S):
            asked_at = time.monotonic()
            try:
                self._lead.keep()
            except Deposed as error:
                log.error("%s: %s", self._database, error)  # noqa: TRY400 (nothing of the trace helps)
                logging.shutdown()
                os._exit(DEPOSED)
            except Unavailable as error:
                if str(error) != logged:
                    log.warning("%s; it is tried again every second, nothing is written until then", error)
                logged = str(error)
            else:
                self._kept_at = asked_at
                if logged:
                    log.info("the database answers again; the lead was kept")
                logged = ""
            if self.stale():
                log.error("what the database holds is not what this server remembers: it starts again")
                logging.shutdown()
                os.execv(sys.executable, sys.orig_argv)
