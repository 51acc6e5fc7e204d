"""What a job keeps in shared memory outlives its tasks and the agent, and nothing outlives the job."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.process_stage import ProcessStage, until

from pliant.cluster.agent.shared_memory import SharedMemory
from pliant.cluster.agent.space import remove_all
from pliant.cluster.node import NodeCluster
from pliant.core.job import JobId, TaskId

BringUp = Callable[..., ProcessStage[NodeCluster]]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[[str], SharedMemory]]:
    """Give a function that starts the part of an agent that is called so."""
    agents: list[SharedMemory] = []

    def start(name: str) -> SharedMemory:
        state_dir = tmp_path / name
        state_dir.mkdir(exist_ok=True)
        agents.append(SharedMemory(tmp_path / "shm", state_dir))
        return agents[-1]

    yield start
    for one in agents:
        one.close()


def filled(memory: SharedMemory, *job_ids: str) -> None:
    for job_id in job_ids:
        folder = memory.folder(job_id)
        assert folder is not None
        memory.make(str(folder))
        (folder / "content").write_text(job_id)


def jobs(root: Path) -> list[str]:
    return sorted(path.parent.name for path in root.glob("shm/*/*/content"))


def test_only_its_user_can_look_into_it(tmp_path: Path, agent: Callable[[str], SharedMemory]) -> None:
    filled(agent("a"), "job-1")

    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("shm/**/") if path.is_dir()} == {0o700}


def test_the_next_agent_finds_what_the_one_before_left(tmp_path: Path, agent: Callable[[str], SharedMemory]) -> None:
    first = agent("a")
    filled(first, "job-1")
    before = first.folder("job-1")
    first.close()

    assert agent("a").folder("job-1") == before
    assert jobs(tmp_path) == ["job-1"]


def test_an_agent_without_jobs_leaves_nothing(tmp_path: Path, agent: Callable[[str], SharedMemory]) -> None:
    memory = agent("a")
    filled(memory, "job-1")
    remove_all(memory.jobs())
    memory.close()

    assert list((tmp_path / "shm").iterdir()) == []
    assert memory.folder("job-1") is None


def test_agents_do_not_share_a_folder_and_leave_each_others_alone(
    tmp_path: Path, agent: Callable[[str], SharedMemory]
) -> None:
    one, other = agent("a"), agent("b")
    filled(one, "job-1")
    filled(other, "job-1")
    remove_all(one.jobs())
    assert other.folder("job-1") != one.folder("job-1")
    assert jobs(tmp_path) == ["job-1"]
    other.close()
    agent("c")
    assert jobs(tmp_path) == ["job-1"]


def test_an_agent_that_is_about_to_begin_is_not_taken_for_one_that_is_gone(
    tmp_path: Path, agent: Callable[[str], SharedMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def take(memory: SharedMemory, own: Path, state_dir: Path) -> None:
        if state_dir.name == "slow":
            own.mkdir(mode=0o700)  # its owner is not written down yet
            begun.set()
            assert not other_has_begun.wait(0.3)
        as_ever(memory, own, state_dir)

    as_ever, other_has_begun = SharedMemory._claim, threading.Event()
    monkeypatch.setattr(SharedMemory, "_claim", take)
    slow = ThreadPoolExecutor(1).submit(agent, "slow")
    assert begun.wait(30)
    agent("other")
    other_has_begun.set()
    filled(slow.result(30), "job-1")

    assert jobs(tmp_path) == ["job-1"]


def test_what_a_lost_home_left_is_removed_by_any_agents_start(
    tmp_path: Path, agent: Callable[[str], SharedMemory]
) -> None:
    gone = agent("gone")
    filled(gone, "job-1")
    gone.close()
    for path in (tmp_path / "gone").iterdir():
        path.unlink()
    (tmp_path / "shm" / "debris").mkdir()
    agent("gone")  # a new home at the same place is another one

    assert jobs(tmp_path) == []
    assert len(list((tmp_path / "shm").iterdir())) == 1


def test_what_a_living_agent_holds_is_safe_also_if_its_home_cannot_be_seen(
    tmp_path: Path, agent: Callable[[str], SharedMemory]
) -> None:
    filled(agent("elsewhere"), "job-1")
    for path in (tmp_path / "elsewhere").iterdir():
        path.unlink()
    agent("b")

    assert jobs(tmp_path) == ["job-1"]


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_a_root_of_somebody_elses_is_not_used(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "shm"
    if kind == "open to others":
        root.mkdir()
        root.chmod(0o777)
    elif kind == "a link":
        (tmp_path / "target").mkdir(mode=0o700)
        root.symlink_to(tmp_path / "target")
    else:
        root.write_text("mine")
    with caplog.at_level(logging.WARNING):
        memory = SharedMemory(root, tmp_path)

    assert memory.folder("job-1") is None
    assert "checkpoints in shared memory are off" in caplog.text


def test_without_shared_memory_there_is_none(tmp_path: Path) -> None:
    assert SharedMemory(tmp_path / "no" / "such" / "place", tmp_path).folder("job-1") is None
    assert SharedMemory(None, tmp_path).folder("job-1") is None


# in the agent


def test_tasks_of_a_job_share_a_folder_until_the_job_is_over(tmp_path: Path, bring_up: BringUp) -> None:
    stage = bring_up(tmp_path, memory_root=tmp_path / "shm")
    stage.cluster.retain([JobId("job-1")])
    program = "import os; note(folder / 'report', os.environ['PLIANT_MEMORY_DIR'])"
    seen: list[str] = []
    for number in (0, 1):
        order = stage.order(TaskId(f"job-1.{number}"), (number,), program)
        stage.cluster.start(replace(order, env={"PLIANT_JOB_ID": "job-1"}))
        seen.append(stage.read(order.task_id))
    assert seen[0] == seen[1]
    stage.cluster.retain([])  # an old order: they live
    stage.pass_time()
    assert Path(seen[0]).is_dir()
    exits = stage.exits()
    for number in (0, 1):
        stage.finish(TaskId(f"job-1.{number}"), 0)
        stage.exit_of(TaskId(f"job-1.{number}"), exits)
    stage.cluster.retain([])
    until(lambda: not Path(seen[0]).exists(), "the folder is gone")
