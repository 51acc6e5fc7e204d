"""How much memory the connections of all kernels may take together, whatever kernels send or do not read.

What a connection holds is the beginning of a frame that is not whole, and what was written to it and not read. If all
hold too much, the largest connection of the owner whose connections hold most is cut: whoever has filled the memory
pays for it, and nobody else. Knows no frame.
"""

import logging
from collections import Counter
from typing import Final, Protocol

MAX_LINK_BYTES: Final = 2 << 30
_log = logging.getLogger(__name__)


class MeasuredLink(Protocol):
    """A connection, as far as this is concerned."""

    owner: str
    """Whose endpoint it serves."""

    @property
    def num_bytes(self) -> int:
        """What it holds now."""
        ...

    def cut(self) -> None:
        """Close it at once; it holds nothing then."""
        ...


class LinkMemory:
    """What connections hold. Belongs to one event loop.

    Args:
        max_bytes: of all together.
    """

    def __init__(self, max_bytes: int = MAX_LINK_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: dict[MeasuredLink, int] = {}
        self._sum = 0

    @property
    def num_bytes(self) -> int:
        """What all hold, as far as they have said."""
        return self._sum

    def note(self, link: MeasuredLink) -> None:
        """Take note of what a connection holds by now; it, or another one, is cut if all hold too much."""
        self._measure(link)
        if self._sum > self._max_bytes:
            self._shrink()

    def _measure(self, link: MeasuredLink) -> None:
        num = link.num_bytes
        self._sum += num - self._held.pop(link, 0)
        if num:
            self._held[link] = num

    def _shrink(self) -> None:
        for link in list(self._held):
            self._measure(link)  # what was written may have been read meanwhile
        while self._sum > self._max_bytes:
            owners = Counter[str]()
            for link, num in self._held.items():
                owners[link.owner] += num
            ((owner, _),) = owners.most_common(1)
            largest = max((link for link in self._held if link.owner == owner), key=self._held.__getitem__)
            _log.warning(
                "connections of kernels hold more than %d MiB; one of the kernels of %s, with %d MiB, is cut off",
                self._max_bytes >> 20,
                owner or "strangers",
                self._held[largest] >> 20,
            )
            largest.cut()
            self._sum -= self._held.pop(largest, 0)
