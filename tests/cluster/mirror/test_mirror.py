"""A machine's mirror: what it tells the agent when a task has ended, whatever the task has left."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from tests.cluster.mirror.conftest import SECRET, TASK, Keeper, Machine
from tests.contracts.process_stage import until

from pliant.cluster.agent.file_mover import FilesReady
from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.grants import FileGrant
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.cluster.mirror.messages import ListTree
from pliant.cluster.mirror.mirror import Mirror
from pliant.cluster.zygote.records import Record


@pytest.fixture
def mirror(keeper: Keeper, machine: Machine) -> Iterator[Mirror]:
    """Give the mirror of a machine whose folder is the server's own: what is sent is there already."""
    made = Mirror(machine.server, Bringer(home=keeper.home, data_root=None, shared=()), machine.root)
    yield made
    made.close()


def end(mirror: Mirror) -> FilesReady:
    """Let a task have ended; return what the mirror tells."""
    record = Record(task_id=TASK, slots=(0,), job="job-1")
    mirror.adopt(record)
    mirror.send_back(record)
    found: list[FilesReady] = []

    def is_told() -> bool:
        found.extend(mirror.receive())
        return bool(found)

    until(is_told, "it is told")
    return found[0]


def test_an_exit_is_told_when_all_is_sent(keeper: Keeper, mirror: Mirror) -> None:
    job = keeper.job(train="1")
    assert end(mirror) == FilesReady(task_id=TASK)
    assert not (job / "unsent").exists()


def test_logs_that_cannot_be_sent_are_told_and_keep_no_file_back(keeper: Keeper, mirror: Mirror) -> None:
    job = keeper.job(train="1")
    (job / "result" / "log").symlink_to("/etc")
    (job / "result" / "model.pt").write_text("weights")

    told = end(mirror)

    assert told.trouble.startswith("its logs: ")
    assert "model.pt" not in told.trouble
    assert (job / "unsent").exists(), "what is here is not removed with the job"


def test_what_nobody_wants_any_more_is_no_trouble(keeper: Keeper, mirror: Mirror) -> None:
    keeper.job(train="1")
    keeper.living.clear()
    assert end(mirror) == FilesReady(task_id=TASK)


def test_a_training_ends_though_a_file_of_its_script_cannot_be_sent(keeper: Keeper, mirror: Mirror) -> None:
    job = keeper.job(train="1")
    (job / "result" / "checkpoint").mkdir()
    with (job / "code" / "hollow").open("wb") as hollow:
        hollow.truncate(1 << 40)
    asked = job / "result" / "checkpoint" / ".ask-send-1-0"
    asked.touch()
    mirror.adopt(Record(task_id=TASK, slots=(0,), job="job-1"))

    until(lambda: not asked.exists(), "it is answered")
    assert list(asked.parent.iterdir()) == [], "nothing has failed"
    assert end(mirror).trouble.startswith("code/hollow: ")


@dataclass(slots=True, kw_only=True)
class NotingKeeper(FileKeeper):
    """Notes what is asked for."""

    asked: list[str] = field(default_factory=list)

    def listing(self, grant: FileGrant | None, asked: ListTree) -> tuple[str, bytes]:
        self.asked.append(asked.path)
        return FileKeeper.listing(self, grant, asked)


def test_where_the_server_is_is_kept_fresh_without_any_task_if_that_is_wanted(keeper: Keeper, machine: Machine) -> None:
    keeper.stop()
    noting = NotingKeeper(home=keeper.home, data_root=keeper.data, secret=SECRET, job_of=lambda _node, _task: None)
    keeper.files = noting
    keeper.begin()
    bringer = Bringer(home=keeper.home, data_root=None, shared=())
    with closing(Mirror(machine.server, bringer, machine.root, keeps_address=True)) as mirror:
        until(lambda: bool(noting.asked), "it is asked for at once")
        num = len(noting.asked)
        mirror.refresh()
        until(lambda: len(noting.asked) > num, "it is asked for again")
    assert set(noting.asked) == {str(keeper.home / "address")}
