"""The end of the server: all jobs save their state and leave their slots; what does not, is killed."""

from pliant.control.jobs.ledger import Ledger
from pliant.control.requests import changes
from pliant.core.ports import Cluster


class EndRequests:
    """What is asked of control when the server ends; callable from any thread."""

    def __init__(self, ledger: Ledger, cluster: Cluster) -> None:
        self._ledger = ledger
        self._cluster = cluster

    def drain_all(self, cause: str) -> None:
        """Make all jobs save their state and leave at a step boundary; nothing is started from now on."""
        with self._ledger.lock:
            if self._ledger.draining:
                return
            self._ledger.draining = True
            changes.drain(draft := self._ledger.draft(), self._ledger.kinds, cause)
            self._ledger.commit(draft)

    def kill_all(self) -> None:
        """End every process that is left."""
        with self._ledger.lock:
            for live in self._ledger.jobs().values():
                for task in live.running:
                    self._cluster.kill(task.id)

    def is_drained(self) -> bool:
        """Tell whether no process is left."""
        with self._ledger.lock:
            return not any(live.running for live in self._ledger.jobs().values())
