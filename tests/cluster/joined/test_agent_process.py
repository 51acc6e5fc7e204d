"""How the process of an agent begins, and how it does not: each time with words that say what to do."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.joined.pool import PROBE, AgentProcess, Pool
from tests.contracts.process_stage import DEADLINE_S, NODE, until

from pliant.cluster.link.dial import read_server_host
from pliant.core.errors import InvalidInput
from pliant.core.job import NodeId
from pliant.core.joining import parse_join_token
from pliant.entry.own_machine import AGENTS_FILE, shared_probe


@pytest.fixture
def agent(pool: Pool) -> Iterator[AgentProcess]:
    """Give an agent that was not started yet."""
    made = AgentProcess(pool=pool, name=NODE, port=pool.port)
    pool.agents.append(made)
    yield made
    made.kill()


def refused(agent: AgentProcess) -> str:
    """Start an agent that cannot begin, and return what it says last."""
    agent.start()
    assert agent.process.wait(DEADLINE_S) == 2, agent.log()
    return agent.log()


def test_a_machine_needs_no_token_again_and_is_found_where_it_was(pool: Pool, agent: AgentProcess) -> None:
    agent.start()
    until(pool.is_here, "it is there")
    agent.kill()
    agent.token = "none"
    agent.start()
    until(lambda: "serves the server" in agent.log().rpartition("has joined")[2], "it serves")

    assert "pliant-join" not in agent.log()


def test_no_secret_is_logged(pool: Pool, agent: AgentProcess) -> None:
    agent.token = pool.token()
    agent.start()
    until(pool.is_here, "it is there")

    assert parse_join_token(agent.token)[1] not in agent.log()
    assert "PRIVATE KEY" not in agent.log()


@pytest.mark.parametrize("token", ["", "hello", "pliant-join-00.00.00", "x" * 5000])
def test_what_is_no_token_is_refused(agent: AgentProcess, token: str) -> None:
    agent.token = token

    assert "token" in refused(agent)


def test_a_token_of_no_use_is_refused_with_the_servers_words(pool: Pool, agent: AgentProcess) -> None:
    agent.token = pool.token(machine="gpu7")

    assert "'gpu7', and this one wants to be 'here'" in refused(agent)


def test_an_interface_that_is_none_is_refused(agent: AgentProcess) -> None:
    agent.options = ["--interface", "nope0"]

    assert "'nope0' is no interface of this machine; there are" in refused(agent)


def test_labels_that_are_none_are_refused(agent: AgentProcess) -> None:
    agent.options = ["--label", "rack"]

    assert "'rack' is no label" in refused(agent)


@pytest.mark.parametrize("content", [None, "junk", "{}", '{"probe": "another folder"}'])
def test_a_machine_that_sees_another_folder_where_the_servers_is_leaves_that_alone(
    pool: Pool, agent: AgentProcess, content: str | None
) -> None:
    path = pool.root / "home" / AGENTS_FILE
    path.unlink() if content is None else path.write_text(content)

    said = refused(agent)
    assert "does not see the server's state folder" in said
    assert f"{path.parent.parent}: something else is there" in said


def begin_again(pool: Pool, **rules: object) -> None:
    """Let the server begin with other rules for machines."""
    pool.stop()
    pool.rules = rules
    pool.begin()


def test_a_machine_that_has_nothing_where_the_servers_folder_is_copies_files_and_is_known_by_its_mark(
    pool: Pool, agent: AgentProcess, tmp_path: Path
) -> None:
    begin_again(pool, home=str(tmp_path / "elsewhere" / "home"))
    agent.start()
    until(pool.is_here, "it is there")
    assert f"are copied to {tmp_path}/elsewhere/home and back" in agent.log()
    agent.kill()
    (tmp_path / "elsewhere" / "home" / AGENTS_FILE).parent.mkdir()
    (tmp_path / "elsewhere" / "home" / AGENTS_FILE).write_text('{"probe": "the same folder"}')  # as it is copied
    agent.start()
    until(lambda: agent.log().count("are copied to") == 2, "it knows its copies")


def test_data_of_a_machine_s_own_are_left_alone(pool: Pool, agent: AgentProcess, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").touch()
    begin_again(pool, home=str(tmp_path / "elsewhere"), data_root=str(tmp_path / "data"))
    agent.start()
    until(pool.is_here, "it is there")

    assert f"has data of its own in {tmp_path}/data: nothing is copied there" in agent.log()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["mine"]


def test_a_folder_that_all_machines_must_see_is_looked_for(pool: Pool, agent: AgentProcess, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    begin_again(pool, home=str(tmp_path / "elsewhere"), shared=[str(shared)])
    said = refused(agent)
    assert f"here does not see the folder {shared} of its pool" in said
    assert "mount it" in said

    shared.mkdir()
    shared_probe(shared, PROBE).write_text('{"probe": "the same folder"}')
    agent.start()
    until(pool.is_here, "it is there")


def test_one_folder_has_one_agent(pool: Pool, agent: AgentProcess) -> None:
    agent.start()
    until(pool.is_here, "it is there")
    second = AgentProcess(pool=pool, name=NodeId("other"), port=pool.port)
    second.options = ["--state-dir", str(agent.folder)]

    said = refused(second)
    assert "an agent runs already with the folder" in said
    assert pool.is_here()


def test_a_copy_of_a_machines_folder_is_told_so_and_does_no_harm(pool: Pool, agent: AgentProcess) -> None:
    agent.start()
    until(pool.is_here, "it is there")
    copy = AgentProcess(pool=pool, name=NodeId("copy"), port=pool.port)
    pool.agents.append(copy)
    (copy.folder / "identity").mkdir(parents=True)
    for path in (agent.folder / "identity").iterdir():
        (copy.folder / "identity" / path.name).write_bytes(path.read_bytes())
    copy.start()

    until(lambda: "two have the same certificate" in copy.log(), "it is told")
    assert pool.is_here()
    assert agent.process.poll() is None
    copy.kill()


@pytest.mark.slow
def test_the_agent_of_a_machine_that_is_removed_ends_its_tasks_and_itself(pool: Pool, agent: AgentProcess) -> None:
    agent.start()
    stage = pool.stage()
    exits = stage.exits()
    task_id = stage.start("job-1.1")
    stage.pid_of(task_id)
    pool.joining.remove(NODE)
    pool.hub.hang_up(NODE)
    pool.nodes.forget(NODE)

    assert "was removed from the pool" in stage.exit_of(task_id, exits).cause
    assert [node.id for node in pool.nodes.observe().nodes] == ["local"]
    assert agent.process.wait(DEADLINE_S) == 2
    assert "the server does not want this machine any more" in agent.log()


def test_an_agent_that_cannot_reach_its_server_says_so_and_goes_on(pool: Pool, agent: AgentProcess) -> None:
    agent.start()
    until(pool.is_here, "it is there")
    pool.stop()
    until(lambda: "cannot be reached" in agent.log(), "it says so")
    assert agent.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        agent.process.wait(0.01)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu0", "gpu0:7314"),
        ("gpu0:80", "gpu0:80"),
        (" 10.0.0.1:1 ", "10.0.0.1:1"),
        ("[::1]", "[::1]:7314"),
        ("[::1]:80", "[::1]:80"),
        ("::1", "[::1]:7314"),
    ],
)
def test_where_a_server_is(text: str, found: str) -> None:
    assert str(read_server_host(text)) == found


@pytest.mark.parametrize(
    "text", ["", ":80", "gpu0:", "gpu0:x", "gpu0:0", "gpu0:65536", "[]:80", "[::1", "[::1]x", "a b"]
)
def test_where_no_server_can_be(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no address of a server"):
        read_server_host(text)


def test_the_file_with_the_servers_is_where_the_server_writes_it() -> None:
    assert Path("address") / "agents.json" == AGENTS_FILE
