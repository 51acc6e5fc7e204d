"""The launcher of an agent, with processes that do what an agent does with its folder: hold its lock."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.contracts import process_stage

from pliant.cluster.launcher import AgentLauncher, LaunchPlan, agent_env
from pliant.cluster.ray.launcher import SUBREAPER, fault_of_ray

until = partial(process_stage.until, timeout_s=60.0)
PLAN = LaunchPlan(machine="gpu7", pool="0a1b2c", server="10.0.0.1:7314")
AGENT = """
import json, os, pathlib, signal, sys
from pliant.files.lock import take_lock
folder = pathlib.Path(sys.argv[sys.argv.index("--state-dir") + 1])
assert take_lock(folder / "agent.lock") is not None
ids = {"pid": os.getpid(), "session": os.getsid(0), "parent": os.getppid()}
status = pathlib.Path("/proc/self/status").read_text()
masks = {line.split()[0]: line.split()[1] for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn"))}
token = sys.stdin.readline().strip()
said = ids | masks | {"token": token, "argv": sys.argv[1:], "env": dict(os.environ)}
draft = folder / "draft"
draft.write_text(json.dumps(said))
draft.rename(folder / f"said-{os.getpid()}")
print("pliant: the server does not want this machine any more", flush=True)
signal.pause()
"""


@contextmanager
def launched(folder: Path, *, abandoned_s: float = 600.0, plan: LaunchPlan = PLAN) -> Iterator[AgentLauncher]:
    program = (sys.executable, "-c", AGENT)
    launcher = AgentLauncher(plan, folder, program=program, abandoned_s=abandoned_s)
    try:
        yield launcher
    finally:
        launcher.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of an agent that has joined; what still runs there at the end is ended."""
    (tmp_path / "identity").mkdir()
    (tmp_path / "identity" / "certificate.pem").touch()
    yield tmp_path
    for pid in agents(tmp_path):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def agents(folder: Path) -> list[int]:
    """Return the numbers of all agents that were started, in no order."""
    return [int(path.name.removeprefix("said-")) for path in folder.glob("said-*")]


def first_agent(folder: Path) -> int:
    until(lambda: bool(agents(folder)), "an agent has been started")
    return agents(folder)[0]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def state(launcher: AgentLauncher) -> str:
    return launcher.look("10.0.0.1:7314").state


def test_an_agent_is_nobodys_child_and_has_nothing_that_ray_hands_down(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of-ray")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with launched(folder) as launcher:
            pid = first_agent(folder)
            until(lambda: state(launcher) == "running", "it runs")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGHUP, handler)
    said = json.loads((folder / f"said-{pid}").read_text())
    assert said["pid"] == said["session"] != os.getsid(0)
    assert said["parent"] != os.getpid()
    assert int(said["SigBlk:"], 16) == 0
    assert not int(said["SigIgn:"], 16) >> signal.SIGHUP - 1 & 1
    assert "RAY_AUTH_TOKEN" not in said["env"]
    assert "OMP_NUM_THREADS" not in said["env"]
    assert said["argv"] == ["--state-dir", str(folder), "--join", "10.0.0.1:7314", "--name", "gpu7"]
    assert is_there(pid), "it goes on without its launcher"


def test_an_agent_that_ends_is_started_again_and_what_it_said_is_known(folder: Path) -> None:
    with launched(folder) as launcher:
        first = first_agent(folder)
        os.kill(first, signal.SIGKILL)
        until(lambda: state(launcher) == "ended", "its end is seen")
        assert launcher.look(PLAN.server).said == "pliant: the server does not want this machine any more"
        until(lambda: len(agents(folder)) == 2, "there is another one")
        until(lambda: state(launcher) == "running", "it runs")


def test_the_next_launcher_finds_the_agent_and_sees_its_end(folder: Path) -> None:
    with launched(folder):
        first = first_agent(folder)
    with launched(folder) as launcher:
        until(lambda: state(launcher) == "running", "it is found")
        assert agents(folder) == [first]
        os.kill(first, signal.SIGKILL)
        until(lambda: len(agents(folder)) == 2, "there is another one")


def test_an_agent_that_was_started_with_other_options_is_started_again(folder: Path) -> None:
    with launched(folder):
        first = first_agent(folder)
    with launched(folder, plan=replace(PLAN, options=("--slots", "8"))):
        until(lambda: len(agents(folder)) == 2, "there is another one")
        assert not is_there(first)
        (second,) = {*agents(folder)} - {first}
        assert json.loads((folder / f"said-{second}").read_text())["argv"][-2:] == ["--slots", "8"]


def test_a_machine_that_has_not_joined_waits_for_a_token_which_no_argument_shows(tmp_path: Path) -> None:
    with launched(tmp_path) as launcher:
        until(lambda: state(launcher) == "waiting", "it waits")
        assert agents(tmp_path) == []
        launcher.look("10.0.0.2:7314", "pliant-join-secret")
        said = json.loads((tmp_path / f"said-{first_agent(tmp_path)}").read_text())
    assert said["token"] == "pliant-join-secret"
    assert "10.0.0.2:7314" in said["argv"], "where the server is now"
    assert not any("secret" in word for word in [*said["argv"], *said["env"].values()])
    os.kill(said["pid"], signal.SIGKILL)


def test_an_agent_of_a_pool_that_is_no_more_is_ended_until_somebody_asks_again(folder: Path) -> None:
    with launched(folder, abandoned_s=1.0) as launcher:
        until(lambda: state(launcher) == "running" and bool(agents(folder)), "it runs")
        (first,) = agents(folder)
        until(lambda: not is_there(first), "nobody asks for it")
        assert agents(folder) == [first]
        until(lambda: state(launcher) == "running" and len(agents(folder)) == 2, "somebody asks again")


def test_the_agent_of_a_machine_that_is_let_go_ends_and_joins_anew_if_the_machine_stays(folder: Path) -> None:
    with launched(folder) as launcher:
        first = first_agent(folder)
        until(lambda: launcher.look(PLAN.server, let_go=True).state == "released", "it is let go")
        assert not is_there(first)
        assert list((folder / "identity").iterdir()) == [], "its certificate has gone"
        until(lambda: state(launcher) == "waiting", "it is wanted again")
        until(lambda: launcher.look(PLAN.server, let_go=True).state == "released", "it does not wait for a token")
        launcher.look(PLAN.server, "pliant-join-secret")
        until(lambda: len(agents(folder)) == 2, "there is another agent")
    second = next(pid for pid in agents(folder) if pid != first)
    assert json.loads((folder / f"said-{second}").read_text())["token"] == "pliant-join-secret"


def test_where_somebody_else_has_started_an_agent_none_is_started(folder: Path) -> None:
    with launched(folder):
        first_agent(folder)
    (folder / "launched").unlink()
    with launched(folder) as launcher:
        until(lambda: state(launcher) == "ended", "it is told")
        assert "somebody else has started an agent" in launcher.look(PLAN.server).said


def test_below_a_ray_that_would_end_every_agent_none_is_started(folder: Path) -> None:
    class Hopeless(AgentLauncher):
        def fault(self) -> str:
            return fault_of_ray({SUBREAPER: "1"})

    launcher = Hopeless(PLAN, folder, program=(sys.executable, "-c", AGENT))
    try:
        until(lambda: state(launcher) == "ended", "it is told")
        assert "start Ray without that setting" in launcher.look(PLAN.server).said
    finally:
        launcher.close()
    assert agents(folder) == []
    assert fault_of_ray({}) == ""


def test_a_launcher_that_is_closed_ends_its_agent_if_it_shall(folder: Path) -> None:
    with launched(folder) as launcher:
        first = first_agent(folder)
        launcher.close(end_agent=True)
        assert not is_there(first)


def test_an_agent_gets_the_environment_of_the_machine() -> None:
    env = {"PATH": "/bin", "RAY_ADDRESS": "1", "OMP_NUM_THREADS": "1", "PLIANT_DATABASE": "p", "WANDB_API_KEY": "k"}
    assert agent_env(env) == {"PATH": "/bin", "WANDB_API_KEY": "k"}


def test_a_launcher_that_is_closed_leaves_no_thread(folder: Path) -> None:
    with launched(folder):
        first_agent(folder)  # one that has not said yet that it is there would be left behind
    assert not [thread for thread in threading.enumerate() if thread.name == "launcher"]
