"""Which attempts to log on have to wait: failures count by account and by address, apart. Knows no passwords.

An account is *known* at an address where it has logged on with its password in the last thirty days. Attempts there
count by themselves, whatever is guessed elsewhere, so strangers keep nobody out. All others count four times: for the
account at this address, for the account at all addresses where it is not known, for the address, and in all. So

- who mistypes their own password five times holds up themselves there, and nobody else behind their address;
- who has many addresses finds few passwords of one account;
- who tries many accounts from one address ("spraying") is held up at all where they are not known;
- who has many of both keeps the server busy with one hash a second.

Those who share an address with a stranger can be held up there for minutes; sessions and tokens never are.
"""

import threading
from collections import OrderedDict
from typing import Final

from pliant.core.address import network_of
from pliant.people.throttle import MAX_KEYS, Throttle, ThrottleRule
from pliant.people.user import is_name

AT_ADDRESS: Final = ThrottleRule(num_free=5, first_wait_s=5.0, max_wait_s=300.0, forgotten_s=300.0)
"""Of one account at one address: 13 attempts at once, and 288 a day."""
OF_ACCOUNT: Final = ThrottleRule(num_free=10, first_wait_s=5.0, max_wait_s=60.0, forgotten_s=60.0)
"""Of one account at all addresses where it is not known: 16 at once, and 1,440 a day."""
OF_ADDRESS: Final = ThrottleRule(num_free=20, first_wait_s=5.0, max_wait_s=60.0, forgotten_s=60.0)
"""Of all accounts that are not known at an address: 26 at once, and 1,440 a day."""
OF_ALL: Final = ThrottleRule(num_free=100, first_wait_s=1.0, max_wait_s=1.0, forgotten_s=1.0)
"""Of all accounts at all addresses where they are not known: 102 at once, and one a second."""
KNOWN_S: Final = 30 * 86400.0
FORGOTTEN_S: Final = 13 * AT_ADDRESS.forgotten_s
"""After this time without failures none has a consequence, however many there were."""

_EVERYBODY: Final = "everybody"


class Attempts:
    """Attempts to log on. Safe to use from any thread."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._at_address = Throttle(AT_ADDRESS, max_keys)
        self._of_account = Throttle(OF_ACCOUNT, max_keys)
        self._of_address = Throttle(OF_ADDRESS, max_keys)
        self._of_all = Throttle(OF_ALL)
        self._max_keys = max_keys
        self._known: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, name: str, address: str, now: float) -> float:
        """Return the seconds that an attempt has to wait, 0 for none."""
        return max(throttle.wait_s(key, now) for throttle, key in self._keys(name, address, now))

    def failed(self, name: str, address: str, now: float) -> None:
        """Remember that an attempt has failed."""
        for throttle, key in self._keys(name, address, now):
            throttle.failed(key, now)

    def succeeded(self, name: str, address: str, now: float) -> None:
        """Remember that an account is known at an address.

        What others failed there or elsewhere stays: with an account of their own they could set it back.
        """
        self._at_address.forget(_pair(name, address))
        self.know(name, address, now)

    def know(self, name: str, address: str, at: float) -> None:
        """Remember that an account logged on at an address then."""
        pair = _pair(name, address)
        with self._lock:
            self._known[pair] = max(at, self._known.get(pair, at))
            self._known.move_to_end(pair)
            while len(self._known) > self._max_keys:
                self._known.popitem(last=False)

    def forgive(self, name: str) -> None:
        """Forget the failures of an account."""
        self._of_account.forget(name)
        self._at_address.forget_all(_pair(name, ""))

    def _keys(self, name: str, address: str, now: float) -> list[tuple[Throttle, str]]:
        pair = _pair(name, address)
        with self._lock:
            known_at = self._known.get(pair)
        if known_at is not None and now - known_at < KNOWN_S:
            return [(self._at_address, pair)]
        anywhere = [(self._of_address, network_of(address)), (self._of_all, _EVERYBODY)]
        return [(self._at_address, pair), (self._of_account, name), *anywhere] if is_name(name) else anywhere


def _pair(name: str, address: str) -> str:
    return f"{name} {network_of(address) if address else ''}"
