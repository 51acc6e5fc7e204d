"""Gateways have endpoints started and stopped for those who may: by the rules of REST, and as its audit log has it."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.server.conftest import TOKEN, Served
from tests.server.test_endpoints import deploy
from tests.server.test_gateways import HELLO, next_of, open_link, say
from websockets.sync.client import ClientConnection

from pliant.core.access import Permission, Role
from pliant.core.people import TokenSettings
from pliant.core.serving import Serve, Switch, SwitchOutcome


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("switch"))
    assert deploy(made.http).status_code == 201
    yield made
    made.close()


@pytest.fixture
def link(served: Served) -> Iterator[ClientConnection]:
    with ExitStack() as stack:
        opened = stack.enter_context(open_link(served))
        say(opened, HELLO)
        yield opened


def switch(link: ClientConnection, token: str, *, start: bool, endpoint: str = "digits") -> SwitchOutcome:
    say(link, Switch(number=3, token=token, endpoint=endpoint, start=start, address="192.0.2.7"))
    while not isinstance(answer := next_of(link), SwitchOutcome):
        assert isinstance(answer, Serve)
    assert answer.number == 3
    return answer


def token_of(served: Served, name: str, *scopes: Permission, role: Role = Role.USER) -> str:
    if served.people.accounts.find(name) is None:
        served.add_user(name, role)
    asked = TokenSettings(label="test", scopes=frozenset(scopes) or None)
    return served.people.credentials.make_token(name, asked).text


def entries(served: Served) -> list[tuple[str, str, int, str]]:
    return [(one.who, one.action, one.status, one.address) for one in served.store.audit.entries(limit=3)]


def test_an_endpoint_is_stopped_and_started_and_the_picture_shows_it_at_that_revision(
    served: Served, link: ClientConnection
) -> None:
    for start in (False, True):
        done = switch(link, TOKEN, start=start)
        view = served.http.get("/endpoints/digits").json()
        assert (done.status, done.revision, view["started"]) == (200, view["revision"], start)
        served.room.keeper.look()
        while not isinstance(shown := next_of(link), Serve) or shown.endpoints[0].revision < done.revision:
            continue
        assert shown.endpoints[0].started is start
        verb = "start" if start else "stop"
        assert ("admin", f"POST /v1/endpoints/digits/{verb}", 200, "192.0.2.7") in entries(served)


def test_who_may_not_change_it_changes_nothing_and_is_written_down(served: Served, link: ClientConnection) -> None:
    asks = token_of(served, "bob", Permission.INFER)
    before = served.http.patch("/endpoints/digits", json={"shared_with": ["bob"]}).json()["revision"]
    refused = switch(link, asks, start=False)
    assert (refused.status, "needs the scope 'endpoints:write'" in refused.message) == (403, True)
    assert ("bob", "POST /v1/endpoints/digits/stop", 403, "192.0.2.7") in entries(served)
    for token, status, words in (
        (token_of(served, "bob"), 403, "admin"),
        (token_of(served, "vic", role=Role.VIEWER), 403, "'endpoints:write', which a viewer does not have"),
        (token_of(served, "cid"), 404, "there is no endpoint 'digits'"),
        ("worthless", 401, "token"),
    ):
        refused = switch(link, token, start=False)
        assert (refused.status, words in refused.message) == (status, True), refused
    assert served.http.get("/endpoints/digits").json()["revision"] == before


@pytest.mark.parametrize("name", ["", "other", "../jobs/job-1", "digits/versions/1", "digits?x=", "a\r\nb", "ü" * 300])
def test_what_is_no_endpoint_is_not_there(served: Served, link: ClientConnection, name: str) -> None:
    refused = switch(link, TOKEN, start=True, endpoint=name)
    assert (refused.status, bool(refused.message)) == (404, True)


def test_a_token_that_no_header_could_hold_is_worthless(served: Served, link: ClientConnection) -> None:
    assert switch(link, "\x00", start=True).status == 401
    assert switch(link, "ü" * 2000, start=True).status == 401
