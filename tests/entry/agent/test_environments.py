"""Environments that a machine builds itself: the real uv builds them, from wheels that the test makes."""

import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.catalog.environments.wheels import offline, tiny_wheel

from pliant.catalog.environments.package_index import index_variables
from pliant.cluster.link.messages import NodeRules
from pliant.cluster.mirror.messages import IndexOptions
from pliant.core.errors import Unavailable
from pliant.entry.agent.environments import MachineBuilder, strangeness
from pliant.entry.own_environment import own_platform

pytestmark = pytest.mark.timeout(240)


@dataclass(kw_only=True)
class Place:
    """A machine with what an environment is built from."""

    root: Path

    def __post_init__(self) -> None:
        self.folder = self.root / "home" / "environments" / "abcdef0123456789"
        self.folder.mkdir(parents=True)
        self.wheels = self.root / "wheels"
        for version in ("1.0", "1.1", "2.0rc1"):
            tiny_wheel(self.wheels, version=version)
        self.options = self.options_for(self.wheels)
        self.write("tinything")

    def options_for(self, wheels: Path) -> IndexOptions:
        return IndexOptions(variables=index_variables(offline(wheels) | {"UV_NO_CONFIG": "1"}))

    def write(self, requirements: str, *, lock: str = "tinything==1.0") -> None:
        for name, text in (("requirements", requirements), ("constraints", "")):
            (self.folder / f"{name}.txt").write_text(text + "\n")
        (self.folder / "lock.txt").write_text(lock + "\n")

    def builder(self, own: Mapping[str, str] = MappingProxyType({})) -> MachineBuilder:
        rules = NodeRules(home=str(self.root / "home"), probe="p", may_read=(str(self.root),))
        return MachineBuilder(rules, "it was built for aarch64, and this machine is x86_64", env={}, own=own)

    def answer(self) -> str:
        python = self.folder / "venv" / "bin" / "python"
        program = "import tinything, torch, pliant; print(tinything.ANSWER)"
        command = [str(python), "-c", program]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return str(ran.stdout).strip()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=tmp_path)


@pytest.mark.parametrize("version", ["1.0", "2.0rc1"])
def test_it_has_the_versions_that_the_server_has_whatever_is_newer(place: Place, version: str) -> None:
    place.write("tinything >= 0", lock=f"tinything=={version}\nsomethingelse==3")
    left = place.folder.parent / ".work-of-an-agent-before"
    left.mkdir()
    assert place.builder().make(place.folder, place.options, None) == ""
    assert place.answer() == version
    assert not left.exists()


def test_why_it_cannot_be_built_is_said_with_what_to_do(place: Place) -> None:
    place.write("tinything", lock="tinything==7.0")
    told = place.builder().make(place.folder, place.options, None)
    assert told.startswith(
        "the environment abcdef012345 has to be built on this machine "
        "(it was built for aarch64, and this machine is x86_64), and it could not be built: "
    )
    assert "set PIP_INDEX_URL for its agent" in told
    assert "tinything==7.0" in told


def test_where_there_is_no_way_to_the_index_that_is_said_and_no_password(place: Place) -> None:
    options = IndexOptions(variables={"UV_DEFAULT_INDEX": "http://ann:hunter2@127.0.0.1:9/simple", "UV_NO_CONFIG": "1"})
    told = place.builder(own={"UV_HTTP_RETRIES": "0"}).make(place.folder, options, None)
    assert "127.0.0.1:9" in told
    assert "see that this machine reaches the server's index of packages" in told
    assert "hunter2" not in told + (place.folder / "build.log").read_text()


def test_what_the_agent_is_told_of_an_index_comes_before_what_the_server_says(place: Place) -> None:
    options = place.options_for(place.root / "only-on-the-server")
    own = {"PIP_FIND_LINKS": str(place.wheels), "UV_PYTHON": "/other", "HOME": "/root"}
    assert place.builder(own).make(place.folder, options, None) == ""
    assert place.answer() == "1.0"


def test_what_the_server_built_before_it_wrote_versions_down_is_not_guessed(place: Place) -> None:
    (place.folder / "lock.txt").unlink()
    told = place.builder().make(place.folder, place.options, None)
    assert "build it anew with `pliant env rebuild`" in told


def test_what_is_being_built_ends_with_its_agent(place: Place) -> None:
    builder = place.builder()
    found: list[object] = []

    def make() -> None:
        try:
            found.append(builder.make(place.folder, place.options, None))
        except Unavailable as error:
            found.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    while not (place.folder / "venv").exists():
        thread.join(0.01)
    builder.close()
    thread.join(30)
    assert isinstance(found[0], Unavailable)
    with pytest.raises(Unavailable):
        builder.make(place.folder, place.options, None)


def test_a_machine_like_the_servers_builds_nothing() -> None:
    assert strangeness(NodeRules(home="/home", probe="p", platform=own_platform())) == ""
    assert strangeness(NodeRules(home="/home", probe="p")) == ""
