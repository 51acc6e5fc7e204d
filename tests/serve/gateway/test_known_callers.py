"""What a gateway remembers of tokens, over a server and a clock that tests move."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pliant.core.errors import Unauthorized, Unavailable
from pliant.core.serving import Answer, RequestLimits
from pliant.serve.gateway import known_callers
from pliant.serve.gateway.callers import CallerBook, CallerRights
from pliant.serve.gateway.known_callers import MAX_KEPT, MAX_QUESTIONS, MAX_TOKEN, STALE_S, WORTHLESS_S, KnownCallers
from pliant.serve.gateway.request_limiter import RequestLimiter, enter

VALID_S = 30.0
ADA = CallerRights(name="ada", sees_all=False, may_infer=True)


class World:
    """A server that knows the tokens that begin with `ada`, and a clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.is_there = True
        self.answers = True
        self.asked: list[str] = []
        self.revoked: set[str] = set()
        self.limits = RequestLimits()
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self, token: str) -> Answer:
        self.asked.append(token)
        is_good = token.startswith(("ada", "bob")) and token not in self.revoked
        await self.gate.wait()
        if not (self.is_there and self.answers):
            raise Unavailable("the server does not answer")
        if not is_good:
            return Answer(number=1)
        return Answer(number=1, name=token[:3], may_infer=True, limits=self.limits, valid_s=VALID_S)


def play(test: Callable[[World, KnownCallers], Awaitable[None]]) -> None:
    async def whole() -> None:
        world = World()
        await test(world, KnownCallers(world, lambda: world.now))

    asyncio.run(whole())


async def refusal(book: CallerBook, token: str) -> type[Exception]:
    with pytest.raises((Unauthorized, Unavailable)) as refused:
        await book.who(token)
    assert token not in str(refused.value) or not token
    return refused.type


def test_a_valid_token_is_asked_for_once_and_again_when_its_time_is_over() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        assert [await book.who("ada-1") for _ in range(3)] == [ADA] * 3
        world.now += VALID_S - 0.1
        assert await book.who("ada-1") == ADA
        assert world.asked == ["ada-1"]
        world.now += 0.1
        assert await book.who("ada-1") == ADA
        assert world.asked == ["ada-1"] * 2
        world.revoked.add("ada-1")
        world.now += VALID_S
        assert await refusal(book, "ada-1") is Unauthorized
        world.is_there = False
        world.now += WORTHLESS_S
        assert await refusal(book, "ada-1") is Unavailable, "what was revoked does not come back"

    play(test)


def test_a_worthless_token_is_refused_for_a_while_without_a_question() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        assert [await refusal(book, "guess") for _ in range(3)] == [Unauthorized] * 3
        world.now += WORTHLESS_S - 0.1
        assert await refusal(book, "guess") is Unauthorized
        assert world.asked == ["guess"]
        world.now += 0.1
        assert await refusal(book, "guess") is Unauthorized
        assert world.asked == ["guess"] * 2

    play(test)


@pytest.mark.parametrize("token", ["", "a" * (MAX_TOKEN + 1), "ada\n", "ada\x00", "adä", "\udcff"])
def test_what_can_be_no_token_is_not_asked_for(token: str) -> None:
    async def test(world: World, book: KnownCallers) -> None:
        assert await refusal(book, token) is Unauthorized
        assert world.asked == []

    play(test)


def test_requests_with_one_token_ask_one_question_and_who_leaves_stops_nobody() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        world.gate.clear()
        asking = [asyncio.create_task(book.who("ada-1")) for _ in range(5)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking[0].cancel()
        await asyncio.sleep(0)
        world.gate.set()
        assert await asyncio.gather(*asking[1:]) == [ADA] * 4
        assert world.asked == ["ada-1"]

    play(test)


def test_while_the_server_is_away_the_known_go_on_for_ten_minutes_and_the_unknown_are_put_off() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        await book.who("ada-1")
        world.is_there = False
        world.now += VALID_S + STALE_S - 0.1
        assert await book.who("ada-1") == ADA
        assert world.asked == ["ada-1"], "nobody waits for a server that is away"
        assert await refusal(book, "ada-2") is Unavailable
        world.now += 0.1
        assert await refusal(book, "ada-1") is Unavailable
        world.is_there = True
        assert await book.who("ada-1") == ADA
        assert await book.who("ada-2") == ADA

    play(test)


def test_a_server_that_is_there_and_does_not_answer_is_asked_every_few_seconds_only() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        await book.who("ada-1")
        world.answers = False
        world.now += VALID_S
        assert [await book.who("ada-1") for _ in range(5)] == [ADA] * 5
        assert world.asked == ["ada-1"] * 2
        world.now += STALE_S
        assert await refusal(book, "ada-1") is Unavailable

    play(test)


def test_so_many_questions_are_asked_at_once_and_no_more() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        world.gate.clear()
        asking = [asyncio.create_task(book.who(f"ada-{number}")) for number in range(MAX_QUESTIONS)]
        await asyncio.sleep(0)
        assert await refusal(book, "ada-more") is Unavailable
        world.gate.set()
        assert await asyncio.gather(*asking) == [ADA] * MAX_QUESTIONS
        assert await book.who("ada-more") == ADA

    play(test)


def test_strangers_who_try_many_tokens_take_a_bounded_room_and_push_out_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_callers, "MAX_KEPT", 10)

    async def test(world: World, book: KnownCallers) -> None:
        await book.who("ada-1")
        for number in range(50):
            await refusal(book, f"guess-{number}")
        assert len(book) == 11
        await book.who("ada-1")
        assert world.asked.count("ada-1") == 1
        for number in range(2, 12):
            await book.who("ada-1")
            await book.who(f"ada-{number}")
        assert len(book) == 20
        assert world.asked.count("ada-1") == 1, "who was used last stays"

    assert MAX_KEPT == 10_000
    play(test)


def test_what_is_forgotten_is_asked_for_again_and_does_not_come_back_while_the_server_is_away() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        for token in ("ada-1", "ada-2", "bob-1"):
            await book.who(token)
        world.revoked.add("ada-1")
        book.forget("ada")
        assert await refusal(book, "ada-1") is Unauthorized
        assert await book.who("ada-2") == ADA
        await book.who("bob-1")
        assert world.asked == ["ada-1", "ada-2", "bob-1", "ada-1", "ada-2"], "bob's tokens are as they were"
        book.forget("ada")
        world.is_there = False
        assert await refusal(book, "ada-2") is Unavailable
        assert (await book.who("bob-1")).name == "bob"

    play(test)


def test_an_answer_from_before_a_change_is_not_kept_and_nobody_waits_for_it_who_comes_later() -> None:
    async def test(world: World, book: KnownCallers) -> None:
        world.gate.clear()
        before = asyncio.create_task(book.who("ada-1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        world.revoked.add("ada-1")
        book.forget("ada")
        later = asyncio.create_task(book.who("ada-1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        world.gate.set()
        assert await before == ADA
        with pytest.raises(Unauthorized):
            await later
        assert await refusal(book, "ada-1") is Unauthorized

    play(test)


def test_when_the_server_is_back_every_token_is_asked_for_again_and_goes_on_if_too_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_callers, "MAX_QUESTIONS", 1)

    async def test(world: World, book: KnownCallers) -> None:
        for token in ("ada-1", "ada-2"):
            await book.who(token)
        book.doubt()
        world.gate.clear()
        asking = asyncio.create_task(book.who("ada-1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await book.who("ada-2") == ADA, "the server has enough to do; what was known holds for a while"
        assert await refusal(book, "ada-3") is Unavailable
        world.gate.set()
        assert await asking == ADA
        assert world.asked == ["ada-1", "ada-2", "ada-1"]
        world.now += VALID_S
        world.revoked.add("ada-2")
        assert await refusal(book, "ada-2") is Unauthorized

    play(test)


def test_what_a_token_has_used_of_its_limits_outlives_what_is_known_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_callers, "MAX_KEPT", 2)

    async def limiter(book: KnownCallers, token: str) -> RequestLimiter:
        found = (await book.who(token)).limiter
        assert found is not None
        return found

    async def test(world: World, book: KnownCallers) -> None:
        world.limits = RequestLimits(max_rate=2.0, max_concurrent=2)
        first = await limiter(book, "ada-1")
        enter(first)
        world.now += VALID_S
        assert await limiter(book, "ada-1") is first, "asked for again"
        for number in range(2, 5):
            await limiter(book, f"ada-{number}")
        assert await limiter(book, "ada-1") is first, "pushed out while a request is under way"
        book.forget("ada")
        assert await limiter(book, "ada-1") is first, "forgotten"
        first.leave()
        for number in range(2, 5):
            await limiter(book, f"ada-{number}")
        assert await limiter(book, "ada-1") is not first, "whole again: a new one does the same"
        world.limits = RequestLimits()
        world.now += VALID_S
        assert (await book.who("ada-1")).limiter is None

    play(test)
