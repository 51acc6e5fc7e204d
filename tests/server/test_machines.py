"""Machines by REST and by command: who sits where, and who may drain one."""

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
    assert run("machines").splitlines()[1].split()[:6] == ["local", "in", "use", "1", "4", "0"]
    assert "draining" in run("machines", "drain", "local")
    assert "in use" in run("machines", "return", "local")
