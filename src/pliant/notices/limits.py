"""How many messages a person's jobs may send in an hour: nobody's mailbox is to be flooded from here."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from pliant.core.notice import Channel

HOUR_S: Final = 3600.0
PER_HOUR: Final[Mapping[Channel, int]] = {"webhook": 100, "mail": 20}


class HourlyLimits:
    """Counts what was sent in the last hour. A restart forgets."""

    def __init__(self, per_hour: Mapping[Channel, int] = PER_HOUR) -> None:
        self.per_hour = per_hour
        self._sent: dict[tuple[str, Channel], deque[float]] = {}

    def take(self, owner: str, channel: Channel, now: float) -> bool:
        """Count a message; tell whether it may be sent."""
        sent = self._sent.setdefault((owner, channel), deque())
        while sent and sent[0] <= now - HOUR_S:
            sent.popleft()
        if len(sent) >= self.per_hour[channel]:
            return False
        sent.append(now)
        return True
