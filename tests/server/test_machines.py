"""Machines by REST and by command: who sits where, and who may drain one."""

import json
from collections.abc import Callable

import pytest
from tests.server.conftest import TOKEN, Served

from pliant.cli.app import main
from pliant.core.access import Role
from pliant.core.machine import MachineDrain


@pytest.fixture(scope="module")
def server(module_server: Served) -> Served:
    module_server.submit(name="digits", max_tasks=2)
    module_server.tick(1.0)
    return module_server


def test_a_machine_shows_its_slots_and_is_drained_by_those_who_run_the_pool(server: Served) -> None:
    (machine,) = server.http.get("/machines").json()["machines"]
    assert (machine["name"], machine["state"], machine["num_taken"], len(machine["slots"])) == ("local", "in use", 1, 4)
    assert [slot["job_name"] for slot in machine["slots"] if slot["taken"]] == ["digits"]
    (holder,) = (holder for slot in machine["slots"] for holder in slot["holders"])
    assert (holder["job_name"], holder["queue"], holder["colour"]) == ("digits", "default", 0)
    with server.client_of("ann") as ann, server.client_of("op", Role.OPERATOR) as operator:
        seen = ann.get("/machines/local").json()
        assert [slot["job_id"] for slot in seen["slots"] if slot["taken"]] == [None]
        assert [slot["holders"] for slot in seen["slots"]] == [[], [], [], []]
        assert ann.patch("/machines/local", json={"drained": True}).status_code == 403
        drained = operator.patch("/machines/local", json={"drained": True}).json()
        assert (drained["state"], drained["drained_by"]) == ("draining", "op")
        assert operator.patch("/machines/other", json={"drained": True}).status_code == 404
        assert operator.patch("/machines/local", json={"drained": "perhaps"}).status_code == 422
        assert operator.patch("/machines/local", json={"drained": False}).json()["drained_by"] is None


def test_a_machine_that_is_not_here_can_be_returned(server: Served) -> None:
    server.store.registry.add(MachineDrain(name="away", owner="ada", at=1.0), at=1.0)
    server.control.inquiries.machines.out_of_use.load()
    away = server.http.get("/machines/away").json()
    assert (away["state"], away["slots"], away["drained_by"]) == ("drained", [], "ada")
    assert server.http.patch("/machines/away", json={"drained": False}).json()["state"] == "in use"
    assert server.http.get("/machines/away").status_code == 404


@pytest.fixture
def run(server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.setenv("PLIANT_URL", f"http://{server.address}")
    monkeypatch.setenv("PLIANT_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "140")

    def command(*args: str) -> str:
        with pytest.raises(SystemExit):
            main(args)
        return capsys.readouterr().out

    return command


def test_the_command_lists_drains_and_returns(run: Callable[..., str]) -> None:
    assert run("machines").splitlines()[1].split()[:7] == ["local", "in", "use", "1", "4", "0", "CPUs"]
    assert "draining" in run("machines", "drain", "local")
    assert "in use" in run("machines", "return", "local")


def test_slots_are_excluded_by_those_who_run_the_pool_and_everybody_sees_why(server: Served) -> None:
    with server.client_of("ann") as ann, server.client_of("op", Role.OPERATOR) as operator:
        asked = {"slots": [3], "because": "ECC errors"}
        for path, body in (("exclude", asked), ("include", {"slots": [3]})):
            assert ann.post(f"/machines/local/{path}", json=body).status_code == 403
            assert operator.post(f"/machines/other/{path}", json=body).status_code == 404
        machine = operator.post("/machines/local/exclude", json=asked).json()
        assert (machine["state"], machine["num_excluded"]) == ("in use", 1)
        (slot,) = (slot for slot in ann.get("/machines/local").json()["slots"] if slot["excluded"])
        assert (slot["slot"], slot["excluded"]["by"], slot["excluded"]["because"]) == (3, "op", "ECC errors")
        assert operator.get("/overview").json()["num_slots"] == 3
        assert operator.get("/queues").json()["queues"][0]["num_slots"] == 3
        assert operator.post("/machines/local/include", json={"slots": [3]}).json()["num_excluded"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"because": ""},
        {"because": "x" * 201},
        {"because": "two\nlines"},
        {"because": "turned \u202e round"},
        {"because": "ECC errors", "slots": []},
        {"because": "ECC errors", "slots": [-1]},
        {"because": "ECC errors", "slots": [4]},
        {"because": "ECC errors", "slots": ["3"]},
        {"because": "ECC errors", "slots": list(range(5000))},
    ],
)
def test_what_says_no_reason_or_no_slot_excludes_nothing(server: Served, body: dict[str, object]) -> None:
    assert server.http.post("/machines/local/exclude", json=body).status_code == 422
    assert server.http.get("/machines/local").json()["num_excluded"] == 0


def test_the_command_excludes_and_includes_slots_and_shows_them(run: Callable[..., str]) -> None:
    shown = run("machines", "exclude", "local", "--slots", "0,2-3", "--because", "ECC errors")
    assert shown.splitlines()[1].split()[:5] == ["local", "in", "use", "1", "2"]  # one of them is held still
    assert "slot 3 of local was excluded by admin, " in shown
    assert shown.count("ECC errors") == 3
    rows = [line.split() for line in run("machines", "show", "local").splitlines()[3:]]
    assert [row[0] for row in rows if "ECC" in row] == ["0", "2", "3"]
    assert json.loads(run("machines", "include", "local", "--slots", "2", "--json"))["num_excluded"] == 2
    assert run("machines", "include", "local").count("ECC errors") == 0
    assert json.loads(run("machines", "exclude", "local", "--because", "its fan", "--json"))["state"] == "excluded"
    assert run("machines").count("local was excluded by admin") == 1
    run("machines", "include", "local")


@pytest.mark.parametrize("slots", ["", "one", "3-1", "-1", "1,", "9999", "0-99999999"])
def test_the_command_says_what_names_no_slots(
    run: Callable[..., str], capsys: pytest.CaptureFixture[str], slots: str
) -> None:
    with pytest.raises(SystemExit):
        main(["machines", "exclude", "local", f"--slots={slots}", "--because", "ECC errors"])
    assert "names no slots; give numbers such as 3 or 0,4-7" in capsys.readouterr().err
