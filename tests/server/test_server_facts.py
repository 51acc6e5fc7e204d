"""What the server was started with is told to those who run it."""

from dataclasses import replace
from typing import Any

from pliant.core.access import Role
from pliant.core.server_option import ServerFacts, ServerOption

Served = Any


def test_what_the_server_was_started_with_is_told_to_those_who_run_it(server: Served) -> None:
    assert server.http.get("/settings").status_code == 404
    facts = ServerFacts(
        version="1",
        started_at=1.0,
        url="http://here",
        store="sqlite",
        database="sqlite in the home folder",
        home=str(server.home),
        data_root="/data",
        options=(ServerOption(name="--slots", value="8", source="option"),),
    )
    server.app.state.context = replace(server.app.state.context, facts=facts)
    found = server.http.get("/settings").json()
    assert (found["home"], found["options"]) == (
        str(server.home),
        [{"name": "--slots", "value": "8", "source": "option"}],
    )
    with server.client_of("op", Role.OPERATOR) as operator, server.client_of("ann") as ann:
        assert operator.get("/settings").status_code == 200
        assert ann.get("/settings").status_code == 403
