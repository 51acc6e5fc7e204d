"""What the gateways of one machine and those of others tell each other about limits that hold for all of them.

Every process says by its link to the server what it counts and spends; the server passes it on to one process of every
other machine, which writes it into the columns of `pliant.serve.gateway.shared_counts`, where all of the machine read
it. Example, of two machines with two gateways each, for a token that may have 4 requests under way:

    key            due        0  1  2  3
    token 5f3a…    81.250     2  0  1  0      on the first machine; 2 and 3 are on the second, of which it has heard

Checks are made on the machine, and news are a tenth of a second old, and what they take on their way. So M machines may
let in more than one would: in any time t no more than r*t + M*max(1, r) requests and what comes in that delay, since
each has a bucket of its own, but all that is taken from one is soon taken from every other; and so many requests at
once as M times the limit, at worst, for a fraction of a second.

A machine without the server for `LOST_S` forgets what others use, and holds to the limits alone until it is back. If
it is back and says nothing of a gateway for as long, that one is forgotten, too.
Clocks of machines differ: seconds that are spent travel, and no times do. What was spent while nobody could be told is
not told later. Knows no sockets. Belongs to one event loop.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from pliant.api.serving_link import MAX_ROWS, MAX_USE
from pliant.core.serving import SharedRow, SharedUse, UseElsewhere
from pliant.serve.gateway.shared_counts import SharedCounts
from pliant.serve.protocol.frames import MAX_GATEWAYS

LOST_S: Final = 5.0
_log = logging.getLogger(__name__)


class UseNews:
    """News of a gateway for those of other machines, and theirs for it.

    Args:
        counts: what the gateways of this machine count.
        num_here: how many they are.
    """

    def __init__(self, counts: SharedCounts, num_here: int) -> None:
        self._counts = counts
        first = counts.number // num_here * num_here
        self._here = range(first, first + num_here)
        self._said: dict[bytes, int] = {}
        """The numbers that others know, but zeros."""
        self._announced: set[int] = set()
        """Gateways of which it knows all, by this connection."""

    def begin(self) -> list[SharedUse]:
        """Return all that this gateway uses, for whoever knows nothing of it; from now on it keeps news."""
        self._counts.noted, self._announced = {}, set()
        self._said = dict(self._counts.numbers_of(self._counts.number))
        return list(_messages({key: _row(num, 0.0) for key, num in self._said.items()}, is_whole=True))

    def end(self) -> None:
        """Keep no more news: nobody can be told."""
        self._counts.noted, self._announced = None, set()

    def take_news(self) -> list[SharedUse]:
        """Return what has changed since the last call, or since `begin`; nothing if nothing has."""
        noted = self._counts.noted
        if not noted:
            return []
        self._counts.noted = {}
        rows: dict[bytes, SharedRow] = {}
        for key, spent_s in noted.items():
            num = self._counts.own_of(key)
            if num != self._said.get(key, 0) or spent_s:
                rows[key] = _row(num, spent_s)
            if num:
                self._said[key] = num
            else:
                self._said.pop(key, None)
        return list(_messages(rows, is_whole=False)) if rows else []

    def hear(self, news: UseElsewhere) -> None:
        """Count what a gateway of another machine uses; who says so for one of this machine is not believed."""
        if news.gateway in self._here or not 0 <= news.gateway < MAX_GATEWAYS:
            _log.warning("the server says what gateway %d uses, which is on no other machine", news.gateway)
            return
        hearer = self._counts.hearer
        if news.is_whole:
            self._counts.hearer = self._counts.number
        elif hearer is not None and hearer < self._counts.number:
            return  # it was on its way when the other one took over, and may be older than what that has heard
        rows = {bytes.fromhex(key): row for key, row in news.rows.items()}
        if news.is_whole:
            self._announced.add(news.gateway)
            self._counts.forget(news.gateway, but=rows)
        for key, row in rows.items():
            self._counts.put(news.gateway, key, row.num, row.spent_s)

    def forget(self) -> None:
        """Count nothing of gateways of other machines that nobody speaks of since `begin`, or of any after `end`; if
        another process of this machine has heard of them last, it is for that one to do.
        """
        if self._counts.hearer != self._counts.number:
            return
        if not self._announced:
            self._counts.hearer = None
        for number in range(MAX_GATEWAYS):
            if number not in self._here and number not in self._announced:
                self._counts.forget(number)


def _row(num: int, spent_s: float) -> SharedRow:
    return SharedRow(num=max(0, min(num, MAX_USE)), spent_s=min(spent_s, MAX_USE))


def _messages(rows: Mapping[bytes, SharedRow], *, is_whole: bool) -> Iterator[SharedUse]:
    """Yield messages that are short enough; one if there is nothing to say."""
    named = [(key.hex(), row) for key, row in rows.items()]
    for at in range(0, len(named) or 1, MAX_ROWS):
        yield SharedUse(rows=dict(named[at : at + MAX_ROWS]), is_whole=is_whole and not at)
