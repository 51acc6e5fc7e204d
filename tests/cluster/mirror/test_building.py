"""Environments that a machine builds itself: once, from what the server has, and again when that has changed."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.mirror.conftest import SECRET, TASK, Keeper, Machine

from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.brought import Brought
from pliant.cluster.mirror.building import BuiltEnvironments, UnfitMachineError, remove_built
from pliant.cluster.mirror.connections import FileConnections
from pliant.cluster.mirror.grants import environments_in, ticket_of
from pliant.cluster.mirror.messages import IndexOptions
from pliant.core.confinement import Confinement, RunAs
from pliant.core.errors import Conflict
from pliant.core.job import NodeId
from pliant.core.ports import StartOrder

OPTIONS = IndexOptions(variables={"UV_DEFAULT_INDEX": "https://ann:secret@index"}, files={".netrc": "machine x"}, uid=7)


@dataclass(kw_only=True)
class FolderMaker:
    """Makes the folder of an environment and nothing in it, or fails; it waits for its gate."""

    key: str = "this-machine"
    trouble: str = ""
    made: list[tuple[str, IndexOptions]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def make(self, folder: Path, options: IndexOptions, user: RunAs | None) -> str:
        assert self.gate.wait(20)
        self.made.append(((folder / "requirements.txt").read_text(), options))
        if not self.trouble:
            (folder / "venv" / "bin").mkdir(parents=True, exist_ok=True)
            (folder / "venv" / "bin" / "python").touch()
        return self.trouble

    def close(self) -> None: ...


@dataclass(kw_only=True)
class Place:
    """A machine whose copies lie where the server has its own: there is one folder, so the paths are the same."""

    keeper: Keeper
    machine: Machine
    maker: FolderMaker = field(default_factory=FolderMaker)

    def __post_init__(self) -> None:
        self.keeper.files.index = lambda: OPTIONS
        self.folder = self.keeper.home / "environments" / "abc"
        self.folder.mkdir(parents=True)
        (self.folder / "requirements.txt").write_text("tinything\n")
        (self.folder / "lock.txt").write_text("tinything==1.0\n")
        self.maker.gate.set()
        self.connections = FileConnections(self.machine.server)

    def environments(self) -> BuiltEnvironments:
        """Return them as an agent finds them that has just begun."""
        bringer = Bringer(home=self.keeper.home, data_root=None, shared=())
        brought = Brought(self.machine.root)
        return BuiltEnvironments(connections=self.connections, bringer=bringer, brought=brought, maker=self.maker)

    def order(self) -> StartOrder:
        reads = (str(self.folder / "venv"),)
        ticket = ticket_of(SECRET, self.machine.name, TASK, reads)
        walls = Confinement(reads=reads)
        return StartOrder(
            task_id=TASK,
            node_id=NodeId(self.machine.name),
            slots=(0,),
            argv=(),
            env={},
            cwd="/",
            log_dir="",
            confinement=walls,
            ticket=ticket,
        )


@pytest.fixture
def place(keeper: Keeper, machine: Machine) -> Iterator[Place]:
    keeper.job()
    made = Place(keeper=keeper, machine=machine)
    yield made
    made.connections.close()


def test_it_is_built_once_also_for_tasks_that_come_at_the_same_time_and_for_the_next_agent(place: Place) -> None:
    environments = place.environments()
    assert environments.folders(place.order()) == {place.folder}
    place.maker.gate.clear()
    with ThreadPoolExecutor(3) as threads:
        coming = [threads.submit(environments.provide, place.order(), place.folder) for _ in range(3)]
        place.maker.gate.set()
        for one in coming:
            one.result(20)
    environments.provide(place.order(), place.folder)
    place.environments().provide(place.order(), place.folder)
    assert place.maker.made == [("tinything\n", OPTIONS)]


def test_it_is_built_again_when_the_server_has_or_this_machine_is_another(place: Place) -> None:
    place.environments().provide(place.order(), place.folder)
    (place.folder / "lock.txt").write_text("tinything==1.1\n")
    place.environments().provide(place.order(), place.folder)
    assert len(place.maker.made) == 2
    place.maker.key = "with another Python"
    place.environments().provide(place.order(), place.folder)
    assert len(place.maker.made) == 3
    (place.folder / "venv" / "bin" / "python").unlink()
    place.environments().provide(place.order(), place.folder)
    assert len(place.maker.made) == 4


def test_what_cannot_be_built_is_a_reason_of_the_machines_and_is_tried_again_for_the_next(place: Place) -> None:
    place.maker.trouble = "no way to the index"
    environments = place.environments()
    for _ in range(2):
        with pytest.raises(UnfitMachineError, match="no way to the index"):
            environments.provide(place.order(), place.folder)
    place.maker.trouble = ""
    environments.provide(place.order(), place.folder)
    assert len(place.maker.made) == 3


def test_what_was_half_built_when_an_agent_ended_is_built_again(place: Place) -> None:
    place.environments().provide(place.order(), place.folder)
    (place.folder / "lock.txt").write_text("tinything==1.1\n")
    place.maker.trouble = "the agent has ended"  # bin/python is still there
    with pytest.raises(UnfitMachineError):
        place.environments().provide(place.order(), place.folder)
    place.maker.trouble = ""
    place.environments().provide(place.order(), place.folder)
    assert len(place.maker.made) == 3


def test_what_was_built_is_removed_when_the_machine_becomes_one_of_the_servers_kind(place: Place) -> None:
    environments = place.environments()
    environments.provide(place.order(), place.folder)
    remove_built(environments.bringer, environments.brought, str(place.keeper.home / "environments" / "other" / "venv"))
    assert place.folder.exists()
    remove_built(environments.bringer, environments.brought, str(place.folder / "venv"))
    assert not place.folder.exists()
    assert Brought(place.machine.root).digest(str(place.folder)) == ""


def test_passwords_of_an_index_are_told_only_for_a_task_whose_order_names_an_environment(place: Place) -> None:
    for paths in ((), (place.keeper.home / "jobs" / "job-1",), (place.keeper.home / "environments",)):
        with pytest.raises(Conflict, match="names no environment"):
            place.machine.connect(*paths).ask_index()
    unclaimed = place.machine.server.connect()
    place.machine.connections.append(unclaimed)
    with pytest.raises(Conflict, match="names no environment"):
        unclaimed.ask_index()
    assert place.machine.connect(place.folder / "venv").ask_index() == OPTIONS
    assert "secret" not in repr(OPTIONS)
    assert "machine x" not in repr(OPTIONS)


def test_a_machine_reads_what_an_environment_of_its_order_is_built_from_and_no_other(place: Place) -> None:
    other = place.keeper.home / "environments" / "other"
    (other / "wheels").mkdir(parents=True)
    (other / "wheels" / "somebodys.whl").write_text("secret")
    connection = place.machine.connect(place.folder / "venv")
    assert {one.name for one in connection.list(str(place.folder)).entries or ()} == {"requirements.txt", "lock.txt"}
    for path in (other, other.parent, place.folder / ".." / "other"):
        with pytest.raises(Conflict):
            connection.list(str(path))


@pytest.mark.parametrize("path", ["environments", "environments/abc", "environments/../jobs", "jobs/environments/a/b"])
def test_only_what_lies_in_the_folder_of_an_environment_is_one(path: str) -> None:
    assert environments_in((f"/home/{path}",), Path("/home")) == frozenset()
