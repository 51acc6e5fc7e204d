"""Slows down guessing: after a few failed attempts to log on, each further attempt has to wait.

Counts by key (an account, an address) in a bounded memory. Knows no passwords.
"""

import ipaddress
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

WINDOW_S: Final = 15 * 60.0
"""Failures older than this do not count."""
NUM_FREE: Final = 5
"""So many failures have no consequence."""
FIRST_WAIT_S: Final = 5.0
"""After the last free failure; twice as long after each further one."""
MAX_WAIT_S: Final = 5 * 60.0
MAX_KEYS: Final = 10_000

_NUM_TIMES: Final = NUM_FREE + 7
"""More failures would not make anybody wait longer."""


class Throttle:
    """Remembers failures. Safe to use from any thread."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, keys: Sequence[str], now: float) -> float:
        """Return the seconds that an attempt under these keys has to wait, 0 for none."""
        with self._lock:
            return max((_wait_s(self._failures.get(key, ()), now) for key in keys), default=0.0)

    def failed(self, keys: Sequence[str], now: float) -> None:
        """Remember a failure under each key; the keys that failed longest ago are forgotten when there are too many."""
        with self._lock:
            for key in keys:
                self._failures.setdefault(key, deque(maxlen=_NUM_TIMES)).append(now)
                self._failures.move_to_end(key)
            while len(self._failures) > self._max_keys:
                self._failures.popitem(last=False)

    def forget(self, key: str) -> None:
        """Forget all failures of a key."""
        with self._lock:
            self._failures.pop(key, None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._failures)


def _wait_s(failures: Sequence[float] | deque[float], now: float) -> float:
    recent = [at for at in failures if now - at < WINDOW_S]
    if len(recent) < NUM_FREE:
        return 0.0
    delay = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** (len(recent) - NUM_FREE))
    return min(delay, max(0.0, recent[-1] + delay - now))


def account_key(name: str) -> str:
    """Return the key of an account."""
    return f"account {name}"


def address_key(address: str) -> str:
    """Return the key of an address; one person can have all the IPv6 addresses of a /64, so they count as one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"address {address:.60}"
    if isinstance(parsed, ipaddress.IPv6Address):
        mapped = parsed.ipv4_mapped
        network = ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64))
        return f"address {mapped or network}"
    return f"address {parsed}"
