"""Takes in what has happened: messages, exits, silence, in the order in which it came.

Each item is a decision, written in a transaction of its own, but for two kinds of which there may be thousands at once:
messages that only people read, and exits. Of exits as many are judged in one transaction as can be. The draft settles
after each (`Draft.settle`), so the next one finds what it would find if the one before had been written by itself; and
one that ends a job is the last of its transaction, since others may wait for that job. Example: a job of 100 processes
is stopped, and they end within the same second. That is two transactions, where it was a hundred.

Used by the loop alone, under the ledger's lock. What cannot be written waits in the inbox, in its order.
"""

import logging
from collections.abc import Sequence
from typing import Final, assert_never

from pliant.control.jobs.deferred import DeferredExits
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.exits import fence, receive, take_exit, take_note, take_unsent
from pliant.control.jobs.inbox import ControlInbox, Disconnected, Item, LeaseEnded, Received, Stalled
from pliant.control.jobs.leases import Leases
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import job_of
from pliant.control.loop.deadlines import postpone
from pliant.control.settings import Timeouts
from pliant.core.job import TaskId
from pliant.core.link import Hello
from pliant.core.ports import Clock, Cluster, Links, TaskExit, TaskNote

log = logging.getLogger(__name__)

MAX_NEWS: Final = 50
"""So many messages that only people read are written in one transaction."""
MAX_EXITS: Final = 50
"""So many exits are judged in one transaction."""


class Intake:
    """The items of the inbox, and what each is taken for."""

    def __init__(
        self,
        ledger: Ledger,
        inbox: ControlInbox,
        leases: Leases,
        cluster: Cluster,
        links: Links,
        clock: Clock,
        timeouts: Timeouts,
    ) -> None:
        self.deferred = DeferredExits()
        self.num_left = 0
        """Of the items that were counted, so many are still to be taken in."""
        self._ledger = ledger
        self._kinds = ledger.kinds
        self._inbox = inbox
        self._leases = leases
        self._cluster = cluster
        self._links = links
        self._clock = clock
        self._timeouts = timeouts
        self._disconnected: set[TaskId] = set()

    def count(self) -> None:
        """Count what there is now: what comes in later is not taken in before it is counted itself."""
        self.num_left = len(self._inbox)

    def take(self, until: float) -> None:
        """Take in what was counted, at least something of it, and no more after this instant."""
        try:
            while self.num_left > 0:
                self.num_left -= self._take_some(self.num_left)
                if self._clock.now() >= until:
                    return
        except BaseException:
            self.num_left = 0  # it is counted anew: some of it was put back
            raise

    def take_exit(self, ended: TaskExit) -> None:
        """Judge the exit of one process, and first take in what it has left behind."""
        self.deferred.take(ended.task_id)
        draft, job_id = self._ledger.draft(), job_of(ended.task_id)
        try:
            take_unsent(draft, self._kinds, job_id, ended)
        except Exception:
            log.exception("what %s left for the server cannot be dealt with; its exit is", ended.task_id)
            draft = self._ledger.draft()
        take_exit(draft, self._kinds, job_id, ended)
        self._commit_for(draft, ended)
        self._forget(ended)

    def _take_some(self, most: int) -> int:
        """Take in one item, or several that can be taken together; return how many."""
        if news := self._inbox.take_news(min(most, MAX_NEWS)):
            self._receive(*news)
            return len(news)
        if exits := self._inbox.take_exits(min(most, MAX_EXITS)):
            self._take_exits(exits)
            return len(exits)
        self._take(self._inbox.take())
        return 1

    def _take(self, item: Item) -> None:
        match item:
            case Received():
                self._receive(item)
            case Disconnected():
                if (live := self._ledger.get(job_of(item.task_id))) is not None and item.task_id in live.tasks:
                    self._disconnected.add(item.task_id)
                if (ended := self.deferred.take(item.task_id)) is not None:
                    self.take_exit(ended)
            case LeaseEnded():
                self._fence(item)
            case Stalled():
                self._postpone(item)
            case TaskExit():
                if not self._defer(self._ledger.draft(), item):
                    self.take_exit(item)
            case TaskNote():
                take_note(draft := self._ledger.draft(), item)
                self._commit_for(draft, item)
            case _:
                assert_never(item)

    def _receive(self, *items: Received) -> None:
        draft = self._ledger.draft()
        for number, item in enumerate(items):
            if isinstance(item.message, Hello):
                self._disconnected.discard(item.task_id)
            try:
                receive(draft, self._kinds, item)
            except BaseException:
                self._inbox.put_back(*items[:number], *items[number + 1 :])
                raise
        self._commit_for(draft, *items)
        for item in items:
            if item.stored is not None:
                item.stored()

    def _take_exits(self, exits: Sequence[TaskExit]) -> None:
        """Judge exits that have left no messages behind, or let them wait a moment."""
        waiting = list(reversed(exits))
        while waiting:
            draft = self._ledger.draft()
            judged: list[TaskExit] = []
            try:
                self._judge(draft, waiting, judged)
                self._ledger.commit(draft)
            except BaseException:
                self._inbox.put_back(*judged, *reversed(waiting))
                raise
            for ended in judged:
                self._forget(ended)

    def _judge(self, draft: Draft, waiting: list[TaskExit], judged: list[TaskExit]) -> None:
        """Judge exits until one ends its job; the next one is the last of those that wait."""
        while waiting:
            ended = waiting.pop()
            if self._defer(draft, ended):
                continue
            self.deferred.take(ended.task_id)
            job_id = job_of(ended.task_id)
            take_exit(draft, self._kinds, job_id, ended)
            judged.append(ended)
            live = draft.settle(job_id)
            if live is not None and live.job.ended and not live.tasks:
                return

    def _defer(self, draft: Draft, ended: TaskExit) -> bool:
        """Let an exit wait a moment if a program that ended by itself may still say why; tell whether it does."""
        by_itself = not ended.error and ended.exit_code is not None and ended.exit_code >= 0
        if not (by_itself and self._may_say_why(draft, ended.task_id)):
            return False
        self.deferred.defer(ended, self._clock.now() + self._timeouts.messages_s)
        return True

    def _may_say_why(self, draft: Draft, task_id: TaskId) -> bool:
        live = draft.job(job_of(task_id))
        if live is None or live.over or task_id in self._disconnected:
            return False
        return self._kinds.of(live.job).speaks

    def _forget(self, ended: TaskExit) -> None:
        """Let go of a process whose exit is written."""
        self._cluster.acknowledge(ended.task_id)
        self._disconnected.discard(ended.task_id)
        self._leases.drop(ended.task_id)
        self._links.close(ended.task_id)

    def _fence(self, item: LeaseEnded) -> None:
        if (doubt_s := self._ledger.doubt_s(job_of(item.task_id), item.task_id)) is not None:
            self._leases.wait_again(item.task_id, doubt_s)
        if self._leases.has_lease(item.task_id):
            return  # it spoke after all, or may live where nobody hears it
        how = f"gave no sign of life for {self._leases.lease_s:.1f} s"
        fence(draft := self._ledger.draft(), self._kinds, job_of(item.task_id), item.task_id, how)
        self._commit_for(draft, item)

    def _postpone(self, item: Stalled) -> None:
        log.warning("the server stood still for %.1f s; leases and deadlines are longer by that", item.seconds)
        postpone(draft := self._ledger.draft(), item.seconds)
        self._commit_for(draft, item)
        self.deferred.postpone(item.seconds)

    def _commit_for(self, draft: Draft, *items: Item) -> None:
        """Commit a decision; if it cannot be written, what led to it waits in the inbox."""
        try:
            self._ledger.commit(draft)
        except BaseException:
            self._inbox.put_back(*items)
            raise
