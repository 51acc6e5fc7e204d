"""The searches of a client: what it sends, and what it makes of the answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_searches import SETTINGS, SearchServer, page, search_server, trial, view

from pliant.api.searches import DecisionPage, SearchPage, SearchPatch, SearchRequest
from pliant.client import Client
from pliant.core.errors import Conflict, InvalidInput, NotFound
from pliant.core.search import Constraint, Decision, SearchState, TrialState
from pliant.core.space import SearchParameter


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        yield server


@pytest.fixture
def client(server: SearchServer) -> Iterator[Client]:
    with Client(server.url, server.token, timeout_s=30.0) as client:
        yield client


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "my train.py"
    path.write_text("import pliant.train\n")
    return path


def test_a_search_is_begun_in_one_call(client: Client, server: SearchServer, script: Path) -> None:
    server.answer("POST /v1/searches", view())
    server.answer("GET /v1/searches", SearchPage(searches=(view(name="My-Train"),), next=None))

    search = client.tune(
        script,
        parameters={
            "lr": "log:1e-5..1e-1",
            "opt": {"kind": "choice", "choices": ["sgd", "adam"]},
            "momentum": SearchParameter(kind="float", low=0, high=0.9, when={"opt": ("sgd",)}),
        },
        metric="val_loss:min",
        max_trials=40,
        halving="1..27",
        constraints=["memory_gb<=8", Constraint(metric="acc", lower=0.9), {"metric": "size", "upper": 2}],
        max_tasks=8,
        args=["--epochs", "27"],
    )

    assert server.sent("POST /v1/searches") == [
        {
            "name": "my-train-2",
            "script": "my train.py",
            "max_tasks": 8,
            "args": ["--epochs", "27"],
            "parameters": {
                "lr": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True},
                "opt": {"kind": "choice", "choices": ["sgd", "adam"]},
                "momentum": {"kind": "float", "low": 0.0, "high": 0.9, "when": {"opt": ["sgd"]}},
            },
            "objectives": [{"metric": "val_loss", "direction": "minimize", "reading": "min"}],
            "constraints": [
                {"metric": "memory_gb", "upper": 8.0},
                {"metric": "acc", "lower": 0.9},
                {"metric": "size", "upper": 2.0},
            ],
            "halving": {"max": 27},
            "max_trials": 40,
        }
    ]
    assert (search.name, repr(search), search.search) == ("digits", "<search digits>", view())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parameters": {"lr": "1e-5..1e-1"}}, "parameters.lr: '1e-5..1e-1': '1e-5..1e-1' is no kind of parameter"),
        ({"parameters": {"lr": "log:1..0.1"}}, "parameters.lr.low: 1 is above high, 0.1"),
        ({"parameters": {}}, "parameters: it has too few entries"),
        ({"parameters": {"lr": "log:1e-5..1"}, "halving": "27"}, "halving: '27' says no rungs"),
        ({"parameters": {"lr": "log:1e-5..1"}, "max_trails": 3}, "is 'max_trials' meant?"),
        ({"parameters": {"lr": "log:1e-5..1"}, "direction": "up"}, "'up' is not possible"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    client: Client, server: SearchServer, script: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        client.tune(script, **{"metric": "loss", "name": "x", "max_trials": 3, **options})

    assert said in str(caught.value)
    assert server.asked == []


def test_of_several_scripts_the_one_that_is_named_is_searched(
    client: Client, server: SearchServer, script: Path
) -> None:
    (script.parent / "other.py").write_text("import pliant.train\n")
    server.answer("POST /v1/searches", view())

    client.tune(
        script.parent, parameters={"lr": "float:0..1"}, metric="loss", name="x", max_trials=3, script="other.py"
    )

    assert [body["script"] for body in server.sent("POST /v1/searches")] == ["other.py"]


def test_a_request_is_sent_as_it_is(client: Client, server: SearchServer, script: Path) -> None:
    server.answer("POST /v1/searches", view())
    request = SearchRequest.model_validate(
        {
            "name": "digits",
            "script": "my train.py",
            "parameters": {"lr": {"kind": "fixed", "value": 1}},
            "objectives": [{"metric": "a", "direction": "maximize"}],
            "target": 0.9,
        }
    )

    assert client.searches.submit(script, request) == view()
    assert server.sent("POST /v1/searches") == [request.model_dump(mode="json", exclude_defaults=True)]


def test_lists_are_read_to_their_end(client: Client, server: SearchServer) -> None:
    server.answer(
        "GET /v1/searches",
        SearchPage(searches=(view(name="a"),), next="a"),
        SearchPage(searches=(view(name="b"),), next=None),
    )
    server.answer("GET /v1/searches/a/trials", page(trial(0), next=0), page(trial(1)))
    made = Decision(search="a", position=1, at=1.0, kind="ask", trial=0, reason="it is chosen")
    server.answer(
        "GET /v1/searches/a/decisions", DecisionPage(decisions=(made,), last=1), DecisionPage(decisions=(), last=1)
    )

    assert [one.name for one in client.searches.list()] == ["a", "b"]
    found = client.searches.trials("a", states=[TrialState.RUNNING, "paused"])
    assert [one.number for one in found] == [0, 1]
    assert list(client.searches.decisions("a")) == [made]
    queries = [{name: value for name, value in one.query.items() if name != "limit"} for one in server.asked]
    assert queries == [
        {},
        {"after": ["a"]},
        {"after": ["-1"], "state": ["running", "paused"]},
        {"after": ["0"], "state": ["running", "paused"]},
        {"after": ["0"]},
        {"after": ["1"]},
    ]


def test_a_search_is_shown_changed_stopped_and_resumed(client: Client, server: SearchServer) -> None:
    for route in ("GET ", "PATCH ", "POST /stop", "POST /resume", "POST /trials"):
        method, _, end = route.partition(" ")
        server.answer(f"{method} /v1/searches/digits{end}", view())
    server.answer("DELETE /v1/searches/digits", 204)
    server.answer("GET /v1/searches/digits/best", page(trial(4), trial(2)))
    server.answer("GET /v1/searches/digits/trials/4", trial(4, results=(float("nan"),)))

    assert client.searches.get("digits").settings == SETTINGS
    client.searches.change("digits", max_trials=None, parallel=4)
    client.searches.change("digits", SearchPatch.model_validate({"description": "more"}), revision=3)
    client.searches.stop("digits")
    client.searches.resume("digits")
    client.searches.add_trials("digits", [{"lr": 0.1, "layers": (64, 64)}])
    client.searches.remove("digits")
    assert [one.number for one in client.searches.best("digits", limit=2)] == [4, 2]
    assert str(client.searches.trial("digits", 4).results) == "(nan,)"
    assert server.sent("PATCH /v1/searches/digits") == [{"max_trials": None, "parallel": 4}, {"description": "more"}]
    assert server.sent("POST /v1/searches/digits/trials") == [{"trials": [{"lr": 0.1, "layers": [64, 64]}]}]
    with pytest.raises(TypeError):
        client.searches.change("digits", SearchPatch.model_validate({"parallel": 1}), max_trials=3)
    with pytest.raises(NotFound):
        client.searches.get("other")
    server.answer("POST /v1/searches/digits/stop", 409)
    with pytest.raises(Conflict):
        client.searches.stop("digits")


def test_who_waits_sees_every_look_and_gets_what_came_to_rest(client: Client, server: SearchServer) -> None:
    rested = view(state=SearchState.STOPPED)
    server.answer("GET /v1/searches/digits", view(), view(revision=6), rested)
    seen: list[int] = []

    found = client.searches.wait("digits", poll_s=0.001, on_poll=lambda one: seen.append(one.revision))

    assert (found, seen) == (rested, [5, 6, 5])
    server.answer("GET /v1/searches/digits", view())
    with pytest.raises(TimeoutError, match="digits still runs after 0 s"):
        client.searches.wait("digits", timeout_s=0.0)


@pytest.mark.parametrize(
    ("text", "name"), [("train", "train-3"), ("-my net_", "my-net"), ("x" * 60, "x" * 48 + "-2"), ("é", None)]
)
def test_a_free_name_is_near_to_the_scripts(client: Client, server: SearchServer, text: str, name: str | None) -> None:
    taken = tuple(view(name=one) for one in ("Train", "train-2", "x" * 50))
    server.answer("GET /v1/searches", SearchPage(searches=taken, next=None))

    if name is None:
        with pytest.raises(InvalidInput, match="gives the search no name"):
            client.searches.free_name(text)
    else:
        assert client.searches.free_name(text) == name
