"""Sessions come and go, and do not pile up."""

from collections.abc import Callable

from pliant.core.registry import Registry
from pliant.people.opaque import parse
from pliant.people.people import People
from pliant.people.sessions import MAX_SESSIONS, SESSION_S, Session
from pliant.sim.clock import VirtualClock

Add = Callable[..., None]


def live(registry: Registry) -> set[str]:
    return {kept.noun.name for kept in registry.list(Session)}


def test_what_is_kept_of_a_session_does_not_open_it(people: People, registry: Registry) -> None:
    opened = people.sessions.open("ada")
    opaque = parse(opened.token)
    assert opaque is not None
    kept = registry.get(Session, opaque.id)
    assert kept is not None
    assert opaque.secret not in repr(kept)
    assert kept.noun.digest not in (opaque.secret, opened.token)
    assert opened.token not in repr(opened)


def test_an_ended_session_is_gone_and_ending_it_again_is_no_matter(people: People, registry: Registry) -> None:
    one, other = people.sessions.open("ada").session, people.sessions.open("ada").session
    for _ in range(2):
        people.sessions.end(one.name)
    assert live(registry) == {other.name}


def test_logging_on_forgets_the_users_sessions_that_are_over(
    people: People, registry: Registry, clock: VirtualClock
) -> None:
    people.sessions.open("ada")
    bobs = people.sessions.open("bob").session
    clock.advance(SESSION_S)
    adas = people.sessions.open("ada").session
    assert live(registry) == {bobs.name, adas.name}
    people.sessions.forget_ended()
    assert live(registry) == {adas.name}


def test_of_too_many_sessions_the_oldest_makes_room(people: People, registry: Registry, clock: VirtualClock) -> None:
    names = []
    for _ in range(MAX_SESSIONS + 2):
        names.append(people.sessions.open("ada").session.name)
        clock.advance(1)
    assert live(registry) == set(names[2:])
    people.sessions.end_all("ada", but=names[-1])
    assert live(registry) == {names[-1]}
