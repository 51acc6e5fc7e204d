"""Join tokens: who gets in with one, how often, and what they are told; and machines that are remembered."""

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.databases import new_sqlite

from pliant.control.requests.joining import MAX_JOIN_TOKENS, Joining, NewJoinToken
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthorized
from pliant.core.joining import JoinedMachine, parse_join_token
from pliant.core.registry import Registry
from pliant.sim.clock import VirtualClock
from pliant.sim.registry import MemoryRegistry
from pliant.store.sql import SqlStore

PIN = "2d" * 32
MACHINE = JoinedMachine(
    name="gpu1", owner="ada", fingerprint="ab" * 32, joined_at=5.0, slots=(0, 1), labels={"rack": "7"}
)


@pytest.fixture(params=["memory", "sqlite"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    if request.param == "memory":
        yield MemoryRegistry()
        return
    store = SqlStore(new_sqlite(tmp_path))
    yield store.registry
    store.close()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1000.0)


@pytest.fixture
def joining(registry: Registry, clock: VirtualClock) -> Joining:
    numbers = itertools.count(1)
    return Joining(registry=registry, now=clock.now, token_hex=lambda size: f"{next(numbers):0{2 * size}x}")


def make(joining: Joining, *, machine: str = "", valid_s: float = 60.0, max_uses: int = 1) -> NewJoinToken:
    return joining.make_token("ada", machine=machine, valid_s=valid_s, max_uses=max_uses, pin=PIN)


def admit(joining: Joining, made: NewJoinToken, machine: str = "gpu1") -> int:
    token_id, secret, _ = parse_join_token(made.text)
    return joining.admit(token_id, secret, machine).num_uses


def test_a_token_lets_one_machine_in(joining: Joining) -> None:
    made = make(joining)
    assert parse_join_token(made.text)[2] == PIN
    assert parse_join_token(made.text)[1] not in repr(made)
    assert admit(joining, made) == 1
    with pytest.raises(Conflict, match="was used once already"):
        admit(joining, made, "gpu2")
    assert [kept.noun.num_uses for kept in joining.tokens()] == [1]


def test_a_token_for_several_lets_no_more_in(joining: Joining) -> None:
    made = make(joining, max_uses=3)
    assert [admit(joining, made, f"gpu{number}") for number in range(3)] == [1, 2, 3]
    with pytest.raises(Conflict, match="was used 3 times already"):
        admit(joining, made)


def test_of_machines_that_come_at_once_no_more_get_in_than_may(joining: Joining) -> None:
    made, together = make(joining, max_uses=4), threading.Barrier(8)

    def come(number: int) -> bool:
        together.wait(10)
        try:
            return admit(joining, made, f"gpu{number}") > 0
        except Conflict:
            return False

    with ThreadPoolExecutor(8) as machines:
        assert sum(machines.map(come, range(8))) == 4
    assert joining.tokens()[0].noun.num_uses == 4


def test_a_token_that_nobody_made_and_a_wrong_secret_are_told_alike(joining: Joining) -> None:
    token_id, secret, _ = parse_join_token(make(joining).text)
    said = set()
    for wrong in (
        (token_id, secret[:-1] + "f"),
        (token_id, ""),
        (token_id, "\ud800"),
        ("f" * 16, secret),
        ("", secret),
        ("\ud800" * 16, secret),
        ("x" * 100_000, secret),
        ("\x00" * 16, secret),
    ):
        with pytest.raises(Unauthorized) as told:
            joining.admit(*wrong, "gpu1")
        said.add(str(told.value))
    assert len(said) == 1
    assert "pliant machines token" in said.pop()
    assert joining.tokens()[0].noun.num_uses == 0


def test_a_token_expires_and_is_forgotten(joining: Joining, clock: VirtualClock) -> None:
    made = make(joining, valid_s=60.0)
    clock.advance(60.0)
    with pytest.raises(Unauthorized, match="has expired"):
        admit(joining, made)
    assert joining.tokens() == []
    with pytest.raises(NotFound):
        joining.revoke_token(made.token.name)


def test_a_revoked_token_lets_nobody_in(joining: Joining) -> None:
    made = make(joining)
    joining.revoke_token(made.token.name)
    with pytest.raises(Unauthorized, match="has been revoked"):
        admit(joining, made)
    for wrong in (made.token.name, "", "x" * 9999, "\ud800"):
        with pytest.raises(NotFound, match="there is no join token"):
            joining.revoke_token(wrong)


def test_a_token_for_a_name_is_for_that_name(joining: Joining) -> None:
    made = make(joining, machine="gpu1")
    with pytest.raises(Forbidden, match="for a machine of the name 'gpu1', and this one wants to be 'gpu2'"):
        admit(joining, made, "gpu2")
    assert admit(joining, made) == 1


@pytest.mark.parametrize("name", ["", "local", "a/b", "a" * 64, "\ud800", "a\nb", "../../etc"])
def test_a_name_that_no_machine_may_have_takes_no_use(joining: Joining, name: str) -> None:
    made = make(joining)
    with pytest.raises(InvalidInput):
        admit(joining, made, name)
    assert admit(joining, made) == 1


def test_what_is_wrong_with_a_wish_for_a_token_is_told_at_once(joining: Joining) -> None:
    with pytest.raises(InvalidInput) as told:
        make(joining, machine="a b", valid_s=float("nan"), max_uses=0)
    assert [problem.field for problem in told.value.problems] == ["machine", "valid_s", "max_uses"]
    with pytest.raises(InvalidInput, match="is for one machine, not for 2"):
        make(joining, machine="gpu1", max_uses=2)
    with pytest.raises(InvalidInput, match="30 days"):
        make(joining, valid_s=31 * 86400)


def test_there_are_not_more_tokens_than_anybody_needs(clock: VirtualClock) -> None:
    numbers = itertools.count()
    joining = Joining(registry=MemoryRegistry(), now=clock.now, token_hex=lambda size: f"{next(numbers):0{2 * size}x}")
    for _ in range(MAX_JOIN_TOKENS):
        make(joining)
    with pytest.raises(Conflict, match="1000 join tokens"):
        make(joining)
    clock.advance(1000.0)
    make(joining)
    assert len(joining.tokens()) == 1


def test_tokens_are_listed_newest_first(joining: Joining, clock: VirtualClock) -> None:
    first = make(joining).token.name
    clock.advance(1.0)
    second = make(joining).token.name
    assert [kept.noun.name for kept in joining.tokens()] == [second, first]


def test_a_machine_is_remembered_until_it_is_removed(joining: Joining, registry: Registry) -> None:
    joining.note(MACHINE)
    joining.note(MACHINE)
    kept = registry.get(JoinedMachine, "gpu1")
    assert kept is not None
    assert kept.revision == 1  # nothing is written where nothing is new
    assert joining.get("gpu1") == MACHINE
    assert (MACHINE.node.id, MACHINE.node.slots, MACHINE.node.labels) == ("gpu1", (0, 1), {"rack": "7"})
    more = replace(MACHINE, slots=(0, 1, 2))
    joining.note(more)
    joining.note(replace(MACHINE, name="gpu0"))
    assert [one.name for one in joining.all()] == ["gpu0", "gpu1"]
    assert joining.get("gpu1") == more
    joining.remove("gpu1")
    assert joining.get("gpu1") is None
    with pytest.raises(NotFound, match="no machine 'gpu1' has joined"):
        joining.remove("gpu1")


@pytest.mark.parametrize(
    "changes",
    [
        {"slots": (0, 0)},
        {"slots": (-1,)},
        {"slots": (4096,)},
        {"slots": tuple(range(5000))},
        {"labels": {"a b": "x"}},
        {"labels": {"": "x"}},
        {"labels": {"a": "x\n"}},
        {"labels": {f"a{number}": "" for number in range(101)}},
        {"walls": ("x" * 501,)},
        {"missing_walls": ("a\x1b[2J",)},
        {"walls": ("x",) * 101},
        {"num_gpus": -1},
        {"num_cpus": 2**70},
    ],
)
def test_what_an_agent_makes_up_is_not_remembered(joining: Joining, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as told:
        joining.note(replace(MACHINE, **changes))
    assert [problem.field.replace("missing_", "") for problem in told.value.problems] == [
        next(iter(changes)).replace("missing_", "")
    ]
    assert joining.all() == ()


def test_who_was_removed_or_replaced_is_not_let_in(joining: Joining) -> None:
    joining.note(MACHINE)
    assert joining.require("gpu1", MACHINE.fingerprint) == MACHINE
    with pytest.raises(Unauthorized, match="another machine has joined this pool as 'gpu1' since"):
        joining.require("gpu1", "cd" * 32)
    joining.remove("gpu1")
    with pytest.raises(Unauthorized, match="'gpu1' was removed from this pool"):
        joining.require("gpu1", MACHINE.fingerprint)


def test_no_machine_is_remembered_by_the_servers_own_name(joining: Joining) -> None:
    with pytest.raises(InvalidInput, match="Pliant uses it itself"):
        joining.note(replace(MACHINE, name="local"))
