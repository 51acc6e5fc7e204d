"""The requests that a kernel has been given and has not begun, oldest first. Pure.

Law: every request that was added leaves once, by `take` or by `give_back`, or was cancelled: of those nobody is told
any more, since the gateway has forgotten them, and would take it for an answer to nothing. Both take one element after
the other, so a signal's handler may call `give_back` at any moment.
"""

from collections import deque
from collections.abc import Iterable

from pliant.serve.runner.request import KernelRequest, KernelResult, failure

_EXPIRED = failure(504, "the request has waited for longer than its client has time for; send it again")


class Backlog:
    """Requests that wait in the kernel."""

    def __init__(self) -> None:
        self._waiting: deque[KernelRequest] = deque()
        self._cancelled: set[int] = set()

    def __len__(self) -> int:
        return len(self._waiting)

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
