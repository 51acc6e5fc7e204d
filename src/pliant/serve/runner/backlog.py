"""The requests that a kernel has been given and has not begun: those of a gateway, oldest first. Pure.

Several gateways have a backlog each, and are taken from in turns (`BacklogTurns`). Example: a has 1 2 3, b has 7

    a1 b7 a2 a3

Law of turns: between two requests of one gateway, each of the others is taken from at most once, and at least once if
something of it waits.

Law of a backlog: every request that was added leaves once, by `take` or by `give_back`, or was cancelled: of those
nobody is told any more, since the gateway has forgotten them, and would take it for an answer to nothing. Both take one
element after the other, so a signal's handler may call `give_back` at any moment.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from pliant.serve.runner.request import KernelRequest, KernelResult, failure

_EXPIRED = failure(504, "the request has waited for longer than its client has time for; send it again")


class Backlog:
    """Requests that wait in the kernel."""

    def __init__(self) -> None:
        self._waiting: deque[KernelRequest] = deque()
        self._cancelled: set[int] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def num_awaited(self) -> int:
        """Requests that wait, but for those that were cancelled."""
        return len(self._waiting) - len(self._cancelled)

    def add(self, request: KernelRequest) -> None:
        """Let a request wait."""
        self._waiting.append(request)

    def cancel(self, ids: Iterable[int]) -> None:
        """Skip these requests when their turn comes; those that do not wait here are no concern."""
        self._cancelled.update({request.id for request in self._waiting}.intersection(ids))

    def take(self, now: float) -> tuple[KernelRequest, KernelResult | None] | None:
        """Return the oldest request, with its answer if it need not be computed: its client waits no longer."""
        while True:
            try:
                request = self._waiting.popleft()
            except IndexError:
                return None
            if request.id not in self._cancelled:
                break
            self._cancelled.discard(request.id)
        if request.deadline is not None and request.deadline <= now:
            return request, _EXPIRED
        return request, None

    def give_back(self) -> list[int]:
        """Return the ids of all that wait, oldest first; nothing waits afterwards."""
        ids = []
        while True:
            try:
                ids.append(self._waiting.popleft().id)
            except IndexError:
                self._cancelled.clear()
                return ids


class BacklogTurns:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, backlogs: Sequence[Backlog], now: float) -> tuple[KernelRequest, KernelResult | None] | None:
        """Return what the next backlog that has something gives; None if nothing waits anywhere."""
        num = len(backlogs)
        for at in range(self._next, self._next + num):
            if (taken := backlogs[at % num].take(now)) is not None:
                self._next = (at + 1) % num
                return taken
        return None
