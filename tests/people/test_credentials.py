"""Sessions and personal tokens: their form, what is kept of them, and how they come and go."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.access import Permission
from pliant.core.errors import Conflict, InvalidInput, NotFound, Unauthorized
from pliant.core.people import TokenSettings
from pliant.core.registry import Registry
from pliant.core.serving import RequestLimits
from pliant.people.credentials import (
    MAX_SESSIONS,
    MAX_TOKENS,
    SESSION_S,
    Credential,
    LogonSession,
    OpaqueToken,
    PersonalToken,
)
from pliant.people.people import People
from pliant.sim.clock import VirtualClock

Add = Callable[..., None]
DAY_S = 86400.0


@pytest.mark.parametrize("kind", [LogonSession, PersonalToken])
def test_a_token_comes_back_from_its_text(kind: type[Credential]) -> None:
    made = OpaqueToken.mint(kind, secrets.token_hex)
    assert made.text == f"plt_{made.id}_{made.secret}"
    assert OpaqueToken.parse(made.text) == made
    assert (made.id[0], len(made.id), len(made.secret)) == (kind.LETTER, 17, 48)
    assert made.secret not in repr(made)


def test_only_its_own_digest_matches() -> None:
    one, other = (OpaqueToken.mint(LogonSession, secrets.token_hex) for _ in range(2))
    assert one.matches(one.digest)
    assert not one.matches(other.digest)
    assert not one.matches(None)
    assert one.secret not in one.digest


def test_a_token_whose_digest_is_all_zeros_is_not_the_one_that_nobody_has() -> None:
    class Zeros(OpaqueToken):
        @property
        def digest(self) -> str:
            return "0" * 64

    assert not Zeros(id="s" + "0" * 16, secret="").matches(None)


@given(st.text() | st.from_regex(r"plt_[st][0-9a-f]{16}_[0-9a-f]{47,49}[\n ]?", fullmatch=True))
def test_what_has_another_form_is_no_token(text: str) -> None:
    found = OpaqueToken.parse(text)
    assert found is None or found.text == text


def test_what_is_kept_of_a_credential_does_not_open_it(people: People, registry: Registry) -> None:
    for issued in (people.credentials.open_session("ada"), people.credentials.make_token("ada", token_settings())):
        opaque = OpaqueToken.parse(issued.text)
        assert opaque is not None
        kept = registry.get(type(issued.kept.noun), opaque.id)
        assert kept == issued.kept
        assert opaque.secret not in repr(kept)
        assert kept.noun.digest == opaque.digest
        assert issued.text not in repr(issued)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSession:
    """A session as servers before this one kept it."""

    KIND: ClassVar[str] = "session"

    name: str
    owner: str
    digest: str
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierToken(EarlierSession):
    """A personal token as servers before this one kept it."""

    KIND: ClassVar[str] = "token"

    label: str
    scopes: tuple[Permission, ...] | None
    last_used_at: float | None = None


def test_what_an_earlier_server_kept_still_opens(
    people: People, add: Add, registry: Registry, clock: VirtualClock
) -> None:
    add("ada")
    session, token = (OpaqueToken.mint(kind, secrets.token_hex) for kind in (LogonSession, PersonalToken))
    until = clock.now() + 60
    registry.add(EarlierSession(name=session.id, owner="ada", digest=session.digest, expires_at=until), at=clock.now())
    scopes = (Permission.SELF,)
    registry.add(
        EarlierToken(name=token.id, owner="ada", digest=token.digest, expires_at=until, label="old", scopes=scopes),
        at=clock.now(),
    )
    assert people.authenticator.authenticate_token(session.text).by == "session"
    assert people.authenticator.authenticate_token(token.text).principal.scopes == frozenset(scopes)
    issued = people.credentials.open_session("ada").kept.noun
    assert registry.get(EarlierSession, issued.name) is not None, "and the other way round"


# Sessions


def live(registry: Registry) -> set[str]:
    return {kept.noun.name for kept in registry.list(LogonSession)}


def test_an_ended_session_is_gone_and_ending_it_again_is_no_matter(people: People, registry: Registry) -> None:
    one, other = people.credentials.open_session("ada").kept.noun, people.credentials.open_session("ada").kept.noun
    for _ in range(2):
        people.credentials.end_session(one.name)
    assert live(registry) == {other.name}


def test_logging_on_forgets_the_users_sessions_that_are_over(
    people: People, registry: Registry, clock: VirtualClock
) -> None:
    people.credentials.open_session("ada")
    bobs = people.credentials.open_session("bob").kept.noun
    clock.advance(SESSION_S)
    adas = people.credentials.open_session("ada").kept.noun
    assert live(registry) == {bobs.name, adas.name}
    people.credentials.forget_expired_sessions()
    assert live(registry) == {adas.name}


def test_of_too_many_sessions_the_oldest_makes_room(people: People, registry: Registry, clock: VirtualClock) -> None:
    names = []
    for _ in range(MAX_SESSIONS + 2):
        names.append(people.credentials.open_session("ada").kept.noun.name)
        clock.advance(1)
    assert live(registry) == set(names[2:])
    people.credentials.end_sessions("ada", but=names[-1])
    assert live(registry) == {names[-1]}


# Personal tokens


def token_settings() -> TokenSettings:
    return TokenSettings(label="x")


def test_a_token_lives_for_ninety_days_unless_it_is_said_otherwise(
    people: People, add: Add, clock: VirtualClock
) -> None:
    add("ada")
    made = people.credentials.make_token("ada", TokenSettings(label="ci", scopes=frozenset({Permission.SELF})))
    assert made.kept.noun.expires_at == clock.now() + 90 * DAY_S
    assert (made.kept.noun.label, made.kept.noun.scopes) == ("ci", (Permission.SELF,))
    short = people.credentials.make_token("ada", TokenSettings(label="short", expires_at=clock.now() + 60))
    assert [kept.noun.label for kept in people.credentials.list_tokens("ada")] in (["ci", "short"], ["short", "ci"])
    clock.advance(60)
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_token(short.text)
    assert people.authenticator.authenticate_token(made.text).expires_at == made.kept.noun.expires_at


@pytest.mark.parametrize("days", [-1, 0, 367])
def test_an_end_in_the_past_or_too_far_away_is_refused(people: People, clock: VirtualClock, days: float) -> None:
    with pytest.raises(InvalidInput, match="a year from now"):
        people.credentials.make_token("ada", TokenSettings(label="x", expires_at=clock.now() + days * DAY_S))
    year = people.credentials.make_token("ada", TokenSettings(label="x", expires_at=clock.now() + 365 * DAY_S))
    assert year.kept.noun.expires_at == clock.now() + 365 * DAY_S


def test_a_revoked_token_opens_nothing_at_once(people: People, add: Add) -> None:
    add("ada")
    made = people.credentials.make_token("ada", token_settings())
    people.authenticator.authenticate_token(made.text)
    with pytest.raises(NotFound):
        people.credentials.revoke_token(made.kept.noun.name, owner="bob")
    people.credentials.revoke_token(made.kept.noun.name, owner="ada")
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_token(made.text)
    for token_id in (made.kept.noun.name, "nothing", "\x00"):
        with pytest.raises(NotFound, match="no token"):
            people.credentials.revoke_token(token_id)


def test_a_token_for_named_endpoints_may_infer_there_and_nothing_else(people: People, add: Add) -> None:
    add("ada")
    infer = frozenset({Permission.INFER})
    asked = TokenSettings(
        label="shop", scopes=infer, endpoints=frozenset({"mnist", "digits"}), max_rate=50.0, max_concurrent=8
    )
    made = people.credentials.make_token("ada", asked)
    assert made.kept.noun.endpoints == ("digits", "mnist")
    found = people.authenticator.authenticate_token(made.text)
    assert found.limits == RequestLimits(max_rate=50.0, max_concurrent=8)
    assert [found.principal.may(one) for one in Permission] == [one is Permission.INFER for one in Permission]
    assert found.principal.reaches("endpoint", "digits")
    assert not found.principal.reaches("endpoint", "other")
    assert not found.principal.reaches("dataset", "digits"), "another kind has names of its own"
    for scopes in (None, infer | {Permission.SELF}, frozenset({Permission.JOBS_READ})):
        with pytest.raises(InvalidInput, match="the scope 'infer' and no other"):
            people.credentials.make_token("ada", replace(asked, scopes=scopes, max_rate=None, max_concurrent=None))
    with pytest.raises(InvalidInput) as refused:
        people.credentials.make_token("ada", replace(asked, scopes=frozenset({Permission.SELF}), endpoints=None))
    assert [problem.field for problem in refused.value.problems] == ["max_rate", "max_concurrent"]


def test_expired_tokens_are_listed_for_a_month_and_do_not_count(
    people: People, registry: Registry, clock: VirtualClock
) -> None:
    soon = clock.now() + 10
    for number in range(MAX_TOKENS):
        people.credentials.make_token("ada", TokenSettings(label=f"{number}", expires_at=soon))
    with pytest.raises(Conflict, match="which is the most"):
        people.credentials.make_token("ada", TokenSettings(label="one more"))
    clock.advance(11)
    newest = people.credentials.make_token("ada", TokenSettings(label="one more"))
    listed = people.credentials.list_tokens("ada")
    assert (len(listed), listed[0]) == (MAX_TOKENS + 1, newest.kept)
    clock.advance(31 * DAY_S)
    assert people.credentials.list_tokens("ada") == [newest.kept]
    assert len(registry.list(PersonalToken)) == 1
