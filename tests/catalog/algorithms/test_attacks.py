"""An algorithm runs as who has installed it, within walls: it reaches its own code, and nothing else of anybody's.

Every attack plays as the server's own user, and, where this process may change users, as one of the person's own. What
the planted code could reach it says itself, by refusing to be installed.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.catalog.algorithms.world import BEN, Algorithms
from tests.catalog.waiting import until

from pliant.cluster import process
from pliant.core.confinement import RunAs
from pliant.core.errors import InvalidInput
from pliant.entry.own_environment import base_environment
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.isolation import landlock
from pliant.isolation.variables import allowed

pytestmark = pytest.mark.skipif(
    not landlock.scopes_signals(landlock.abi()), reason="this kernel has no walls for one user"
)

_UIDS: Final = {"anna": 60_911, "ben": 60_912}
PLANTED: Final = """
import json, os, socket, stat, sys
folder = sys.argv[-1]
reached = []
def tries(what, attempt):
    try:
        if attempt():
            reached.append(what)
    except OSError:
        pass
def sends():
    socket.create_connection(("127.0.0.1", PORT), 2).close()
    return True
def replaces():
    os.chmod(folder, 0o755)
    os.rename(os.path.join(folder, "optimizer.py"), os.path.join(folder, "gone.py"))
    return True
def writes(path):
    with open(path, "a") as file:
        file.write("x")
    return True
tries("token", lambda: "the-token" in open(TOKEN).read())
tries("token by another way", lambda: "the-token" in open(f"/proc/{PID}/root{TOKEN}").read())
tries("list of the home", lambda: os.listdir(HOME))
tries("other archives", lambda: os.listdir(HOME + "/algorithms"))
tries("names of other code", lambda: os.listdir(HOME + "/algorithm-runs/code"))
tries("other code", lambda: open(OTHER).read())
tries("logs", lambda: os.listdir(HOME + "/algorithm-runs/logs"))
tries("environment of the server", lambda: open(f"/proc/{PID}/environ", "rb").read())
tries("signal to the server", lambda: os.kill(PID, 0) is None)
tries("variable", lambda: "AWS_SECRET_ACCESS_KEY" in os.environ)
tries("file of others", lambda: writes(EVIDENCE))
tries("own code", lambda: writes(os.path.join(folder, "optimizer.py")))
tries("own folder", replaces)
tries("network", sends)
tries("datagrams", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
tries("raw packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
assert writes(os.path.expanduser("~/own"))
socket.socketpair()
print(json.dumps({"problem": "REACHED " + json.dumps(reached), "class": "", "has_state": False}), flush=True)
os._exit(0)
"""
DETACHES: Final = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        with open(os.path.expanduser("~/new"), "w") as file:
            file.write(str(os.getpid()))
        os.rename(os.path.expanduser("~/new"), os.path.expanduser("~/pid"))
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists(os.path.expanduser("~/pid")):
    time.sleep(0.01)
raise SystemExit(open(os.path.expanduser("~/pid")).read())
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can enter; pytest closes its own."""
    with tempfile.TemporaryDirectory(prefix="pliant-attack-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def children(home: Path, *, own_users: bool, is_off: bool = False) -> ConfinedChildren:
    return ConfinedChildren(
        home=home,
        env=allowed({**os.environ, "AWS_SECRET_ACCESS_KEY": "secret"}),
        user_of=lambda name: RunAs(uid=_UIDS[name]) if own_users else None,
        reads=base_environment().site,
        is_off=is_off,
    )


def planted(world: Algorithms, place: Path, port: int) -> str:
    """Return the code that tries everything, in a server that has secrets and other people's algorithms."""
    token, evidence = world.folder / "token", place / "evidence"
    token.write_text("the-token")
    token.chmod(0o600)
    evidence.touch(0o666)
    evidence.chmod(0o666)
    other = world.install("secret = 1\n", name="bens", caller=BEN)
    world.logs.append("digits", b"of somebody else\n")
    names = {
        "TOKEN": str(token),
        "PID": os.getpid(),
        "HOME": str(world.folder),
        "OTHER": str(world.folders.unpacked(other.noun.checksum) / "optimizer.py"),
        "EVIDENCE": str(evidence),
        "PORT": port,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in names.items()) + PLANTED


def reached(world: Algorithms, code: str) -> set[str]:
    with pytest.raises(InvalidInput, match="REACHED") as caught:
        world.install(code)
    return set(json.loads(str(caught.value).partition("REACHED ")[2].splitlines()[0]))


def open_world(place: Path, *, own_users: bool, is_off: bool = False) -> Algorithms:
    home = place / "home"
    home.mkdir(0o711)
    return Algorithms(home, children(home, own_users=own_users, is_off=is_off))


@pytest.fixture(params=[False, True], ids=["as the server's user", "as users of their own"])
def world(request: pytest.FixtureRequest, place: Path) -> Algorithms:
    if request.param and os.geteuid() != 0:
        pytest.skip("only root can change users")
    return open_world(place, own_users=request.param)


@pytest.fixture
def port() -> Iterator[int]:
    """The port of somebody who listens on this machine."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


def test_the_planted_code_reaches_everything_where_there_are_no_walls(place: Path, port: int) -> None:
    """Or the other test would show nothing."""
    bare = open_world(place, own_users=False, is_off=True)

    found = reached(bare, planted(bare, place, port))
    assert found >= {"token", "list of the home", "other archives", "other code", "logs", "network", "datagrams"}
    assert found >= {"environment of the server", "signal to the server", "file of others", "own folder"}
    assert "variable" not in found


def test_an_algorithm_reaches_its_own_code_and_nothing_else(world: Algorithms, place: Path, port: int) -> None:
    assert reached(world, planted(world, place, port)) == set()
    assert (place / "evidence").read_text() == ""
    assert list((world.folder / "algorithm-runs").glob(".work-*")) == []


def test_what_it_leaves_running_is_ended(world: Algorithms) -> None:
    with pytest.raises(InvalidInput) as caught:
        world.install(DETACHES)
    pid = int(str(caught.value).split()[-1])
    until(lambda: process.stamp(pid) is None)
