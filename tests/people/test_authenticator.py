"""Who is let in, by what, and who has to wait."""

import secrets
import threading
from collections.abc import Callable

import pytest
from tests.people.conftest import CHEAP, PASSWORD

from pliant.core.access import Permission, Principal, Role
from pliant.core.errors import TooMany, Unauthorized
from pliant.core.people import TokenSettings
from pliant.core.registry import Registry
from pliant.people.attempts import AT_ADDRESS, OF_ACCOUNT, OF_ADDRESS
from pliant.people.credentials import PersonalToken
from pliant.people.password_checker import REMEMBERED_S
from pliant.people.people import People, make_people
from pliant.sim.clock import VirtualClock

Add = Callable[..., None]


def guess(people: People, name: str, times: int, address: str = "10.0.0.1") -> None:
    for _ in range(times):
        with pytest.raises(Unauthorized):
            people.authenticator.authenticate_password(name, "wrong", address)


def test_the_token_of_the_file_is_the_administrator_without_an_account(people: People) -> None:
    found = people.authenticator.authenticate_token("of-the-file")
    assert (found.principal, found.by) == (Principal(name="admin", role=Role.ADMIN), "file")
    assert people.authenticator.authenticate_basic("admin", "of-the-file", "").by == "file"
    for wrong in ("", "of-the-fil", "of-the-file ", "\ud800"):
        with pytest.raises(Unauthorized):
            people.authenticator.authenticate_token(wrong)
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_basic("ada", "of-the-file", "")
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_password("admin", "of-the-file", "")


def test_without_a_file_no_empty_token_opens(registry: Registry, clock: VirtualClock) -> None:
    people = make_people(registry, clock, file_token="", token_hex=secrets.token_hex, cost=CHEAP)
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_token("")


def test_a_session_opens_for_eight_hours(people: People, add: Add, clock: VirtualClock) -> None:
    add("ada", Role.OPERATOR)
    opened = people.credentials.open_session("ada")
    found = people.authenticator.authenticate_token(opened.text)
    assert (found.principal, found.by) == (Principal(name="ada", role=Role.OPERATOR), "session")
    assert found.expires_at == clock.now() + 8 * 3600
    assert people.authenticator.authenticate_basic("ada", opened.text, "").by == "session"
    clock.advance(8 * 3600 - 1)
    assert people.authenticator.authenticate_token(opened.text).by == "session"
    clock.advance(1)
    with pytest.raises(Unauthorized, match="expired"):
        people.authenticator.authenticate_token(opened.text)


@pytest.mark.parametrize("change", ["secret", "id", "kind"])
def test_half_a_token_opens_nothing(people: People, add: Add, change: str) -> None:
    add("ada")
    one, other = people.credentials.open_session("ada").text, people.credentials.open_session("ada").text
    (_, one_id, one_secret), (_, other_id, other_secret) = one.split("_"), other.split("_")
    made = {
        "secret": f"plt_{one_id}_{other_secret}",
        "id": f"plt_{other_id}_{one_secret}",
        "kind": f"plt_t{one_id[1:]}_{one_secret}",
    }
    with pytest.raises(Unauthorized):
        people.authenticator.authenticate_token(made[change])


def test_a_token_is_limited_to_its_scopes_and_to_its_owners_role(people: People, add: Add) -> None:
    add("ada", Role.VIEWER)
    scopes = frozenset({Permission.JOBS_READ, Permission.JOBS_WRITE})
    found = people.authenticator.authenticate_token(
        people.credentials.make_token("ada", TokenSettings(label="ci", scopes=scopes)).text
    )
    assert (found.by, found.principal.scopes) == ("token", scopes)
    assert [p for p in Permission if found.principal.may(p)] == [Permission.JOBS_READ]
    people.accounts.change("ada", {"role": Role.USER}, by="admin")
    found = people.authenticator.authenticate_token(
        people.credentials.make_token("ada", TokenSettings(label="all")).text
    )
    assert found.principal == Principal(name="ada", role=Role.USER, scopes=None)


def test_when_a_token_was_used_is_written_once_a_minute(
    people: People, registry: Registry, add: Add, clock: VirtualClock
) -> None:
    add("ada")
    made = people.credentials.make_token("ada", TokenSettings(label="ci"))
    assert made.kept.noun.last_used_at is None
    revisions = []
    for _ in range(7):
        people.authenticator.authenticate_token(made.text)
        kept = registry.get(PersonalToken, made.kept.noun.name)
        assert kept is not None
        revisions.append((kept.revision, kept.noun.last_used_at))
        clock.advance(20)
    start = clock.now() - 140
    assert revisions == [(2, start)] * 3 + [(3, start + 60)] * 3 + [(4, start + 120)]


def test_a_token_used_by_many_at_once_opens_for_all(people: People, add: Add) -> None:
    add("ada")
    text = people.credentials.make_token("ada", TokenSettings(label="ci")).text
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(people.authenticator.authenticate_token(text).by))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["token"] * 8


def test_who_is_disabled_is_refused_at_once_whatever_they_show(people: People, add: Add) -> None:
    add("ada")
    tokens = [
        people.credentials.open_session("ada").text,
        people.credentials.make_token("ada", TokenSettings(label="x")).text,
    ]
    people.authenticator.authenticate_password("ada", PASSWORD, "")
    people.accounts.change("ada", {"active": False}, by="admin")
    for token in tokens:
        with pytest.raises(Unauthorized):
            people.authenticator.authenticate_token(token)
    assert people.authenticator.recall("ada", PASSWORD) is None
    with pytest.raises(Unauthorized, match="the account ada is disabled"):
        people.authenticator.authenticate_password("ada", PASSWORD, "")
    with pytest.raises(Unauthorized, match="wrong"):
        people.authenticator.authenticate_password("ada", "wrong", "")


def test_a_password_is_remembered_for_seconds(people: People, add: Add, clock: VirtualClock) -> None:
    add("ada")
    assert people.authenticator.recall("ada", PASSWORD) is None
    assert people.authenticator.authenticate_password("ada", PASSWORD, "").logged_on
    assert not people.authenticator.authenticate_password("ada", PASSWORD, "").logged_on
    found = people.authenticator.recall("ada", PASSWORD)
    assert found is not None
    assert (found.principal, found.by) == (Principal(name="ada", role=Role.USER), "password")
    assert people.authenticator.recall("ada", "wrong") is None
    clock.advance(REMEMBERED_S)
    assert people.authenticator.recall("ada", PASSWORD) is None
    assert people.authenticator.authenticate_password("ada", PASSWORD, "").logged_on


def test_what_is_remembered_ends_with_the_password_and_follows_the_role(people: People, add: Add) -> None:
    add("ada")
    people.authenticator.authenticate_password("ada", PASSWORD, "")
    people.accounts.change("ada", {"role": Role.VIEWER}, by="admin")
    found = people.authenticator.recall("ada", PASSWORD)
    assert found is not None
    assert found.principal.role is Role.VIEWER
    people.accounts.change("ada", {}, password="battery staple", by="admin")
    assert people.authenticator.recall("ada", PASSWORD) is None
    people.accounts.remove("ada", by="admin")
    assert people.authenticator.recall("ada", "battery staple") is None


def test_after_five_failures_even_the_right_password_has_to_wait_there(
    people: People, add: Add, clock: VirtualClock
) -> None:
    add("ada")
    guess(people, "ada", AT_ADDRESS.num_free)
    with pytest.raises(TooMany, match="wait 5 s") as refused:
        people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1")
    assert refused.value.wait_s == 5
    clock.advance(5)
    guess(people, "ada", 1)
    with pytest.raises(TooMany, match="wait 5 s"):
        people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1")
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.9.9.9").logged_on, "not elsewhere"
    clock.advance(REMEMBERED_S)
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1").logged_on
    guess(people, "ada", AT_ADDRESS.num_free - 1)
    clock.advance(REMEMBERED_S)
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1").logged_on, (
        "success has set the account back"
    )


def test_wrong_passwords_of_one_keep_nobody_else_out_behind_their_address(people: People, add: Add) -> None:
    add("ada")
    add("bob")
    guess(people, "ada", AT_ADDRESS.num_free)
    with pytest.raises(TooMany):
        people.authenticator.authenticate_password("ada", "wrong", "10.0.0.1")
    assert people.authenticator.authenticate_password("bob", PASSWORD, "10.0.0.1").logged_on


def test_who_tries_many_accounts_waits_whichever_is_next(people: People, add: Add) -> None:
    for name in ("ada", "bob"):
        add(name)
    people.authenticator.authenticate_password("bob", PASSWORD, "10.0.0.1")
    for number in range(OF_ADDRESS.num_free):
        guess(people, f"user{number}", 1)
    with pytest.raises(TooMany):
        people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1")
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.2").logged_on
    assert people.authenticator.authenticate_password("bob", PASSWORD, "10.0.0.1").by == "password", "known there"


def test_whom_many_guess_at_gets_in_at_once_where_they_are_known(people: People, add: Add, clock: VirtualClock) -> None:
    add("ada")
    people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.9")
    clock.advance(REMEMBERED_S)
    for number in range(OF_ACCOUNT.num_free):
        guess(people, "ada", 1, f"10.1.{number}.1")
    for wrong_place in ("10.2.0.1", "10.1.0.1"):
        with pytest.raises(TooMany):
            people.authenticator.authenticate_password("ada", PASSWORD, wrong_place)
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.9").logged_on


def test_names_that_nobody_has_are_refused_in_the_same_words_and_wait_alike(people: People, add: Add) -> None:
    add("ada")
    said: list[tuple[str, str]] = []
    for name in ("ada", "bob"):
        with pytest.raises(Unauthorized) as wrong:
            people.authenticator.authenticate_password(name, "wrong", "10.0.0.1")
        guess(people, name, AT_ADDRESS.num_free - 1)
        with pytest.raises(TooMany) as later:
            people.authenticator.authenticate_password(name, "wrong", "10.0.0.1")
        said.append((str(wrong.value), str(later.value)))
    assert said[0] == said[1]


def test_who_has_just_logged_on_does_not_wait_for_what_others_guess(people: People, add: Add) -> None:
    add("ada")
    people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.9")
    guess(people, "ada", AT_ADDRESS.num_free)
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1").by == "password"


def test_a_forgiven_account_can_be_tried_afresh(people: People, add: Add) -> None:
    add("ada")
    guess(people, "ada", AT_ADDRESS.num_free)
    people.authenticator.forgive("ada")
    assert people.authenticator.authenticate_password("ada", PASSWORD, "10.0.0.1").logged_on


@pytest.mark.parametrize(
    ("address", "num_compared"), [("10.1.0.1", AT_ADDRESS.num_free), ("10.1.{}.1", OF_ACCOUNT.num_free)]
)
def test_of_many_guesses_at_once_few_are_compared(people: People, add: Add, address: str, num_compared: int) -> None:
    add("ada")
    outcomes: list[type[Exception]] = []

    def guess_once(number: int) -> None:
        try:
            people.authenticator.authenticate_password("ada", f"guess {number}", address.format(number))
        except (Unauthorized, TooMany) as refused:
            outcomes.append(type(refused))

    threads = [threading.Thread(target=guess_once, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count(Unauthorized), outcomes.count(TooMany)) == (num_compared, 20 - num_compared)


@pytest.mark.parametrize("change", ["password", "disabled", "removed", "removed and made again"])
def test_who_logs_on_while_that_ends_gets_no_session(
    people: People, add: Add, clock: VirtualClock, change: str
) -> None:
    """The password is compared, then it changes, and all sessions end: the one that would come now, too."""
    add("ada")
    let_in = people.authenticator.authenticate_password("ada", PASSWORD, "")
    recalled = people.authenticator.recall("ada", PASSWORD)
    clock.advance(0.1)
    if change == "password":
        people.accounts.set_password("ada", "another horse")
    elif change == "disabled":
        people.accounts.change("ada", {"active": False}, by="root")
    else:
        people.accounts.remove("ada", by="root")
    if change == "removed and made again":
        add("ada")

    for identity in (let_in, recalled):
        assert identity is not None
        with pytest.raises(Unauthorized, match="a moment ago"):
            people.authenticator.open_session("ada", password_changed_at=identity.password_changed_at)
    assert people.credentials.list_sessions("ada") == []


def test_many_who_give_the_right_password_at_once_all_get_in(people: People, add: Add) -> None:
    add("ada")
    found: list[bool] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(people.authenticator.authenticate_password("ada", PASSWORD, "").logged_on)
        )
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), found.count(True)) == (20, 1), "one was compared, the others remembered"


def test_the_own_password_is_judged_like_a_logon(people: People, add: Add) -> None:
    add("ada")
    assert people.authenticator.check_password("ada", PASSWORD, "")
    for _ in range(AT_ADDRESS.num_free):
        assert not people.authenticator.check_password("ada", "wrong", "10.0.0.1")
    with pytest.raises(TooMany):
        people.authenticator.check_password("ada", "wrong again", "10.0.0.1")
