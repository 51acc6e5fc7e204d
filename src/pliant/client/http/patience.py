"""How long a client puts up with a server that does not answer, and with a noun that is not ready."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from pliant.core.errors import PliantError, Unavailable

T = TypeVar("T")

_MAX_DELAY_S: Final = 2.0


@dataclass(slots=True, kw_only=True)
class Patience:
    """How often in a row something may fail before we give up; the pauses double up to two seconds."""

    max_failures: int = 10
    pause_s: float = 0.2
    sleep: Callable[[float], None] = time.sleep
    failures: int = 0

    def reset(self) -> None:
        """Start counting again: something worked."""
        self.failures = 0

    def wait_after(self, error: PliantError) -> None:
        """Pause after a failure; raise it if there were too many."""
        self.failures += 1
        if self.failures >= self.max_failures:
            raise error
        self.sleep(min(self.pause_s * 2 ** (self.failures - 1), _MAX_DELAY_S))


def observe(look: Callable[[], T], *, timeout_s: float, poll_s: float) -> Iterator[T]:
    """Yield what `look` returns, again and again until the time is over, at least once.

    Raises:
        Unavailable: the server stayed away for longer than our patience.
    """
    deadline = time.monotonic() + timeout_s
    patience = Patience()
    while True:
        try:
            seen = look()
        except Unavailable as error:
            patience.wait_after(error)
            continue
        patience.reset()
        yield seen
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(poll_s, left_s))
