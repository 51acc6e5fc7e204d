"""Slows down guessing under one key: after a few failures each further attempt has to wait, longer and longer.

A key has a level. Every failure adds one to it, and one leaks out of it in every `forgotten_s`. Below `num_free` no
attempt waits; above, it waits after the last failure, twice as long for each further level. Attempts are bounded, for
whoever makes as many as they can: each adds one, so in a time T no more fail than the highest level and what leaks,

    num_free + log2(max_wait_s / first_wait_s) + 2   +   T / forgotten_s

if `max_wait_s` is no less than `forgotten_s`. The memory is bounded, too. Knows no passwords.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MAX_KEYS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleRule:
    """How strict a throttle is."""

    num_free: int
    """So many failures have no consequence."""
    first_wait_s: float
    """After the last free failure; twice as long after each further one."""
    max_wait_s: float
    forgotten_s: float
    """One failure is forgotten in this time."""


@dataclass(frozen=True, slots=True)
class _Level:
    value: float
    at: float
    """When it last grew."""


class Throttle:
    """Remembers failures. Safe to use from any thread."""

    def __init__(self, rule: ThrottleRule, max_keys: int = MAX_KEYS) -> None:
        self._rule = rule
        self._max_keys = max_keys
        self._levels: OrderedDict[str, _Level] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, key: str, now: float) -> float:
        """Return the seconds that an attempt under this key has to wait, 0 for none."""
        with self._lock:
            level = self._levels.get(key)
        if level is None or level.value < self._rule.num_free:
            return 0.0
        doublings = int(level.value) - self._rule.num_free
        delay = min(self._rule.max_wait_s, self._rule.first_wait_s * 2.0**doublings)
        return min(delay, max(0.0, level.at + delay - now))

    def failed(self, key: str, now: float) -> None:
        """Remember a failure; the keys that failed longest ago are forgotten when there are too many."""
        with self._lock:
            before = self._levels.pop(key, _Level(0.0, now))
            leaked = max(0.0, now - before.at) / self._rule.forgotten_s
            self._levels[key] = _Level(max(0.0, before.value - leaked) + 1.0, now)
            while len(self._levels) > self._max_keys:
                self._levels.popitem(last=False)

    def forget(self, key: str) -> None:
        """Forget all failures of a key."""
        with self._lock:
            self._levels.pop(key, None)

    def forget_all(self, prefix: str) -> None:
        """Forget all failures of the keys that begin so."""
        with self._lock:
            for key in [key for key in self._levels if key.startswith(prefix)]:
                del self._levels[key]

    def __len__(self) -> int:
        with self._lock:
            return len(self._levels)
