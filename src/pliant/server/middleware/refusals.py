"""Keeps refused requests from filling the audit log: of many like each other the first are written, the rest counted.

Requests are like each other that come from the same caller and address within the same minute; log-ons also try the
same account. What is counted becomes one entry when the minute is over:

    GET /v1/jobs    401   10.0.0.1        ten of these, as they come
    1,490 more refused: GET /v1/jobs      one of these

So an administrator sees who tried, from where, how often and what last, and 1,500 requests leave eleven entries. For
who has many addresses there are bounds for all callers without a name together.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.core.address import network_of
from pliant.core.registry import AuditEntry

MINUTE_S: Final = 60.0
NUM_ANONYMOUS: Final = 10
"""Entries of one address in a minute that are written one by one."""
NUM_NAMED: Final = 60
"""The same of a caller who is known."""
NUM_ALL: Final = 30
"""Of all callers without a name together; of requests and of log-ons each."""
NUM_COUNTED: Final = 20
"""Entries that tell how many more there were from one address; all other addresses share one."""
_MAX_KEYS: Final = 1000

_Key = tuple[str, str, str | None]
"""Who asked, from which network, and for which account if it was a log-on."""


@dataclass(slots=True)
class _Refused:
    """Requests that are like each other."""

    last: AuditEntry
    num_written: int = 0
    num_more: int = 0


class RefusalCounts:
    """The refused requests of this minute. Safe to use from any thread."""

    def __init__(self, logon_action: str) -> None:
        self._logon_action = logon_action
        self._lock = threading.Lock()
        self._minute = -math.inf
        self._refused: dict[_Key, _Refused] = {}
        self._num_written = {True: 0, False: 0}
        self._others: _Refused | None = None

    def admit(self, entry: AuditEntry) -> Sequence[AuditEntry]:
        """Return what is to be written now that a request was refused: its entry, unless it is only counted."""
        with self._lock:
            counted = self._end_minute(entry.at)
            return (*counted, entry) if self._is_written(entry) else counted

    def end_minute(self, now: float) -> Sequence[AuditEntry]:
        """Return what was counted in a minute that is over by now."""
        with self._lock:
            return self._end_minute(now)

    def _is_written(self, entry: AuditEntry) -> bool:
        """Count a refusal; tell whether it gets an entry of its own."""
        is_logon = entry.action == self._logon_action
        key = (entry.who, network_of(entry.address), entry.target if is_logon else None)
        refused = self._refused.get(key)
        if refused is None and len(self._refused) >= _MAX_KEYS and not entry.who:
            refused = self._others = self._others or _Refused(last=entry)
            refused.num_written = NUM_ANONYMOUS
        elif refused is None:
            refused = self._refused[key] = _Refused(last=entry)
        refused.last = entry
        most = NUM_NAMED if entry.who else NUM_ANONYMOUS
        if refused.num_written < most and (entry.who or self._num_written[is_logon] < NUM_ALL):
            refused.num_written += 1
            self._num_written[is_logon] += not entry.who
            return True
        refused.num_more += 1
        return False

    def _end_minute(self, now: float) -> Sequence[AuditEntry]:
        minute = now // MINUTE_S
        if minute == self._minute:
            return ()
        counted = sorted(
            (refused for refused in self._refused.values() if refused.num_more), key=lambda each: -each.num_more
        )
        named = [each for each in counted if each.last.who]
        anonymous = [each for each in counted if not each.last.who]
        rest = anonymous[NUM_COUNTED:] + ([self._others] if self._others is not None else [])
        self._minute, self._refused, self._others = minute, {}, None
        self._num_written = {True: 0, False: 0}
        return (*(_more(each) for each in (*named, *anonymous[:NUM_COUNTED])), *_of_others(rest))


def _more(refused: _Refused) -> AuditEntry:
    return replace(refused.last, action=f"{refused.num_more:,} more refused: {refused.last.action}")


def _of_others(rest: Sequence[_Refused]) -> Sequence[AuditEntry]:
    """Return the entry of all other addresses together, if there are any."""
    if not rest:
        return ()
    number = sum(each.num_more for each in rest)
    last = max((each.last for each in rest), key=lambda entry: entry.at)
    return (replace(last, action=f"{number:,} more refused, from other addresses", target="", address=""),)
