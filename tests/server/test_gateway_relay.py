"""What the server passes on between gateways of different machines, without sockets."""

import asyncio

import pytest

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
from pliant.serve.gateway.server_link import gateway_name
from pliant.server import gateway_relay as module
from pliant.server.gateway_relay import GatewayRelay

KEY, OTHER = "ab" * 16, "cd" * 16
JOB = JobId("job-1")
COUNTED = CountedTimes(success=(3, 0.5), fail=(0, 0.0), queue=(3, 0.1), service=(3, 0.4), idle_s=2.0)


class Relayed:
    """A relay, and which gateways it has woken."""

    def __init__(self, *numbers: tuple[int, str]) -> None:
        self.relay = GatewayRelay()
        self.woken: list[str] = []
        for number, machine in numbers:
            self.join(number, machine)

    def join(self, number: int, machine: str) -> None:
        name = gateway_name(number, machine)
        hello = GatewayHello(pid=1, http_url="", number=number, machine=machine)
        self.relay.join(name, hello, lambda: self.woken.append(name))

    def say(self, name: str, *, is_whole: bool = False, **nums: int) -> None:
        self.relay.take_use(name, SharedUse(rows=rows(**nums), is_whole=is_whole))

    def heard(self, name: str) -> list[UseElsewhere]:
        found = []
        while (one := self.relay.take_next(name)) is not None:
            found.append(one)
        return found


def rows(**nums: int) -> dict[str, SharedRow]:
    return {{"key": KEY, "other": OTHER}[name]: SharedRow(num=num) for name, num in nums.items()}


def use(gateway: int, *, is_whole: bool = False, **nums: int) -> UseElsewhere:
    return UseElsewhere(gateway=gateway, rows=rows(**nums), is_whole=is_whole)


@pytest.fixture
def two() -> Relayed:
    """Two machines with two gateways each, of which everybody has heard."""
    made = Relayed((0, ""), (1, ""), (2, "gpu3"), (3, "gpu3"))
    for name in ("local", "local-1", "gpu3-2", "gpu3-3"):
        made.heard(name)
    made.woken.clear()
    return made


def test_the_first_gateway_of_every_other_machine_hears_it(two: Relayed) -> None:
    two.join(4, "gpu4")
    two.heard("gpu4-4")
    two.woken.clear()
    two.say("gpu3-3", key=2)
    assert sorted(two.woken) == ["gpu4-4", "local"]
    assert [two.heard(name)[-1:] for name in ("local", "gpu4-4")] == [[use(3, key=2)]] * 2
    assert [two.heard(name) for name in ("local-1", "gpu3-3")] == [[], []]


def test_news_that_wait_become_one_with_the_newest_number_and_all_that_is_spent(two: Relayed) -> None:
    for num, spent_s in ((1, 0.25), (4, 0.5), (0, 0.25)):
        two.relay.take_use("gpu3-2", SharedUse(rows={KEY: SharedRow(num=num, spent_s=spent_s)}))
    two.say("gpu3-2", other=1)
    told = {KEY: SharedRow(num=0, spent_s=1.0), OTHER: SharedRow(num=1)}
    assert two.heard("local") == [UseElsewhere(gateway=2, rows=told, is_whole=False)]
    assert two.heard("local") == []


def test_another_one_that_hears_for_its_machine_is_told_all(two: Relayed) -> None:
    two.say("local", key=1)
    two.say("local-1", key=2, other=3)
    two.say("local-1", other=0)
    two.relay.leave("gpu3-2")
    assert two.heard("gpu3-3") == [use(0, is_whole=True, key=1), use(1, is_whole=True, key=2)]
    assert two.heard("local") == [use(2, is_whole=True)], "one that is gone uses nothing"
    two.join(2, "gpu3")
    two.say("local", key=5)
    assert two.heard("gpu3-3") == []
    assert two.heard("gpu3-2") == [use(0, is_whole=True, key=5), use(1, is_whole=True, key=2)]


def test_a_gateway_that_says_all_anew_uses_nothing_else(two: Relayed) -> None:
    two.say("gpu3-2", key=1)
    two.say("gpu3-2", is_whole=True, other=2)
    assert two.heard("local") == [use(2, is_whole=True, other=2)]
    two.relay.leave("local")
    assert two.heard("local-1") == [use(2, is_whole=True, other=2), use(3, is_whole=True)]


def test_much_goes_in_several_messages(two: Relayed) -> None:
    num = 2 * MAX_ROWS + 1
    for at in range(num):
        two.relay.take_use("local", SharedUse(rows={f"{at:032x}": SharedRow(num=1)}))
    two.relay.leave("gpu3-2")
    told = [one for one in two.heard("gpu3-3") if one.gateway == 0]
    assert [(len(one.rows), one.is_whole) for one in told] == [(MAX_ROWS, True), (MAX_ROWS, False), (1, False)]


def test_what_waits_for_one_that_does_not_read_is_bounded(two: Relayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_KEYS", 10)
    for at in range(100):
        two.relay.take_use("gpu3-2", SharedUse(rows={f"{at:032x}": SharedRow(num=at % 3, spent_s=1.0)}))
    (told,) = two.heard("local")
    assert told.is_whole
    assert 10 <= len(told.rows) <= 20
    assert all(told.rows[f"{at:032x}"].num == at % 3 for at in (1, 2, 4, 5))


def test_gateways_of_other_machines_are_asked_what_they_have_counted(two: Relayed) -> None:
    async def play() -> None:
        asked: dict[str, TotalsWanted] = {}
        answer = asyncio.create_task(two.relay.ask("local", AskTotals(number=9, job_ids=(JOB,)), asked.__setitem__))
        while len(asked) < 2:
            await asyncio.sleep(0)
        assert {name: wanted.job_ids for name, wanted in asked.items()} == {"gpu3-2": (JOB,), "gpu3-3": (JOB,)}
        said = TotalsSaid(number=asked["gpu3-2"].number, totals={JOB: COUNTED})
        for name in ("local-1", "gpu3-2", "gpu3-2"):
            two.relay.take_totals(name, said)
        two.relay.take_totals("gpu3-3", TotalsSaid(number=said.number + 1, totals={}))
        two.relay.leave("gpu3-3")  # it will not answer any more
        assert await answer == TotalsElsewhere(number=9, totals=({JOB: COUNTED},))

    asyncio.run(play())


def test_who_does_not_answer_is_left_out_and_where_nobody_is_nothing_is_waited_for(
    two: Relayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    asked = AskTotals(number=9, job_ids=(JOB,))
    nothing = TotalsElsewhere(number=9, totals=())
    questions: list[str] = []

    async def play() -> None:
        assert await two.relay.ask("local", asked, lambda name, _wanted: questions.append(name)) == nothing
        assert sorted(questions) == ["gpu3-2", "gpu3-3"]
        monkeypatch.setattr(module, "ANSWER_S", 1000.0)
        for name in ("gpu3-2", "gpu3-3"):
            two.relay.leave(name)
        assert await two.relay.ask("local", asked, lambda _name, _wanted: None) == nothing
        assert await two.relay.ask("unknown", asked, lambda _name, _wanted: None) == nothing

    asyncio.run(play())


def test_questions_of_one_gateway_are_bounded(two: Relayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_QUESTIONS", 2)
    wanted: list[TotalsWanted] = []

    async def play() -> None:
        asking = [
            asyncio.create_task(
                two.relay.ask("local", AskTotals(number=at, job_ids=(JOB,)), lambda _name, one: wanted.append(one))
            )
            for at in range(2)
        ]
        while len(wanted) < 4:
            await asyncio.sleep(0)
        late = await two.relay.ask("local", AskTotals(number=7, job_ids=()), lambda _name, one: wanted.append(one))
        assert (late, len(wanted)) == (TotalsElsewhere(number=7, totals=()), 4)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        monkeypatch.setattr(module, "ANSWER_S", 0.0)
        await two.relay.ask("local", AskTotals(number=8, job_ids=()), lambda _name, one: wanted.append(one))
        assert len(wanted) == 6

    asyncio.run(play())
