"""Checks passwords: slowly the first time, from memory for some seconds after that, and not too many wrong ones.

The memory holds keyed digests only, each with the hash that it was verified against: when the password has been
changed, by whatever process, the hash is another one and the memory no longer holds.
"""

import hmac
import math
import threading
from collections import OrderedDict
from enum import Enum, auto
from typing import Final

from pliant.core.errors import TooMany
from pliant.core.ports import Clock
from pliant.people.attempts import Attempts
from pliant.people.passwords import Passwords
from pliant.people.user import User

REMEMBERED_S: Final = 30.0
"""So long a verified password is taken without hashing it again."""
_MAX_REMEMBERED: Final = 1000


class Verdict(Enum):
    """What a password turned out to be."""

    WRONG = auto()
    RIGHT = auto()
    REMEMBERED = auto()
    """Right, and so it was seconds ago."""


class PasswordChecker:
    """Checks passwords of users. Safe to use from any thread."""

    def __init__(self, *, passwords: Passwords, clock: Clock, key: bytes) -> None:
        self._passwords = passwords
        self._clock = clock
        self._key = key
        self._attempts = Attempts()
        self._remembered: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()

    def is_remembered(self, user: User | None, password: str) -> bool:
        """Tell whether this password was verified a short while ago and has not been changed since."""
        if user is None:
            return False
        with self._lock:
            password_hash, until = self._remembered.get(self._digest(user.name, password), ("", -math.inf))
        still = hmac.compare_digest(password_hash.encode(), user.password_hash.encode())
        return still and self._clock.now() < until

    def check(self, user: User | None, name: str, password: str, address: str) -> Verdict:
        """Check the password that came from an address for a name; `user` is None if nobody has that name.

        Attempts are judged one after another, so that many at once are counted like as many in a row.

        Raises:
            TooMany: too many attempts have failed; nothing was compared.
            Unavailable: the machine lacks the memory.
        """
        if self.is_remembered(user, password):
            return Verdict.REMEMBERED
        self._refuse_if_too_many(name, address)
        with self._one_at_a_time:
            if self.is_remembered(user, password):
                return Verdict.REMEMBERED
            self._refuse_if_too_many(name, address)
            if not self._passwords.matches(None if user is None else user.password_hash, password) or user is None:
                self._attempts.failed(name, address, self._clock.now())
                return Verdict.WRONG
            self._attempts.succeeded(name, address, self._clock.now())
            self._remember(user, password)
        return Verdict.RIGHT

    def forgive(self, name: str) -> None:
        """Forget the failures of an account."""
        self._attempts.forgive(name)

    def know(self, name: str, address: str, at: float) -> None:
        """Remember that an account logged on at an address then."""
        self._attempts.know(name, address, at)

    def _refuse_if_too_many(self, name: str, address: str) -> None:
        wait_s = self._attempts.wait_s(name, address, self._clock.now())
        if wait_s > 0:
            raise TooMany(
                f"too many attempts to log on have failed, for this account or from this address; wait "
                f"{math.ceil(wait_s)} s before the next one",
                wait_s=wait_s,
            )

    def _remember(self, user: User, password: str) -> None:
        with self._lock:
            digest = self._digest(user.name, password)
            self._remembered[digest] = (user.password_hash, self._clock.now() + REMEMBERED_S)
            self._remembered.move_to_end(digest)
            while len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)

    def _digest(self, name: str, password: str) -> bytes:
        given = f"{name}\0{password}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, given, "sha256")
