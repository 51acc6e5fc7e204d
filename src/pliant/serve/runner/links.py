"""The gateways of a server, as a kernel is connected to them (`GatewayLinks`): which there are, and which are away.

Gateways have numbers from 0 on, and a socket each. A kernel finds out how many there are by trying one after the other
until a name does not exist; the first that welcomes it says the number, and from then on that counts. Example: gateway
1 of two restarts

    0 connected   1 connected                       nothing to do, and no timer
    0 connected   1 lost                            tried after 0.02 s, 0.04 s … 1 s
    0 connected   1 there, has not said WELCOME     nothing to do: it says so, or closes
    0 connected   1 connected

Nothing here waits, so a gateway that is away, or is there and does nothing, holds nobody up. Only while several are
connected, one that reads nothing is lost after `HELD_UP_S`: what is sent to it would hold up the others.

Law: a number is connected, or away and tried again, or forgotten. 0 is never forgotten.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, Final

from pliant.serve.protocol.frames import MAX_GATEWAYS
from pliant.serve.runner.backlog import BacklogTurns
from pliant.serve.runner.channel import GatewayChannel
from pliant.serve.runner.connection import GatewayConnection
from pliant.serve.runner.errors import GatewayLost, NoGateway, error_line
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.link import GatewayLink
from pliant.serve.runner.request import KernelRequest, KernelResult

HELD_UP_S: Final = 5.0
"""So long a gateway that reads nothing may hold others up."""
BEGIN_S: Final = 1.0
"""So long a kernel that begins waits for gateways of another machine: while it loads its model it hears nobody."""
FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0


class GatewayLinks:
    """The links of a kernel.

    Args:
        hello: what it shows.
        connect: returns a new connection to the gateway of a number, or raises OSError: FileNotFoundError if there is
            no such gateway.
        begin: makes a link of a number, a connection, and what is called with every WELCOME.
        leave: tells when the kernel has to go; then nothing is connected any more.
        clock: seconds, never set back.
        patience_s: so long there may be no gateway that has welcomed this kernel.
    """

    def __init__(
        self,
        hello: dict[str, Any],
        connect: Callable[[int], GatewayChannel],
        begin: Callable[[int, GatewayConnection, Callable[[GatewayLink], None]], GatewayLink],
        leave: LeaveSignal,
        clock: Callable[[], float],
        patience_s: float,
    ) -> None:
        self._hello = hello
        self._connect = connect
        self._begin = begin
        self._leave = leave
        self._clock = clock
        self._patience_s = patience_s
        self.open: tuple[GatewayLink, ...] = ()
        """In the order in which they were connected; replaced as a whole, since a signal's handler may look at it."""
        self._away: dict[int, float] = {0: -math.inf}
        """Gateways that are not connected, and when each is tried again."""
        self._pauses: dict[int, float] = {}
        """After the next failure of each; those that have welcomed the kernel are not here."""
        self._num_said: int | None = None
        self._ready: dict[str, Any] | None = None
        self._alone_since: float | None = None
        """Since when no gateway has welcomed this kernel; None while one has, or the model is loaded."""
        self._why = ""
        self._said = ""
        """The newest loss that was printed: what is tried again each second says so once."""
        self._turns = BacklogTurns()

    def begin(self) -> None:
        """Connect to those that are there; those of another machine have a moment to show who they are."""
        self._look(self._clock())
        until = self._clock() + BEGIN_S
        while any(link.is_opening for link in self.open) and (left_s := until - self._clock()) > 0:
            for link in self.wait(left_s, is_leaving=True):
                link.receive()

    def be_ready(self, header: dict[str, Any]) -> None:
        """Tell all gateways that welcome the kernel that its model is loaded, with this READY."""
        self._ready, self._alone_since = header, self._clock()
        for link in self.open:
            if link.settings is not None:
                self._take_welcome(link)

    def tick(self) -> float | None:
        """Forget what is lost and try what is due; return after how long to do so again, or None: no need.

        Raises:
            NoGateway: none has welcomed the kernel for `patience_s`.
        """
        now = self._clock()
        if len(self.open) == 1 and self.open[0].is_open and not self._away and self._alone_since is None:
            return self.open[0].rest(now)  # what is said of all below, for nearly every kernel
        for link in self.open:
            if not link.is_open:
                self._forget(link, now)
        if self._leave.is_set:
            return None
        if self._away and min(self._away.values()) <= now:
            self._look(now)
        if self._alone_since is not None:
            self._give_up_if_alone(now)
        return self._next_look(now)

    def wait(self, timeout_s: float | None, *, is_leaving: bool) -> list[GatewayLink]:
        """Return those that have something to read, when there are some; none if the time is over, or it has to go.

        Args:
            timeout_s: at most; None: for ever.
            is_leaving: who waits knows that the kernel has to go, and waits on.
        """
        if len(self.open) == 1 and (link := self.open[0]).is_open:
            return [link] if self._leave.wait((link.fileno(),), timeout_s, is_leaving=is_leaving) else []
        links = {link.fileno(): link for link in self.open if link.is_open}
        return [links[one] for one in self._leave.wait(links, timeout_s, is_leaving=is_leaving)]

    def receive(self) -> None:
        """Take in what has come by now from anybody."""
        for link in self.open if len(self.open) == 1 else self.wait(0.0, is_leaving=True):
            link.receive()

    @property
    def are_several(self) -> bool:
        """One may have to wait for another."""
        return len(self.open) > 1

    @property
    def has_waiting(self) -> bool:
        """There are requests that have not been begun."""
        for link in self.open:  # noqa: SIM110 (asked for every request; this is the quickest)
            if len(link.backlog):
                return True
        return False

    def take(self) -> tuple[KernelRequest, KernelResult | None] | None:
        """Return the oldest request of the gateway whose turn it is, as `Backlog.take` does."""
        if len(self.open) == 1:
            return self.open[0].backlog.take(self._clock())
        return self._turns.take([link.backlog for link in self.open], self._clock())

    def catch_up(self) -> None:
        """Take in what has come by now; if there are several gateways, tell those whose requests wait that it works."""
        self.receive()
        if self.are_several:
            for link in self.open:
                link.say_progress()

    def settle(self) -> None:
        """If the kernel has to go: say so to all, and hand back what has not been begun."""
        for link in self.open:
            link.settle()

    def settle_idle(self) -> None:
        """Do that from the signal's handler, as far as it has not come in the middle of a frame."""
        for link in self.open:
            link.settle_if_idle()

    def close(self) -> None:
        """Close all connections."""
        links, self.open = self.open, ()
        for link in links:
            link.connection.close()

    def _look(self, now: float) -> None:
        """Try those that are due, and look whether there are more; those after the first that is not there are none."""
        linked = {link.number for link in self.open}
        for number in range(self._num_said or MAX_GATEWAYS):
            if number in linked or self._away.get(number, now) > now:
                continue
            try:
                self._introduce(number)
            except FileNotFoundError as error:
                if number and self._num_said is None:
                    self._keep_only(number)
                    return
                self._put_off(number, error_line(error), now)
            except (OSError, GatewayLost) as error:
                self._put_off(number, error_line(error), now)

    def _introduce(self, number: int) -> None:
        connection = GatewayConnection(self._connect(number))
        try:
            connection.introduce(self._hello)
        except GatewayLost:
            connection.close()
            raise
        self._away.pop(number, None)
        self.open = (*self.open, self._begin(number, connection, self._take_welcome))
        self._bound_sending()

    def _take_welcome(self, link: GatewayLink) -> None:
        self._alone_since = None
        self._pauses.pop(link.number, None)
        if link.settings is not None and (num := link.settings.num_gateways) is not None:
            self._num_said = num
            self._keep_only(num)
            for number in range(num):
                if all(one.number != number for one in self.open):
                    self._away.setdefault(number, -math.inf)
        if self._ready is not None and not link.is_ready:
            link.say_ready(self._ready)

    def _forget(self, link: GatewayLink, now: float) -> None:
        self.open = tuple(one for one in self.open if one is not link)
        self._bound_sending()
        if self._num_said is None or link.number < self._num_said or not link.number:
            self._put_off(link.number, link.why_lost, now)
        if self._ready is not None and self._alone_since is None and all(one.settings is None for one in self.open):
            self._alone_since = now
        is_news = link.is_ready or (link.is_unproven and link.why_lost != self._said)
        if is_news and not self._leave.is_set:
            self._said = link.why_lost
            print(f"pliant: {link.why_lost}", file=sys.stderr, flush=True)

    def _put_off(self, number: int, why: str, now: float) -> None:
        pause_s = self._pauses.get(number, FIRST_PAUSE_S)
        self._pauses[number] = min(2 * pause_s, LONGEST_PAUSE_S)
        self._away[number], self._why = now + pause_s, why

    def _keep_only(self, num: int) -> None:
        """Forget those that are away and do not exist."""
        self._away = {number: due for number, due in self._away.items() if number < num}
        self._pauses = {number: pause_s for number, pause_s in self._pauses.items() if number < num}

    def _bound_sending(self) -> None:
        for link in self.open:
            if link.is_open:
                link.connection.bound_sending(HELD_UP_S if self.are_several else None)

    def _give_up_if_alone(self, now: float) -> None:
        if self._alone_since is not None and now - self._alone_since >= self._patience_s:
            is_there = any(not link.is_opening for link in self.open)
            why = "the gateway does not answer" if is_there or not self._why else self._why
            raise NoGateway(f"no gateway has taken this kernel for {self._patience_s:g} s; the last attempt: {why}")

    def _next_look(self, now: float) -> float | None:
        due = [link.rest(now) for link in self.open if link.is_open]
        if self._away:
            due.append(max(0.0, min(self._away.values()) - now))
        if self._alone_since is not None:
            due.append(max(0.0, self._alone_since + self._patience_s - now))
        return min((one for one in due if one is not None), default=None)
