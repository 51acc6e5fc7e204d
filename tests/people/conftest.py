"""People over a real registry, a clock that tests move, and hashes that take no time."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.databases import new_sqlite

from pliant.core.access import Role
from pliant.core.people import UserSettings
from pliant.core.registry import Registry
from pliant.people.passwords import Cost
from pliant.people.people import People, make_people
from pliant.sim.clock import VirtualClock
from pliant.store.sql import SqlStore

CHEAP = Cost(num_passes=1, memory_kib=8, num_lanes=1)
PASSWORD = "correct horse"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_000_000.0)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    store = SqlStore(new_sqlite(tmp_path))
    yield store.registry
    store.close()


@pytest.fixture
def people(registry: Registry, clock: VirtualClock) -> People:
    return make_people(registry, clock, file_token="of-the-file", token_hex=secrets.token_hex, cost=CHEAP)


@pytest.fixture
def add(people: People) -> Callable[..., None]:
    """Adds a user with the password `correct horse`."""

    def add(name: str, role: Role = Role.USER) -> None:
        people.accounts.add(UserSettings(name=name, role=role), PASSWORD)

    return add
