"""The rules about accounts."""

import secrets
import threading
from collections.abc import Callable

import pytest
from tests.people.conftest import CHEAP, PASSWORD

from pliant.core.access import Permission, Role
from pliant.core.errors import Conflict, InvalidInput, NotFound, Stale, Unauthorized
from pliant.core.people import TokenSettings, UserSettings
from pliant.core.registry import Registry
from pliant.people.accounts import made_up_password
from pliant.people.people import People, make_people
from pliant.people.user import User
from pliant.sim.clock import VirtualClock

Add = Callable[..., None]


def test_a_user_is_kept_with_a_hash_and_no_password(people: People, clock: VirtualClock) -> None:
    made = people.accounts.add(UserSettings(name="ada", role=Role.USER), PASSWORD)
    assert made.password is None
    kept = people.accounts.get("ada")
    assert kept == made.kept
    assert (kept.noun.role, kept.noun.active, kept.noun.owner) == (Role.USER, True, "ada")
    assert (kept.created_at, kept.noun.password_changed_at, kept.revision) == (clock.now(), clock.now(), 1)
    assert kept.noun.password_hash.startswith("$argon2id$")
    assert PASSWORD not in repr(kept)
    assert "argon2" not in repr(kept)
    with pytest.raises(Conflict, match="there is a user 'ada' already"):
        people.accounts.add(UserSettings(name="ada", role=Role.VIEWER))


def test_a_password_is_made_up_if_none_is_given(people: People) -> None:
    made = people.accounts.add(UserSettings(name="ada", role=Role.USER))
    assert made.password is not None
    assert people.authenticator.authenticate_password("ada", made.password, "").principal.name == "ada"
    assert len(made_up_password(secrets.token_hex)) == 24
    assert made_up_password(secrets.token_hex) != made_up_password(secrets.token_hex)


@pytest.mark.parametrize("name", ["", "Ada", "a\x00b", "ada\n", "-ada", "ä", "a" * 61, "a/b"])
def test_what_cannot_be_a_name_is_nobodys(people: People, name: str) -> None:
    assert people.accounts.find(name) is None
    with pytest.raises(NotFound):
        people.accounts.get(name)


def test_users_come_in_pages(people: People, add: Add) -> None:
    for name in ("cy", "ada", "bob"):
        add(name)
    assert [kept.noun.name for kept in people.accounts.page("", 2)] == ["ada", "bob"]
    assert [kept.noun.name for kept in people.accounts.page("bob", 2)] == ["cy"]


def test_a_change_counts_up_and_is_refused_if_another_came_before(people: People, add: Add) -> None:
    add("ada")
    assert people.accounts.change("ada", {"role": Role.VIEWER}, by="admin", revision=1).revision == 2
    with pytest.raises(Stale):
        people.accounts.change("ada", {"role": Role.USER}, by="admin", revision=1)
    with pytest.raises(Stale):
        people.accounts.remove("ada", by="admin", revision=1)
    assert people.accounts.get("ada").noun.role is Role.VIEWER


def test_nobody_changes_their_own_role_disables_or_removes_themselves(people: People, add: Add) -> None:
    add("ada", Role.ADMIN)
    add("bob", Role.ADMIN)
    for patch in ({"role": Role.USER}, {"active": False}):
        with pytest.raises(Conflict, match="ask another administrator"):
            people.accounts.change("ada", patch, by="ada")
    with pytest.raises(Conflict, match="nobody removes themselves"):
        people.accounts.remove("ada", by="ada")
    same = {"role": Role.ADMIN, "active": True}
    assert people.accounts.change("ada", same, by="ada").noun.role is Role.ADMIN


def test_there_is_always_an_active_administrator(people: People, add: Add) -> None:
    add("ada", Role.ADMIN)
    add("bob", Role.ADMIN)
    add("cy", Role.OPERATOR)
    people.accounts.change("bob", {"active": False}, by="ada")
    for patch in ({"role": Role.OPERATOR}, {"active": False}):
        with pytest.raises(Conflict, match="ada is the last active administrator"):
            people.accounts.change("ada", patch, by="admin")
    with pytest.raises(Conflict, match="last active administrator"):
        people.accounts.remove("ada", by="admin")
    people.accounts.remove("bob", by="ada")
    people.accounts.change("cy", {"role": Role.ADMIN}, by="ada")
    people.accounts.remove("ada", by="cy")


def test_of_two_administrators_who_remove_each_other_one_stays(people: People, add: Add) -> None:
    for _ in range(5):
        for name in ("ada", "bob"):
            if people.accounts.find(name) is None:
                add(name, Role.ADMIN)
        refused: list[str] = []

        def remove(name: str, by: str, refused: list[str] = refused) -> None:
            try:
                people.accounts.remove(name, by=by)
            except Conflict:
                refused.append(by)

        threads = [threading.Thread(target=remove, args=pair) for pair in (("ada", "bob"), ("bob", "ada"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 1
        assert len(people.accounts.page("", 10)) == 1


def test_who_is_disabled_or_gets_another_password_has_no_session_any_more(people: People, add: Add) -> None:
    add("ada")
    add("bob")
    bobs = people.credentials.open_session("bob").text
    for active, password in ((False, None), (True, "another one")):
        token = people.credentials.open_session("ada").text
        people.accounts.change("ada", {"active": active}, password=password, by="admin")
        people.accounts.change("ada", {"active": True}, by="admin")
        with pytest.raises(Unauthorized):
            people.authenticator.authenticate_token(token)
    assert people.authenticator.authenticate_token(bobs).principal.name == "bob"
    token = people.credentials.open_session("ada").text
    people.accounts.change("ada", {"role": Role.VIEWER}, by="admin")
    assert people.authenticator.authenticate_token(token).principal.role is Role.VIEWER


def test_ones_own_new_password_ends_ones_other_sessions(people: People, add: Add, clock: VirtualClock) -> None:
    add("ada")
    mine, other = people.credentials.open_session("ada"), people.credentials.open_session("ada")
    clock.advance(10)
    kept = people.accounts.set_password("ada", "battery staple", but_session=mine.kept.noun.name)
    assert kept.noun.password_changed_at == clock.now()
    assert people.authenticator.authenticate_token(mine.text).by == "session"
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_token(other.text)
    assert people.authenticator.authenticate_password("ada", "battery staple", "").logged_on
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_password("ada", PASSWORD, "")


@pytest.mark.parametrize("password", ["a-long-long-name", "A-LONG-long-name", "plt_something else"])
def test_a_password_is_not_the_name_and_looks_like_no_token(people: People, add: Add, password: str) -> None:
    add("a-long-long-name")
    with pytest.raises(InvalidInput, match="choose another one"):
        people.accounts.set_password("a-long-long-name", password)
    with pytest.raises(InvalidInput):
        people.accounts.change("a-long-long-name", {}, password=password, by="admin")
    assert people.accounts.get("a-long-long-name").revision == 1


def test_a_removed_user_leaves_no_session_and_no_token(people: People, add: Add) -> None:
    add("ada")
    session = people.credentials.open_session("ada").text
    token = people.credentials.make_token("ada", TokenSettings(label="x", scopes=frozenset({Permission.SELF}))).text
    people.accounts.remove("ada", by="admin")
    add("ada", Role.ADMIN)
    for text in (session, token):
        with pytest.raises(Unauthorized):
            people.authenticator.authenticate_token(text)
    assert people.credentials.list_tokens("ada") == []


def test_a_new_server_makes_its_administrator_once(people: People, registry: Registry, clock: VirtualClock) -> None:
    password = people.accounts.first_administrator()
    assert password is not None
    assert people.authenticator.authenticate_password("admin", password, "").principal.role is Role.ADMIN
    assert people.accounts.first_administrator() is None
    later = make_people(registry, clock, file_token="", token_hex=secrets.token_hex, cost=CHEAP)
    assert later.accounts.first_administrator() is None
    people.accounts.add(UserSettings(name="ada", role=Role.ADMIN))
    people.accounts.remove("admin", by="ada")
    assert later.accounts.first_administrator() is None, "who was removed does not come back"


@pytest.mark.parametrize("what", ["there", "disabled", "demoted", "removed"])
def test_a_forgotten_administrator_gets_a_new_password_whatever_became_of_them(
    people: People, registry: Registry, clock: VirtualClock, what: str
) -> None:
    old = people.accounts.first_administrator()
    assert old is not None
    people.accounts.add(UserSettings(name="ada", role=Role.ADMIN))
    if what == "removed":
        people.accounts.remove("admin", by="ada")
    elif what != "there":
        patch = {"active": False} if what == "disabled" else {"role": Role.VIEWER}
        people.accounts.change("admin", patch, by="ada")
    elif people.authenticator.authenticate_password("admin", old, "").logged_on:
        assert people.authenticator.recall("admin", old) is not None
    session = people.credentials.open_session("admin").text
    beside = make_people(registry, clock, file_token="", token_hex=secrets.token_hex, cost=CHEAP)
    new = beside.accounts.reset_administrator()
    assert people.authenticator.authenticate_password("admin", new, "").principal.role is Role.ADMIN
    assert people.authenticator.recall("admin", old) is None, "what another process changed holds here at once"
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_token(session)


def test_a_user_of_an_older_pliant_can_be_read(registry: Registry) -> None:
    registry.add(User(name="ada", role=Role.USER, password_hash="x", password_changed_at=1.0), at=1.0)
    kept = registry.get(User, "ada")
    assert kept is not None
    assert kept.noun == User(name="ada", role=Role.USER, password_hash="x", password_changed_at=1.0, active=True)
