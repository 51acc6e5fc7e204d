"""What the server passes on between gateways of different machines: what they use of limits that hold for all together,
and what they have counted of versions, if one of them asks.

What a gateway uses goes to one gateway of every other machine: to the connected one with the lowest number, which tells
the rest of its machine. Example, of gateways 0 and 1 on one machine, 2 and 3 on another:

    1 uses something        2 hears of it
    2 is gone               3 hears all that 0 and 1 use; 0 hears that 2 uses nothing
    2 is back               2 hears all that 0 and 1 use

Nothing waits here for a gateway but the newest of what every other one uses, however slowly it reads. A gateway speaks
for itself: by its name, which it has proved, and not by what it says. Knows no sockets. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from pliant.api.serving_link import MAX_ROWS
from pliant.core.job import JobId
from pliant.core.serving import (
    AskTotals,
    CountedTimes,
    GatewayHello,
    SharedRow,
    SharedUse,
    TotalsElsewhere,
    TotalsSaid,
    TotalsWanted,
    UseElsewhere,
)

ANSWER_S: Final = 0.5
"""So long gateways may take to say what they have counted."""
_MAX_KEYS: Final = 1 << 15
"""That one gateway uses something of; what is beyond them is not passed on."""
_MAX_QUESTIONS: Final = 16
"""Under way at once, of one gateway; it asks fewer."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Unsaid:
    """What a gateway has not been told yet of another one."""

    is_whole: bool = False
    rows: dict[str, SharedRow] = field(default_factory=dict)


@dataclass(slots=True)
class _Known:
    """A gateway that is connected."""

    number: int
    machine: str
    wake: Callable[[], None]
    uses: dict[str, int] = field(default_factory=dict)
    """By the limit's key: what is under way, but zeros."""
    unsaid: dict[int, _Unsaid] = field(default_factory=dict)
    """By the number of the gateway that it is about."""


@dataclass(slots=True)
class _Question:
    """What a gateway wants to know."""

    waits_for: set[str]
    is_answered: asyncio.Event = field(default_factory=asyncio.Event)
    totals: list[dict[JobId, CountedTimes]] = field(default_factory=list)


class GatewayRelay:
    """Passes it on."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._hearers: dict[str, str] = {}
        """By machine: the name of the gateway that hears for it."""
        self._numbers = count(1)
        self._questions: dict[int, _Question] = {}
        self._num_asked: dict[str, int] = {}

    def join(self, name: str, hello: GatewayHello, wake: Callable[[], None]) -> None:
        """Take a gateway in that has connected, in the place of its connection before.

        Args:
            name: that it has proved.
            hello: its first message, with the number and the machine that go with the name.
            wake: called when something waits for it; see `take_next`.
        """
        self.leave(name)
        self._known[name] = _Known(number=hello.number, machine=hello.machine, wake=wake)
        self._choose(hello.machine)

    def leave(self, name: str) -> None:
        """Forget a gateway that is gone."""
        gone = self._known.pop(name, None)
        for question in self._questions.values():
            _strike(question, name)
        if gone is None:
            return
        for hearer in self._hearers_but(gone.machine):
            hearer.unsaid[gone.number] = _Unsaid(is_whole=True)
            hearer.wake()
        self._choose(gone.machine)

    def take_use(self, name: str, said: SharedUse) -> None:
        """Take what a gateway uses."""
        if (known := self._known.get(name)) is None:
            return
        if said.is_whole:
            known.uses.clear()
        for key, row in said.rows.items():
            if row.num and (key in known.uses or len(known.uses) < _MAX_KEYS):
                known.uses[key] = row.num
            elif not row.num:
                known.uses.pop(key, None)
        for hearer in self._hearers_but(known.machine):
            _add(hearer.unsaid.setdefault(known.number, _Unsaid()), said, known)
            hearer.wake()

    def take_next(self, name: str) -> UseElsewhere | None:
        """Return what a gateway is to be told next; None if there is nothing."""
        known = self._known.get(name)
        if known is None or not known.unsaid:
            return None
        number, unsaid = next(iter(known.unsaid.items()))
        keys = list(unsaid.rows)[:MAX_ROWS]
        news = UseElsewhere(gateway=number, rows={key: unsaid.rows.pop(key) for key in keys}, is_whole=unsaid.is_whole)
        unsaid.is_whole = False
        if not unsaid.rows:
            del known.unsaid[number]
        return news

    async def ask(self, name: str, asked: AskTotals, put: Callable[[str, TotalsWanted], None]) -> TotalsElsewhere:
        """Return what the gateways of other machines have counted: those that say so in time.

        Args:
            name: of the gateway that asks.
            asked: its question.
            put: sends a question to a gateway.
        """
        nothing = TotalsElsewhere(number=asked.number, totals=())
        known, num_asked = self._known.get(name), self._num_asked.get(name, 0)
        if known is None or num_asked >= _MAX_QUESTIONS:
            return nothing
        others = {other for other, one in self._known.items() if one.machine != known.machine}
        if not others:
            return nothing
        number, question = next(self._numbers), _Question(waits_for=others)
        self._questions[number], self._num_asked[name] = question, num_asked + 1
        try:
            for other in tuple(others):
                put(other, TotalsWanted(number=number, job_ids=asked.job_ids))
            async with asyncio.timeout(ANSWER_S):
                await question.is_answered.wait()
        except TimeoutError:
            _log.warning("gateways do not say what they have counted: %s", ", ".join(sorted(question.waits_for)))
        finally:
            del self._questions[number]
            self._num_asked[name] -= 1
            if not self._num_asked[name]:
                del self._num_asked[name]
        return TotalsElsewhere(number=asked.number, totals=tuple(question.totals))

    def take_totals(self, name: str, said: TotalsSaid) -> None:
        """Take an answer; one that nobody waits for is dropped."""
        question = self._questions.get(said.number)
        if question is not None and name in question.waits_for:
            question.totals.append(dict(said.totals))
            _strike(question, name)

    def _hearers_but(self, machine: str) -> Iterator[_Known]:
        return (self._known[name] for place, name in self._hearers.items() if place != machine)

    def _choose(self, machine: str) -> None:
        """Have the first gateway of a machine hear for it; if it is another one now, it is told all."""
        here = [(one.number, name) for name, one in self._known.items() if one.machine == machine]
        before = self._hearers.pop(machine, None)
        if not here:
            return
        _, name = min(here)
        self._hearers[machine] = name
        if name == before:
            return
        if before in self._known:
            self._known[before].unsaid.clear()
        hearer = self._known[name]
        for one in self._known.values():
            if one.machine != machine:
                hearer.unsaid[one.number] = _whole(one)
        if hearer.unsaid:
            hearer.wake()


def _whole(known: _Known) -> _Unsaid:
    return _Unsaid(is_whole=True, rows={key: SharedRow(num=num) for key, num in known.uses.items()})


def _add(unsaid: _Unsaid, said: SharedUse, known: _Known) -> None:
    """Add news to those that were not said yet."""
    if said.is_whole:
        unsaid.is_whole = True
        unsaid.rows = {key: SharedRow(num=0, spent_s=row.spent_s) for key, row in unsaid.rows.items() if row.spent_s}
    for key, row in said.rows.items():
        before = unsaid.rows.get(key)
        spent_s = row.spent_s if before is None else before.spent_s + row.spent_s
        unsaid.rows[key] = SharedRow(num=known.uses.get(key, 0), spent_s=spent_s)
    if len(unsaid.rows) > _MAX_KEYS:  # it reads too slowly: it is told how things stand
        whole = _whole(known)
        unsaid.is_whole, unsaid.rows = True, whole.rows


def _strike(question: _Question, name: str) -> None:
    """Wait no longer for a gateway; the last one ends the question."""
    question.waits_for.discard(name)
    if not question.waits_for:
        question.is_answered.set()
