"""Slow hashes of passwords: argon2id (RFC 9106). Knows no users."""

import threading
import unicodedata
from dataclasses import dataclass
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import HashingError, VerificationError, VerifyMismatchError

from pliant.core.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one hash takes; the defaults are the second recommendation of RFC 9106, section 4."""

    num_passes: int = 3
    memory_kib: int = 65536
    num_lanes: int = 4


DEFAULT_COST: Final = Cost()
_NOBODYS: Final = f"{'A' * 22}${'A' * 43}"
"""A salt of 16 bytes and a hash of 32, all of them 0, as argon2 writes them; nobody knows a password for these."""


class Passwords:
    """Hashes and compares passwords, one at a time: many at once would only take the machine's memory."""

    def __init__(self, cost: Cost = DEFAULT_COST) -> None:
        self._hasher = PasswordHasher(
            time_cost=cost.num_passes, memory_cost=cost.memory_kib, parallelism=cost.num_lanes
        )
        self._one_at_a_time = threading.Lock()
        self._nobodys = f"$argon2id$v=19$m={cost.memory_kib},t={cost.num_passes},p={cost.num_lanes}${_NOBODYS}"

    def hash(self, password: str) -> str:
        """Return what is kept of a password.

        Raises:
            Unavailable: the machine lacks the memory.
        """
        try:
            with self._one_at_a_time:
                return self._hasher.hash(_bytes(password))
        except HashingError as error:
            raise _no_memory(error) from error

    def matches(self, password_hash: str | None, password: str) -> bool:
        """Tell whether a password is the one of this hash; for None it never is, and that takes as long.

        Raises:
            Unavailable: the machine lacks the memory.
        """
        try:
            with self._one_at_a_time:
                self._hasher.verify(password_hash or self._nobodys, _bytes(password))
        except VerifyMismatchError:
            return False
        except VerificationError as error:
            raise _no_memory(error) from error
        return password_hash is not None


def _bytes(password: str) -> bytes:
    """Return a password's bytes; letters with marks are the same however the keyboard composes them."""
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _no_memory(error: Exception) -> Unavailable:
    return Unavailable(f"the password could not be checked ({error}); try again, or give the server more memory")
