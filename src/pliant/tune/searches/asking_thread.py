"""Has a thread ask for one search: an answer may take seconds, and other searches go on meanwhile."""

import logging
import threading
from typing import Final, Protocol

from pliant.core.errors import PliantError
from pliant.tune.searches.asking import Asker

log = logging.getLogger(__name__)

_IDLE_S: Final = 30.0
"""An adviser that nobody has asked for so long is ended; another one continues."""


class RunningAsker(Protocol):
    """Asks for one search, whenever it is woken."""

    def wake(self) -> None:
        """See whether there is something to ask."""
        ...

    def close(self) -> None:
        """End it, and its adviser."""
        ...

    @property
    def has_ended(self) -> bool:
        """It asks nothing more; another one may."""
        ...


class AskerThread:
    """Asks for as long as there is something to ask, and ends when it was idle for a while."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pliant-ask-{asker.name}", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """It asks nothing more; another one may."""
        return not self._thread.is_alive()

    def wake(self) -> None:
        """See whether there is something to ask; from any thread."""
        self._wake.set()

    def close(self) -> None:
        """End it, and its adviser, after the answer that is under way; returns at once."""
        self._closed.set()
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._closed.is_set() and self._wake.wait(_IDLE_S):
                self._wake.clear()
                while not self._closed.is_set() and self._asker.ask_next():
                    pass
        except PliantError as error:
            log.warning("nothing can be asked for the search %s now, it is tried again: %s", self._asker.name, error)
        except Exception:
            log.exception("nothing could be asked for the search %s; it is tried again", self._asker.name)
        finally:
            self._asker.drop()
