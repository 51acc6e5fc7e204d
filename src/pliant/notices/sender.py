"""Sends what is kept when its job is over, in a thread and an event loop of its own. Nobody waits for it.

At least once: a notice is kept before its job is, every try is written down before it is made, and a notice is removed
after it was taken. So a server that is killed in between sends again, with the same id. A server that does not lead any
more cannot write a try down, so it sends nothing. In numbers, for a receiver that is down for a minute:

    0 s     the job is over; try 1 is written, made, and fails
    10 s    try 2 fails; 30 s later try 3 fails; 90 s later try 4 is taken: the notice is removed, an event says so

Events name a webhook by its scheme and host, and an e-mail not at all: others may see the job.
"""

import asyncio
import heapq
import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pliant.core.errors import NotFound, PliantError
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JOB_LIFECYCLE, JobState, is_final
from pliant.core.notice import Channel, Notice, notice_name, read_webhook
from pliant.core.ports import Clock, EventFilter, Store, Writes
from pliant.core.registry import iterate_nouns
from pliant.notices.limits import HourlyLimits
from pliant.notices.mail import Mailer
from pliant.notices.message import Writer, words_of
from pliant.notices.outcome import TryOutcome, delay_s
from pliant.notices.webhook import Webhooks

log = logging.getLogger(__name__)

_MAX_IN_FLIGHT: Final = 8
_MAX_OF_ONE_OWNER: Final = 2
_LOOK_S: Final = 1.0
_IDLE_S: Final = 30.0
_PAGE: Final = 1000
_CHANNELS: Final[tuple[Channel, ...]] = ("webhook", "mail")
_NO_MAIL: Final = TryOutcome(words="cannot be sent: this server sends no e-mail any more", max_tries=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How messages leave; made inside the event loop that they leave from."""

    webhooks: Webhooks
    mailer: Mailer | None


class NoticeSender:
    """Sends notices from `start` to `close`."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        writer: Writer,
        ways: Callable[[], Ways],
        notify: Callable[[], None] = lambda: None,
        limits: HourlyLimits | None = None,
    ) -> None:
        """Take what it needs.

        Args:
            store: where notices, jobs and events are.
            clock: what the time is.
            writer: writes the messages.
            ways: makes what they leave by.
            notify: called after events were stored.
            limits: how many messages a person's jobs may send.
        """
        self._store = store
        self._clock = clock
        self._writer = writer
        self._make_ways = ways
        self._notify = notify
        self._limits = limits or HourlyLimits()
        self._due: list[tuple[float, str]] = []
        """When to try which notice next, of jobs that are over."""
        self._waiting: dict[str, Notice] = {}
        self._in_flight: dict[str, str] = {}
        """Owners of the notices that are being sent, by name."""
        self._seen = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="pliant-notices", daemon=True)

    def load(self) -> None:
        """Take up what an earlier server left; called before anybody can submit.

        Raises:
            PliantError: the store does not answer.
        """
        self._seen = self._store.last_seq()
        for kept in list(iterate_nouns(self._store.registry, Notice)):
            job = self._store.job(kept.noun.job_id)
            if job is None:
                self._forget(kept.noun)  # the server was killed before it had kept the job
            elif job.ended:
                self._take(kept.noun, job.state)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def wake(self) -> None:
        """Look for jobs that are over; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._woken.set)
            except RuntimeError:  # it was closed between the two lines
                return

    def close(self, timeout_s: float = 2.0) -> None:
        """End; what is being sent is sent again by the next server."""
        self._closed = True
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        ways = self._make_ways()
        tasks: set[asyncio.Task[None]] = set()
        while not self._closed:
            self._woken.clear()
            try:
                self._look()
                for name in self._startable():
                    task = asyncio.create_task(self._attend(self._waiting[name], ways))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            except Exception:  # the top of the loop: the next look may find a store that answers
                log.exception("messages of jobs that are over could not be looked for; it is tried again")
                await asyncio.sleep(_LOOK_S)
            try:
                async with asyncio.timeout(_LOOK_S if self._due else _IDLE_S):
                    await self._woken.wait()
            except TimeoutError:
                continue

    def _look(self) -> None:
        """Take in the notices of jobs that have ended since the last look."""
        while True:
            which = EventFilter(after=self._seen, kinds=(EventKind.JOB_STATE,), limit=_PAGE)
            found = self._store.events(which)
            for event in found:
                state = JobState(str(event.data["to"]))
                if event.job_id is not None and is_final(JOB_LIFECYCLE, state):
                    self._take_of(event.job_id, state)
                self._seen = event.seq
            if len(found) < _PAGE:
                return

    def _take_of(self, job_id: JobId, state: JobState) -> None:
        for channel in _CHANNELS:
            if (kept := self._store.registry.get(Notice, notice_name(job_id, channel))) is not None:
                self._take(kept.noun, state)

    def _take(self, notice: Notice, state: JobState) -> None:
        if notice.on == "failure" and state is not JobState.FAILED:
            self._forget(notice)
            return
        if notice.name not in self._waiting:
            self._waiting[notice.name] = notice
            heapq.heappush(self._due, (notice.next_at, notice.name))

    def _startable(self) -> list[str]:
        """Return which notices are tried now: in order, few of one person at a time."""
        now, chosen, left = self._clock.now(), [], []
        busy = Counter(self._in_flight.values())
        while self._due and self._due[0][0] <= now and busy.total() < _MAX_IN_FLIGHT:
            at, name = heapq.heappop(self._due)
            owner = self._waiting[name].owner
            if busy[owner] >= _MAX_OF_ONE_OWNER:
                left.append((at, name))
                continue
            busy[owner] += 1
            self._in_flight[name] = owner
            chosen.append(name)
        for one in left:
            heapq.heappush(self._due, one)
        return chosen

    async def _attend(self, notice: Notice, ways: Ways) -> None:
        """Try to send one notice, and write down what became of it."""
        try:
            await self._try(notice, ways)
        except NotFound:
            self._waiting.pop(notice.name, None)  # somebody else has removed it
        except PliantError:
            log.exception("the message about %s could not be written down; it is tried again", notice.job_id)
            heapq.heappush(self._due, (self._clock.now() + delay_s(1), notice.name))
        except Exception:  # the top of what is sent: one message is to harm no other
            log.exception("the message about %s could not be made", notice.job_id)
            with suppress(PliantError):
                self._give_up(notice, "could not be made; the server's log says why")
        finally:
            self._in_flight.pop(notice.name, None)
            self._woken.set()

    async def _try(self, notice: Notice, ways: Ways) -> None:
        job = self._store.job(notice.job_id)
        if job is None:
            self._forget(notice)
            return
        if notice.num_tries == 0 and not self._limits.take(notice.owner, notice.channel, self._clock.now()):
            number = self._limits.per_hour[notice.channel]
            self._give_up(notice, f"was not sent: {notice.owner}'s jobs have sent {number} in the last hour")
            return
        number = notice.num_tries + 1
        notice = replace(notice, num_tries=number, next_at=self._clock.now() + delay_s(number))
        self._store.registry.replace(notice, at=self._clock.now())
        self._waiting[notice.name] = notice
        outcome = await self._send(notice, job, ways)
        if outcome.sent:
            self._forget(notice)
            self._say(notice, EventKind.JOB_NOTIFIED, f"{_name(notice)} says that {job.id} {words_of(job)}")
        elif number >= outcome.max_tries:
            tries = f"; given up after {number} tries" if number > 1 else ""
            self._give_up(notice, f"{outcome.words}{tries}")
        else:
            heapq.heappush(self._due, (notice.next_at, notice.name))

    async def _send(self, notice: Notice, job: Job, ways: Ways) -> TryOutcome:
        if notice.channel == "webhook":
            return await ways.webhooks.send(notice, self._writer.document(job, notice))
        if ways.mailer is None:
            return _NO_MAIL
        if why := ways.mailer.settings.refusal(notice.to):
            return TryOutcome(words=f"was not sent: {why}", max_tries=0)
        outcome = await ways.mailer.send(self._writer.mail(job, notice, ways.mailer.settings.sender))
        return outcome if outcome.sent else replace(outcome, words=f"was not sent: the mail server {outcome.words}")

    def _give_up(self, notice: Notice, words: str) -> None:
        self._forget(notice)
        self._say(notice, EventKind.WARNING, f"{_name(notice)} {words}")

    def _forget(self, notice: Notice) -> None:
        self._waiting.pop(notice.name, None)
        self._store.registry.remove(Notice, notice.name)

    def _say(self, notice: Notice, kind: EventKind, message: str) -> None:
        data = {"channel": notice.channel, "delivery": notice.id}
        event = Event(at=self._clock.now(), kind=kind, message=message, job_id=notice.job_id, data=data)
        self._store.write(Writes(events=(event,)))
        self._notify()


def _name(notice: Notice) -> str:
    """Return how others may read of a notice."""
    return f"the webhook {read_webhook(notice.to).shown}" if notice.channel == "webhook" else "the e-mail"
