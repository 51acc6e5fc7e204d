"""One-time links: used once, in time, by the browser of whoever made them, while what they were made with holds."""

from collections.abc import Callable

import pytest

from pliant.core.errors import NotFound, TooMany, Unauthorized
from pliant.people.attempts import OF_ADDRESS
from pliant.people.logon_links import LINK_S, MAX_LINKS, MAX_LINKS_OF_USER
from pliant.people.people import People
from pliant.sim.clock import VirtualClock

HERE = "127.0.0.1"


def test_a_link_is_its_makers_and_works_once(people: People, add: Callable[..., None], clock: VirtualClock) -> None:
    add("ada")
    link = people.links.make("ada")
    assert (len(bytes.fromhex(link.code)), link.expires_at) == (32, clock.now() + LINK_S)
    assert link.code not in repr(link) + repr(vars(people.links))
    assert people.links.owner_of(link.code) == "ada"
    assert people.links.redeem(link.code, HERE).name == "ada"
    assert people.links.owner_of(link.code) is None
    with pytest.raises(Unauthorized, match="was used already"):
        people.links.redeem(link.code, HERE)


def test_a_link_is_worth_nothing_after_a_minute(people: People, add: Callable[..., None], clock: VirtualClock) -> None:
    add("ada")
    link, other = people.links.make("ada"), people.links.make("ada")
    clock.advance(LINK_S - 0.5)
    assert people.links.redeem(other.code, HERE).name == "ada"
    clock.advance(0.5)
    assert people.links.owner_of(link.code) is None
    with pytest.raises(Unauthorized):
        people.links.redeem(link.code, HERE)


def test_what_ends_its_makers_sessions_ends_a_link(people: People, add: Callable[..., None]) -> None:
    def end_session() -> None:
        people.credentials.end_session(session.name)

    ends: list[Callable[[], object]] = [
        end_session,
        lambda: people.accounts.change("ada", {}, by="admin", password="another horse"),
        lambda: people.accounts.change("ada", {"active": False}, by="admin"),
        lambda: people.accounts.remove("ada", by="admin"),
    ]
    add("ada")
    for end in ends:
        session = people.credentials.open_session("ada").kept.noun
        link = people.links.make("ada", session_id=session.name)
        end()
        with pytest.raises(Unauthorized):
            people.links.redeem(link.code, HERE)
    with pytest.raises(NotFound):
        people.links.make("ada")


def test_wrong_codes_wait_and_right_ones_never_do(
    people: People, add: Callable[..., None], clock: VirtualClock
) -> None:
    add("ada")
    for number in range(OF_ADDRESS.num_free):
        with pytest.raises(Unauthorized):
            people.links.redeem(f"{number:064x}", HERE)
    with pytest.raises(TooMany, match="wait 5 s"):
        people.links.redeem("wrong\udc00", HERE)
    with pytest.raises(Unauthorized):
        people.links.redeem("wrong", "10.0.0.1")
    assert people.links.redeem(people.links.make("ada").code, HERE).name == "ada"
    assert people.authenticator.check_password("ada", "correct horse", HERE), "no password waits for a wrong link"
    clock.advance(5.0)
    with pytest.raises(Unauthorized):
        people.links.redeem("wrong", HERE)


def test_links_are_few(people: People, add: Callable[..., None]) -> None:
    add("ada")
    made = [people.links.make("ada") for _ in range(MAX_LINKS_OF_USER + 1)]
    assert [people.links.owner_of(link.code) for link in made[:2]] == [None, "ada"], "the oldest made room"
    assert MAX_LINKS_OF_USER < MAX_LINKS
