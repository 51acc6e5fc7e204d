"""A batch while it is computed (`OpenBatch`): it grows without waiting, and answers leave as soon as they are there.

Knows neither socket nor model: what it takes from and sends to is given. Law: every request that was taken is answered
once, by `answer` or by `fail_rest`, or is handed on by `stream`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pliant.serve.runner.request import KernelRequest, KernelResult, failure


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGroup:
    """Answers that leave together, and what computing them took."""

    answers: tuple[tuple[KernelRequest, KernelResult], ...]
    seconds: float
    """Since the group before, or since the batch was opened."""


class OpenBatch:
    """The requests that a model is given together.

    Args:
        size: it takes no more than these.
        next_request: returns the next one that waits, without waiting for it.
        send: takes answers.
        clock: seconds.
        begin: takes requests that are answered in parts.
    """

    def __init__(
        self,
        size: int,
        next_request: Callable[[], KernelRequest | None],
        send: Callable[[AnswerGroup], None],
        clock: Callable[[], float],
        begin: Callable[[KernelRequest, Iterator[KernelResult]], None],
    ) -> None:
        self._begin = begin
        self._size = size
        self._next_request = next_request
        self._send = send
        self._clock = clock
        self._began_at = clock()
        self._unanswered: dict[int, KernelRequest] = {}
        """By what each is, not by its number: two gateways may have given the same one."""
        self._num_taken = 0
        self._is_closed = False
        self.has_answered = False
        """An answer was sent."""

    @property
    def is_full(self) -> bool:
        """It has taken all that it may."""
        return self._num_taken >= self._size

    def take(self) -> KernelRequest | None:
        """Return the next request; None closes the batch: nothing waits, or it is full."""
        request = None if self._is_closed or self.is_full else self._next_request()
        if request is None:
            self._is_closed = True
            return None
        self._num_taken += 1
        self._unanswered[id(request)] = request
        return request

    def answer(self, answers: Sequence[tuple[KernelRequest, KernelResult]]) -> None:
        """Send answers; requests that have theirs already are passed over."""
        new = tuple(pair for pair in answers if self._unanswered.pop(id(pair[0]), None) is not None)
        if not new:
            return
        self.has_answered = True
        now = self._clock()
        group = AnswerGroup(answers=new, seconds=now - self._began_at)
        self._began_at = now
        self._send(group)

    def stream(self, request: KernelRequest, parts: Iterator[KernelResult]) -> None:
        """Hand on a request that is answered in parts; nothing of the batch waits for it."""
        if self._unanswered.pop(id(request), None) is not None:
            self._begin(request, parts)

    def fail_rest(self, status: int, message: str) -> int:
        """Close it, and send this error to all that have no answer; return how many these were."""
        self._is_closed = True
        rest = [(request, failure(status, message)) for request in self._unanswered.values()]
        self.answer(rest)
        return len(rest)
