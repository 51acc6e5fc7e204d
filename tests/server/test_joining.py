"""Who may join, by REST and by command: tokens, labels, and machines that are removed."""

import json
from collections.abc import Callable, Iterator

import pytest
from tests.server.conftest import TOKEN, Served

from pliant.api.machines import JoinTokenRequest
from pliant.cli.app import main
from pliant.client import Client
from pliant.control.requests.joining import Joining, JoiningRoom
from pliant.core.access import Role
from pliant.core.errors import Conflict
from pliant.core.joining import JoinedMachine, parse_join_token

PIN = "2d" * 32


@pytest.fixture(scope="module")
def server(module_server: Served) -> Served:
    module_server.submit(name="digits", max_tasks=2)
    module_server.tick(1.0)
    return module_server


@pytest.fixture
def joining(server: Served) -> Iterator[Joining]:
    """A server that takes machines; gpu9 has joined, and is away."""
    numbers = iter(range(1, 10_000))
    found = Joining(
        registry=server.store.registry, now=server.clock.now, token_hex=lambda size: f"{next(numbers):0{2 * size}x}"
    )
    for kept in found.tokens():
        found.revoke_token(kept.noun.name)
    found.note(JoinedMachine(name="gpu9", owner="ada", fingerprint="ab" * 32, joined_at=5.0, slots=(0, 1)))
    machines = server.control.inquiries.machines
    machines.joining = JoiningRoom(
        joining=found,
        pin=lambda: PIN,
        address=lambda: "10.0.0.1:7312",
        is_here=lambda name: name == "local",
        forget=lambda name: None,
    )
    yield found
    machines.joining = None


def test_a_token_is_made_listed_and_revoked_by_those_who_run_the_pool(server: Served, joining: Joining) -> None:
    with server.client_of("ann") as ann, server.client_of("op", Role.OPERATOR) as operator:
        for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/x")):
            assert ann.request(method, f"/machines/tokens{path}", json={}).status_code == 403
        answer = operator.post("/machines/tokens", json={"machine": "gpu3", "valid_s": 60})
        made = answer.json()
        token_id, secret, pin = parse_join_token(made["token"])
        assert (answer.status_code, pin, made["command"]) == (201, PIN, "pliant agent --join 10.0.0.1:7312")
        assert made["info"] == {
            "id": token_id,
            "owner": "op",
            "machine": "gpu3",
            "created_at": server.clock.now(),
            "expires_at": server.clock.now() + 60,
            "max_uses": 1,
            "num_uses": 0,
        }
        listed = operator.get("/machines/tokens")
        assert listed.json()["tokens"] == [made["info"]]
        assert secret not in listed.text
        assert joining.admit(token_id, secret, "gpu3").num_uses == 1
        assert operator.get("/machines/tokens").json()["tokens"][0]["num_uses"] == 1
        assert operator.delete(f"/machines/tokens/{token_id}").status_code == 204
        assert operator.delete(f"/machines/tokens/{token_id}").status_code == 404
        assert operator.get("/machines/tokens").json() == {"tokens": []}
    assert secret not in json.dumps([repr(entry) for entry in server.store.audit.entries()])


@pytest.mark.parametrize(
    "body",
    [
        {"machine": ""},
        {"machine": "local"},
        {"machine": "a/b"},
        {"machine": "a\n"},
        {"machine": "x" * 64},
        {"machine": 5},
        {"valid_s": 0},
        {"valid_s": 1e9},
        {"valid_s": "60"},
        {"max_uses": 0},
        {"max_uses": 10_000},
        {"max_uses": 1.5},
        {"machine": "gpu1", "max_uses": 2},
        {"pin": "00"},
    ],
)
def test_what_is_no_wish_for_a_token_makes_none(server: Served, joining: Joining, body: dict[str, object]) -> None:
    assert server.http.post("/machines/tokens", json=body).status_code == 422
    assert joining.tokens() == []


def test_a_server_that_takes_no_machines_says_so(server: Served) -> None:
    assert server.http.get("/machines/tokens").json() == {"tokens": []}
    for method, path in (("POST", "tokens"), ("DELETE", "tokens/x"), ("DELETE", "local")):
        refused = server.http.request(method, f"/machines/{path}", json={})
        assert refused.status_code == 409
        assert "was not started with --cluster" in refused.json()["detail"]


def test_labels_are_given_by_those_who_run_the_pool_and_seen_by_all(server: Served) -> None:
    with server.client_of("ann") as ann, server.client_of("op", Role.OPERATOR) as operator:
        asked = {"labels": {"rack": "7", "zone": ""}}
        assert ann.put("/machines/local/labels", json=asked).status_code == 403
        assert operator.put("/machines/gpu7/labels", json=asked).status_code == 404
        machine = operator.put("/machines/local/labels", json=asked).json()
        assert (machine["labels"], machine["given_labels"]) == ({"rack": "7"}, {"rack": "7", "zone": ""})
        assert ann.get("/machines/local").json()["labels"] == {"rack": "7"}
        group = {"name": "rack7", "hosts": {"labels": {"rack": "7"}}}
        assert server.http.post("/resource-groups", json=group).json()["num_slots"] == 4
        assert operator.put("/machines/local/labels", json={"labels": {}}).json()["labels"] == {}
        (shown,) = (one for one in operator.get("/resource-groups").json()["groups"] if one["group"]["name"] == "rack7")
        assert shown["num_slots"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"labels": None},
        {"labels": {"": "x"}},
        {"labels": {"a b": "x"}},
        {"labels": {"a": "x y"}},
        {"labels": {"a": "\n"}},
        {"labels": {"a": 5}},
        {"labels": {"a" * 61: "x"}},
        {"labels": {"a": "x" * 61}},
        {"labels": {f"a{number}": "" for number in range(21)}},
    ],
)
def test_what_is_no_label_changes_nothing(server: Served, body: dict[str, object]) -> None:
    assert server.http.put("/machines/local/labels", json=body).status_code == 422
    assert server.http.get("/machines/local").json()["given_labels"] == {}


def test_a_machine_that_is_away_is_shown_and_removed(server: Served, joining: Joining) -> None:
    with server.client_of("ann") as ann, server.client_of("op", Role.OPERATOR) as operator:
        assert ann.get("/machines/gpu9").json()["state"] == "away"
        assert ann.delete("/machines/gpu9").status_code == 403
        assert operator.delete("/machines/gpu9").status_code == 204
        assert operator.delete("/machines/gpu9").status_code == 404
        refused = operator.delete("/machines/local")
        assert (refused.status_code, "has not joined" in refused.json()["detail"]) == (409, True)


def test_the_client_does_what_the_routes_do(server: Served, joining: Joining) -> None:
    with Client(f"http://{server.address}", TOKEN) as client:
        made = client.machines.make_token(JoinTokenRequest(max_uses=2))
        assert client.machines.tokens() == (made.info,)
        client.machines.revoke_token(made.info.id)
        assert client.machines.tokens() == ()
        assert dict(client.machines.label("gpu9", {"rack": "7"}).labels) == {"rack": "7"}
        client.machines.remove("gpu9")
        with pytest.raises(Conflict):
            client.machines.remove("local")


@pytest.fixture
def run(server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.setenv("PLIANT_URL", f"http://{server.address}")
    monkeypatch.setenv("PLIANT_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "80")

    def command(*args: str) -> str:
        with pytest.raises(SystemExit):
            main(args)
        return "".join(capsys.readouterr())

    return command


def test_the_command_makes_a_token_and_says_what_to_type(run: Callable[..., str], joining: Joining) -> None:
    assert "`pliant machines token` makes one" in run("machines", "tokens")
    said = run("machines", "token", "gpu3", "--valid", "30m")
    assert "gpu3 can join until " in said
    (text,) = (line for line in said.splitlines() if line.startswith("pliant-join-"))
    token_id = parse_join_token(text)[0]  # it is whole, however narrow the terminal is
    assert "\n    pliant agent --join 10.0.0.1:7312\n" in said
    (row,) = (line.split() for line in run("nodes", "tokens").splitlines()[1:])
    assert (row[:5], row[-1]) == ([token_id, "gpu3", "0", "of", "1"], "admin")
    assert run("machines", "revoke", token_id) == f"{token_id} lets nobody join any more.\n"
    made = json.loads(run("nodes", "token", "--uses", "16", "--json"))
    assert (made["info"]["max_uses"], made["info"]["machine"]) == (16, None)
    assert "16 machines can join until" in run("machines", "token", "--uses", "16")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("token", "a b"), "NAME: "),
        (("token", "--valid", "soon"), "--valid: 'soon' is no length of time"),
        (("token", "--valid", "60d"), "--valid: "),
        (("token", "--uses", "0"), "--uses: "),
        (("token", "gpu3", "--uses", "2"), "--uses: "),
        (("revoke", "nonsense"), "there is no join token 'nonsense'"),
        (("label", "local"), "no label is given"),
        (("label", "local", "rack"), "'rack' is no label; give it as NAME=VALUE"),
        (("label", "local", "=7"), "'=7' is no label"),
        (("label", "local", "a b=7"), "letters, digits"),
        (("label", "gpu7", "rack=7"), "there is no machine 'gpu7'"),
        (("remove", "local"), "local has not joined this pool"),
        (("remove", "gpu7"), "there is no machine 'gpu7'"),
    ],
)
def test_the_command_says_what_is_wrong(
    run: Callable[..., str], joining: Joining, words: tuple[str, ...], said: str
) -> None:
    assert said in run("machines", *words)


def test_the_command_labels_and_removes(run: Callable[..., str], joining: Joining) -> None:
    labelled = json.loads(run("nodes", "label", "local", "rack=7", "zone=b", "--json"))
    assert labelled["labels"] == {"rack": "7", "zone": "b"}
    labelled = json.loads(run("nodes", "label", "local", "zone=", "--json"))
    assert (labelled["labels"], labelled["given_labels"]) == ({"rack": "7"}, {"rack": "7", "zone": ""})
    assert json.loads(run("nodes", "label", "local", "--clear", "--json"))["given_labels"] == {}
    assert [line.split()[:2] for line in run("nodes", "list").splitlines()[1:]] == [["gpu9", "away"], ["local", "in"]]
    assert run("nodes", "remove", "gpu9") == "gpu9 is in the pool no more.\n"
    assert "draining" in run("nodes", "drain", "local")
    assert "in use" in run("nodes", "undrain", "local")
