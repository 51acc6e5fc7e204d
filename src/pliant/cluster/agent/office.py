"""Whether this agent is still the one that its node's tasks belong to."""

import logging
from pathlib import Path

from pliant.cluster.zygote import records
from pliant.core.job import NodeId

log = logging.getLogger(__name__)


class Office:
    """The term of one agent; it begins when this is made, and ends when a later agent begins its own."""

    def __init__(self, state_dir: Path, node_id: NodeId) -> None:
        self._state_dir = state_dir
        self._node_id = node_id
        self._told = False
        self.term = records.new_term(state_dir)

    def held(self) -> bool:
        """Tell whether no later agent has begun its term; else tasks and their records are that one's."""
        if records.term(self._state_dir) in (self.term, None):
            return True
        if not self._told:
            log.warning("a later agent has taken over node %s; this one does nothing any more", self._node_id)
        self._told = True
        return False
