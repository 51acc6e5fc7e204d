"""The agent of the server's own machine, with a program that does what an agent does with its folder: hold its lock."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from tests.contracts import process_stage

from pliant.cluster import process
from pliant.cluster.launcher import LaunchPlan
from pliant.control.requests.joining import Joining, JoiningRoom
from pliant.core.errors import Conflict
from pliant.core.joining import JoinedMachine, machine_name_fault
from pliant.entry.server.rooms.own_agent import OWN, OwnAgent, own_machine_name
from pliant.sim.registry import MemoryRegistry

until = partial(process_stage.until, timeout_s=60.0)
PLAN = LaunchPlan(machine="head", pool="0a1b2c", server="10.0.0.1:7314", options=("--slots", "2"))
PIN = "f" * 64
AGENT = """
import json, os, pathlib, signal, sys
from pliant.files.lock import take_lock
folder = pathlib.Path(sys.argv[sys.argv.index("--state-dir") + 1])
assert take_lock(folder / "agent.lock") is not None
draft = folder / "draft"
draft.write_text(json.dumps({"pid": os.getpid(), "argv": sys.argv[1:], "token": sys.stdin.readline().strip()}))
draft.rename(folder / "said")
signal.pause()
"""


class Room:
    """How machines join a pool, and what was taken out of it."""

    def __init__(self) -> None:
        numbers = count(1)
        self.joining = Joining(
            registry=MemoryRegistry(), now=lambda: 1000.0, token_hex=lambda size: f"{next(numbers):0{2 * size}x}"
        )
        self.joins = JoiningRoom(
            joining=self.joining,
            pin=lambda: PIN,
            address=lambda: PLAN.server,
            is_here=lambda _name: False,
            forget=lambda _name: None,
        )
        self.busy = False

    def add(self, owner: str) -> None:
        self.joining.note(JoinedMachine(name="head", owner=owner, fingerprint="a" * 64, joined_at=1.0))

    def remove(self, name: str) -> None:
        if self.busy:
            raise Conflict(f"tasks on {name} may be running still")
        self.joining.remove(name)

    @contextmanager
    def agent(self, folder: Path) -> Iterator[OwnAgent]:
        agent = OwnAgent(PLAN, folder, self.joins, program=(sys.executable, "-c", AGENT))
        agent.start(self.remove)
        try:
            yield agent
        finally:
            agent.close()


def said(folder: Path) -> dict[str, object]:
    until((folder / "said").exists, "an agent runs")
    found: dict[str, object] = json.loads((folder / "said").read_text())
    return found


def test_it_joins_with_a_token_of_the_server_s_and_ends_with_it(tmp_path: Path) -> None:
    room = Room()
    with room.agent(tmp_path):
        agent = said(tmp_path)
    (kept,) = room.joining.tokens()
    assert (kept.noun.owner, kept.noun.machine, kept.noun.max_uses) == (OWN, "head", 1)
    assert str(agent["token"]).startswith(f"pliant-join-{kept.noun.name}.")
    own = ["--state-dir", str(tmp_path), "--join", PLAN.server, "--name", "head", "--slots", "2"]
    assert agent["argv"] == own, "and no token among them"
    assert process.stamp(int(str(agent["pid"]))) is None, "it has ended"


def test_a_machine_of_its_name_that_somebody_let_join_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room()
    room.add(owner="ada")
    with room.agent(tmp_path):
        until(lambda: "called head is in the pool already" in caplog.text, "it is said")
        assert not room.joining.tokens()
        room.joining.remove("head")
        assert said(tmp_path)["token"], "once it has gone there is room for this one"
    assert caplog.text.count("in the pool already") == 1


def test_one_whose_folder_was_lost_joins_anew_as_soon_as_nothing_can_run_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room()
    room.add(owner=OWN)
    room.busy = True
    with room.agent(tmp_path):
        until(lambda: "cannot join its pool yet: tasks on head may be running still" in caplog.text, "it is said")
        assert room.joining.get("head") is not None
        room.busy = False
        assert said(tmp_path)["token"]
    assert room.joining.get("head") is None, "what joined before is forgotten"


def test_a_machine_is_called_as_its_host_if_one_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, name in (("gpu7.example.org", "gpu7"), ("local", "server"), ("-", "server")):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        assert own_machine_name() == name
        assert not machine_name_fault(name)
