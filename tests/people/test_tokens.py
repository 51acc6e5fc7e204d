"""Personal tokens: made, listed, revoked, expired."""

from collections.abc import Callable

import pytest

from pliant.api.people import TokenRequest
from pliant.core.access import Permission
from pliant.core.errors import Conflict, InvalidInput, NotFound, Unauthorized
from pliant.core.registry import Registry
from pliant.people.people import People
from pliant.people.tokens import MAX_TOKENS, PersonalToken
from pliant.sim.clock import VirtualClock

Add = Callable[..., None]
DAY_S = 86400.0


def test_a_token_lives_for_ninety_days_unless_it_is_said_otherwise(
    people: People, add: Add, clock: VirtualClock
) -> None:
    add("ada")
    made = people.tokens.make("ada", TokenRequest(label="ci", scopes=frozenset({Permission.SELF})))
    assert made.kept.noun.expires_at == clock.now() + 90 * DAY_S
    assert (made.kept.noun.label, made.kept.noun.scopes) == ("ci", (Permission.SELF,))
    short = people.tokens.make("ada", TokenRequest(label="short", expires_at=clock.now() + 60))
    assert [kept.noun.label for kept in people.tokens.of("ada")] in (["ci", "short"], ["short", "ci"])
    clock.advance(60)
    with pytest.raises(Unauthorized):
        people.gate.by_token(short.text)
    assert people.gate.by_token(made.text).expires_at == made.kept.noun.expires_at


@pytest.mark.parametrize("days", [-1, 0, 367])
def test_an_end_in_the_past_or_too_far_away_is_refused(people: People, clock: VirtualClock, days: float) -> None:
    with pytest.raises(InvalidInput, match="a year from now"):
        people.tokens.make("ada", TokenRequest(label="x", expires_at=clock.now() + days * DAY_S))
    year = people.tokens.make("ada", TokenRequest(label="x", expires_at=clock.now() + 365 * DAY_S))
    assert year.kept.noun.expires_at == clock.now() + 365 * DAY_S


def test_what_is_kept_of_a_token_does_not_open_it(people: People, registry: Registry) -> None:
    made = people.tokens.make("ada", TokenRequest(label="x"))
    secret = made.text.split("_")[2]
    kept = registry.get(PersonalToken, made.kept.noun.name)
    assert kept is not None
    assert secret not in repr(kept)
    assert secret not in kept.noun.digest
    assert made.text not in repr(made)


def test_a_revoked_token_opens_nothing_at_once(people: People, add: Add) -> None:
    add("ada")
    made = people.tokens.make("ada", TokenRequest(label="x"))
    people.gate.by_token(made.text)
    with pytest.raises(NotFound):
        people.tokens.revoke(made.kept.noun.name, owner="bob")
    people.tokens.revoke(made.kept.noun.name, owner="ada")
    with pytest.raises(Unauthorized):
        people.gate.by_token(made.text)
    for token_id in (made.kept.noun.name, "nothing", "\x00"):
        with pytest.raises(NotFound, match="no token"):
            people.tokens.revoke(token_id)


def test_expired_tokens_are_listed_for_a_month_and_do_not_count(
    people: People, registry: Registry, clock: VirtualClock
) -> None:
    soon = clock.now() + 10
    for number in range(MAX_TOKENS):
        people.tokens.make("ada", TokenRequest(label=f"{number}", expires_at=soon))
    with pytest.raises(Conflict, match="which is the most"):
        people.tokens.make("ada", TokenRequest(label="one more"))
    clock.advance(11)
    newest = people.tokens.make("ada", TokenRequest(label="one more"))
    listed = people.tokens.of("ada")
    assert (len(listed), listed[0]) == (MAX_TOKENS + 1, newest.kept)
    clock.advance(31 * DAY_S)
    assert people.tokens.of("ada") == [newest.kept]
    assert len(registry.list(PersonalToken)) == 1
