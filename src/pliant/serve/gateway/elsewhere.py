"""What a gateway says to those of other machines, and hears of them, over its link to the server.

That is what it uses of limits that hold for all (`pliant.serve.gateway.use_news`), and what it has counted of versions,
if somebody asks. Without the server, or without an answer in time, the others are left out. Knows no sockets. Belongs
to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Final

from pliant.api.serving_link import MAX_JOBS, can_be_counted
from pliant.core.job import JobId
from pliant.core.serving import (
    AskTotals,
    CountedTimes,
    SharedUse,
    TotalsElsewhere,
    TotalsSaid,
    TotalsWanted,
    UseElsewhere,
)
from pliant.serve.gateway.meter import TimeSum, VersionTotals
from pliant.serve.gateway.shared_counts import SharedCounts
from pliant.serve.gateway.use_news import LOST_S, UseNews

SAY_S: Final = 0.1
"""So often it says what it uses, if that has changed."""
ANSWER_S: Final = 1.0
"""So long the server may take for an answer; it waits for the others half as long."""
SILENT_S: Final = 1.0
"""A server that has not answered is not asked for so long."""
_AT_ONCE: Final = 4
"""Questions under way."""
_log = logging.getLogger(__name__)

FromElsewhere = UseElsewhere | TotalsWanted | TotalsElsewhere
ForElsewhere = SharedUse | AskTotals | TotalsSaid
Send = Callable[[ForElsewhere], None]
Totals = Callable[[JobId], VersionTotals | None]


class Elsewhere:
    """The gateways of other machines, as one of this machine sees them.

    Args:
        counts: what the gateways of this machine count.
        num_here: how many they are.
        clock: seconds that only grow.
    """

    def __init__(self, counts: SharedCounts, num_here: int, clock: Callable[[], float]) -> None:
        self._news = UseNews(counts, num_here)
        self._clock = clock
        self._send: Send | None = None
        self._lost_at = clock()
        self._ask_again_at = 0.0
        self._numbers = count(1)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._questions: dict[int, asyncio.Future[TotalsElsewhere]] = {}

    # for the link

    async def speak(self, send: Send, has_sent: Callable[[], bool]) -> None:
        """Say what is used, now and whenever it changes, until it is cancelled: then the server is lost.

        Args:
            send: says it to the server.
            has_sent: tells whether all is sent that was to be; else nothing is added.
        """
        self._send = send
        try:
            for whole in self._news.begin():
                send(whole)
            forgets_at: float | None = self._clock() + LOST_S
            while True:
                await asyncio.sleep(SAY_S)
                if forgets_at is not None and self._clock() > forgets_at:
                    forgets_at = None
                    self._news.forget()
                if has_sent():
                    for news in self._news.take_news():
                        send(news)
        finally:
            self._send = None
            self._lost_at = self._clock()
            self._news.end()
            for answer in self._questions.values():
                answer.cancel()

    def hear(self, message: FromElsewhere, totals: Totals) -> None:
        """Take what the server passes on.

        Args:
            message: what it says.
            totals: what this gateway has counted of a version; None: it does not know it.
        """
        match message:
            case UseElsewhere():
                self._news.hear(message)
            case TotalsElsewhere():
                answer = self._questions.get(message.number)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case TotalsWanted():
                if self._send is not None:
                    self._send(TotalsSaid(number=message.number, totals=self._say(message.job_ids, totals)))

    def look(self) -> None:
        """Forget what others use if the server has not been there for long; called again and again without it."""
        if self._send is None and self._clock() - self._lost_at > LOST_S:
            self._news.forget()

    # statistics

    async def totals_of(self, job_ids: Sequence[JobId]) -> Mapping[JobId, list[VersionTotals]]:
        """Return what the others have counted of versions: those that know them and answer."""
        found: dict[JobId, list[VersionTotals]] = {job_id: [] for job_id in job_ids}
        asked = tuple(found)
        for at in range(0, len(asked), MAX_JOBS):
            answer = await self._ask(asked[at : at + MAX_JOBS])
            if answer is None:
                break
            now = self._clock()
            for totals in answer.totals:
                for job_id, times in totals.items():
                    if job_id in found:
                        found[job_id].append(_read_times(times, now))
        return found

    async def _ask(self, job_ids: tuple[JobId, ...]) -> TotalsElsewhere | None:
        """Return what the server answers; None if it does not."""
        async with self._turns:
            loop = asyncio.get_running_loop()
            if self._send is None or loop.time() < self._ask_again_at:
                return None
            number = next(self._numbers)
            answer = self._questions[number] = loop.create_future()
            try:
                self._send(AskTotals(number=number, job_ids=job_ids))
                await asyncio.wait([answer], timeout=ANSWER_S)
            finally:
                del self._questions[number]
            if answer.done():
                return None if answer.cancelled() else answer.result()
            _log.warning("the server does not say what the gateways of other machines have counted")
            self._ask_again_at = loop.time() + SILENT_S
            return None

    def _say(self, job_ids: Sequence[JobId], totals: Totals) -> dict[JobId, CountedTimes]:
        now = self._clock()
        known = ((job_id, totals(job_id)) for job_id in job_ids)
        said = {job_id: _say_times(one, now) for job_id, one in known if one is not None}
        return {job_id: times for job_id, times in said.items() if can_be_counted(times)}


def _say_times(totals: VersionTotals, now: float) -> CountedTimes:
    return CountedTimes(
        success=_say_sum(totals.success),
        fail=_say_sum(totals.fail),
        queue=_say_sum(totals.queue),
        service=_say_sum(totals.service),
        batches={size: _say_sum(batch) for size, batch in totals.batches.items()},
        idle_s=None if totals.last_at is None else max(0.0, now - totals.last_at),
    )


def _read_times(times: CountedTimes, now: float) -> VersionTotals:
    return VersionTotals(
        success=TimeSum(*times.success),
        fail=TimeSum(*times.fail),
        queue=TimeSum(*times.queue),
        service=TimeSum(*times.service),
        batches={size: TimeSum(*batch) for size, batch in times.batches.items()},
        last_at=None if times.idle_s is None else now - times.idle_s,
    )


def _say_sum(total: TimeSum) -> tuple[int, float]:
    return total.count, max(0.0, total.seconds)
