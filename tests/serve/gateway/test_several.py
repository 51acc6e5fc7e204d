"""Two gateways side by side, as the processes of a server are: what they count together, and what each counts alone."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from typing import Any

import pytest
from tests.serve.gateway.played import Played, endpoint, in_loop, played, version

from pliant.serve.gateway.gateway_share import GatewayShare
from pliant.serve.gateway.shared_counts import SharedCounts, SharedTable

NUM = 2


@pytest.fixture
def table() -> Iterator[SharedTable]:
    with closing(SharedTable()) as made:
        yield made


@contextlib.asynccontextmanager
async def side_by_side(table: SharedTable, **profile: Any) -> AsyncIterator[tuple[Played, ...]]:
    """Gateways that serve the same endpoint, with one clock."""
    async with AsyncExitStack() as stack:
        worlds: list[Played] = []
        for number in range(NUM):
            counts = SharedCounts(table, number, lambda: worlds[0].now[0] if worlds else 1000.0)
            share = GatewayShare(number=number, of=NUM, counts=counts)
            worlds.append(await stack.enter_async_context(played(endpoint(version(), **profile), share=share)))
        yield tuple(worlds)


@in_loop
async def test_the_queue_of_an_endpoint_is_bounded_over_all(table: SharedTable) -> None:
    async with side_by_side(table, max_queue=3) as (first, second):
        posts = [first.post(b"0"), first.post(b"1"), second.post(b"2")]
        await first.until(lambda: (first.load()[0], second.load()[0]) == (2, 1))
        for world in (first, second):
            refused = await world.post()
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert "3 requests wait for 'digits' already" in refused.json()["error"]

        first.spawn((await first.kernel()).echo())
        assert [(await post).content for post in posts[:2]] == [b"0", b"1"]
        posts += [second.post(b"3"), second.post(b"4")]
        await second.until(lambda: second.load()[0] == 3)
        assert (await second.post()).status_code == 429
        assert (await first.post()).status_code == 200, "it does not have to wait there"
        second.spawn((await second.kernel()).echo())
        assert [(await post).content for post in posts[2:]] == [b"2", b"3", b"4"]


@in_loop
async def test_the_limits_of_an_endpoint_hold_over_all(table: SharedTable) -> None:
    async with side_by_side(table, max_concurrent=1, max_rate=100.0) as (first, second):
        waiting = first.post(b"0")
        await first.until(lambda: first.load() == (1, 0))
        assert (await second.post()).status_code == 429
        first.spawn((await first.kernel()).echo())
        assert (await waiting).status_code == 200
        second.spawn((await second.kernel()).echo())
        assert (await second.post()).status_code == 200
