"""Which machines have to remove what tasks of jobs that are over may have left there. No clock, no messages.

Whoever asks tells a machine which jobs go on; it removes what it has of all others. If every machine were told whenever
a job ends, that would be the machines times the jobs: with 10,000 of them and 20,000 jobs, two gigabytes each time. So
told are at once those on which a task of the job was, as far as that is known for sure, and others in turn:

- A job that this server found when it began may have had tasks anywhere, and a machine that is new or was away may have
  anything. Such machines are told with the ends of jobs, whichever these are, `NUM_IN_TURN` with each.
- A machine that is removing something does not begin anew for what it is told meanwhile: it is told once more, at the
  first end of a job that comes later than `AGAIN_S`.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from pliant.core.job import JobId, NodeId

AGAIN_S: Final = 10.0
NUM_IN_TURN: Final = 32


class Leftovers:
    """What is known of the machines of a pool."""

    def __init__(self) -> None:
        self._found: frozenset[JobId] | None = None
        """Of the jobs that there were at first, those that go on; None: nobody has said yet which."""
        self._places: defaultdict[JobId, set[NodeId]] = defaultdict(set)
        self._in_turn: dict[NodeId, None] = {}
        """Who may have something of a job that is over; who has waited longest comes first."""
        self._again: deque[tuple[float, NodeId]] = deque()
        """Who is to be told once more, and from when on; the earliest first."""

    def note(self, job_id: JobId, node_id: NodeId) -> None:
        """Take note that a task of a job is on a machine."""
        self._places[job_id].add(node_id)

    def come(self, node_id: NodeId) -> None:
        """Take note that a machine is new, or is there again: nobody knows what it has."""
        self._in_turn.setdefault(node_id)

    def take(self, living: Collection[JobId], everybody: Iterable[NodeId], now: float) -> Collection[NodeId]:
        """Return whom to tell that these jobs go on and all others are over; they count as told from now on."""
        going_on = frozenset(living)
        if self._found is None:
            self._found, concerned = going_on, set(everybody)
        else:
            concerned = self._where_over(going_on)
            if self._found - going_on:
                self._found &= going_on
                self._in_turn = {**self._in_turn, **dict.fromkeys(everybody)}
            concerned.update(islice(self._in_turn, NUM_IN_TURN))
        self._in_turn = {node_id: None for node_id in self._in_turn if node_id not in concerned}
        later = [(now + AGAIN_S, node_id) for node_id in concerned]
        while self._again and self._again[0][0] <= now:
            concerned.add(self._again.popleft()[1])
        self._again.extend(later)
        return concerned

    def _where_over(self, going_on: Collection[JobId]) -> set[NodeId]:
        """Return where tasks of jobs were that are over, and forget these jobs."""
        found: set[NodeId] = set()
        for job_id in [job_id for job_id in self._places if job_id not in going_on]:
            found |= self._places.pop(job_id)
        return found
