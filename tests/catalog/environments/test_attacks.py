"""What a person brings into an environment runs as that person, within walls: it reaches nothing of the server's.

Every attack plays as the server's own user, and, where this process may change users, as one of the person's own. What
the planted code could reach it says itself, as the last thing that it does.
"""

import base64
import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.catalog.environments.wheels import tiny_wheel
from tests.catalog.environments.world import PATIENCE_S, UserOf, World

from pliant import __version__
from pliant.core.confinement import RunAs
from pliant.core.job import JobId
from pliant.core.preparation import Prepared, Unpreparable
from pliant.isolation import landlock
from pliant.people.system_ids import BUILDERS

pytestmark = [
    pytest.mark.timeout(4 * PATIENCE_S),
    pytest.mark.skipif(not landlock.scopes_signals(landlock.abi()), reason="this kernel has no walls for one user"),
]

PASSWORD = "hunter2"
"""In the environment of a `World`, in the address of an index."""
PLANTED = """
import json, os, sys
reached = []
def tries(what, attempt):
    try:
        if attempt():
            reached.append(what)
    except OSError:
        pass
tries("token", lambda: "the-token" in open({token!r}).read())
tries("token by another way", lambda: "the-token" in open(f"/proc/{pid}/root{token}").read())
tries("list of the home", lambda: "token" in os.listdir({home!r}))
tries("environment of the server", lambda: open("/proc/{pid}/environ", "rb").read() != b"")
tries("signal to the server", lambda: os.kill({pid}, 0) is None)
tries("password", lambda: any({password!r} in value for value in os.environ.values()))
tries("key", lambda: "AWS_SECRET_ACCESS_KEY" in os.environ)
tries("file of others", lambda: open({evidence!r}, "a").write("reached"))
tries("environment of its own", lambda: open(os.path.join({venv!r} or sys.prefix, "planted"), "a").write("x"))
print("REACHED", json.dumps(reached), file=sys.stderr)
sys.stderr.flush()
os._exit(3)
"""


def able() -> dict[str, str]:
    """Return what lets the interpreter of an environment say that it can run tasks, in no time."""
    answer = json.dumps([__version__, "2"])
    return {"able.pth": f"import os, sys; sys.argv[0] == '-c' and (print({answer!r}, flush=True), os._exit(0))\n"}


class Attacked(World):
    """A server with secrets."""

    def __init__(self, folder: Path, user_of: UserOf, *, walls: bool = True) -> None:
        super().__init__(folder, user_of, walls=walls)
        self.token = self.home / "token"
        self.token.write_text("the-token")
        self.token.chmod(0o600)
        self.evidence = folder / "evidence"
        self.evidence.touch(0o666)
        tiny_wheel(self.wheels, more=able())
        self.planted = PLANTED.format(
            token=str(self.token),
            home=str(self.home),
            pid=os.getpid(),
            password=PASSWORD,
            evidence=str(self.evidence),
            venv="",
        )

    @property
    def line(self) -> str:
        """The planted code as one line of Python that needs nothing."""
        return f"import base64; exec(base64.b64decode({base64.b64encode(self.planted.encode())!r}), {{}})"

    def program(self, path: Path) -> Path:
        """Write a program that is the planted code."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/usr/bin/env python3\n{self.planted}")
        path.chmod(0o755)
        return path

    def venv(self, folder: Path) -> Path:
        """Make a folder that passes for a virtual environment, whose interpreter is the planted code."""
        self.program(folder / "bin" / "python")
        (folder / "pyvenv.cfg").touch()
        for each in (folder, folder / "bin"):
            each.chmod(0o755)
        return folder


def users(person: str) -> RunAs:
    return RunAs(uid={BUILDERS: 60_901, "ada": 60_902, "bob": 60_903}.get(person, 60_904))


def reached(found: Prepared | Unpreparable) -> list[str]:
    """Return what the planted code said that it had reached; it must have run."""
    assert isinstance(found, Unpreparable), found
    said = [line.partition("REACHED ")[2] for line in found.why.splitlines() if "REACHED " in line]
    assert said, found.why
    return list(json.loads(said[0].partition("]")[0] + "]"))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can enter; pytest closes its own."""
    with tempfile.TemporaryDirectory(prefix="pliant-attack-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(params=["as the server's user", "as users of their own"])
def attacked(request: pytest.FixtureRequest, place: Path) -> Iterator[Attacked]:
    own = request.param == "as users of their own"
    if own and os.geteuid() != 0:
        pytest.skip("only root can change users")
    made = Attacked(place, users if own else lambda _: None)
    made.env["AWS_SECRET_ACCESS_KEY"] = "secret"
    made.env["UV_COMPILE_BYTECODE"] = "1"
    yield made
    made.close()
    assert made.evidence.read_text() == ""


def test_the_planted_code_reaches_everything_where_there_are_no_walls(place: Path) -> None:
    """Or the other tests would show nothing."""
    world = Attacked(place, lambda _: None, walls=False)
    everything = {"token", "list of the home", "environment of the server", "signal to the server", "file of others"}
    found = world.until_known(world.job(str(world.venv(place / "venv"))))
    assert set(reached(found)) >= everything
    wheel = tiny_wheel(world.code, name="evil", more=pth(world))
    found = world.until_known(world.job(world.requirements(f"./{wheel.name}\n")))
    assert set(reached(found)) >= everything | {"environment of its own"}
    world.close()


def test_a_folder_that_a_job_planted_is_no_environment(attacked: Attacked, place: Path) -> None:
    planted = attacked.venv(attacked.home / "jobs" / "job-1" / "code" / "venv")
    (place / "another-way").symlink_to(planted)
    (place / "bin").symlink_to(planted / "bin")
    ways = (planted, planted / "bin" / "python", place / "another-way", place / "x" / ".." / "another-way")
    for way in (*ways, place / "bin" / "python", attacked.home, "/"):
        for environment in (str(way), f"conda:{way}"):
            job = attacked.job(environment)
            assert attacked.environments.problems(job.spec, ""), environment
            refused = attacked.until_known(job)
            assert isinstance(refused, Unpreparable)
            assert "REACHED" not in refused.why
    (problem,) = attacked.environments.problems(attacked.job(str(planted)).spec, "")
    assert "what jobs write there is no environment" in problem.message


def test_an_interpreter_that_a_person_made_reaches_nothing_of_the_servers(attacked: Attacked, place: Path) -> None:
    found = attacked.until_known(attacked.job(str(attacked.venv(place / "venv"))))
    assert reached(found) == []


def test_what_a_person_cannot_reach_is_not_there(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can change users")
    world = Attacked(place, users)
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    world.venv(closed / "venv")
    told = []
    for name in ("venv", "nothing"):
        job = world.job(str(closed / name))
        (problem,) = world.environments.problems(job.spec, "")
        found = world.until_known(job)
        assert isinstance(found, Unpreparable)
        told.append((problem.message.replace(name, ""), found.why.replace(name, "")))
    assert told[0] == told[1]
    world.close()


def pth(world: Attacked) -> dict[str, str]:
    return {"evil.pth": f"{world.line}\n"}


def sitecustomize(world: Attacked) -> dict[str, str]:
    if Path(sysconfig.get_path("stdlib"), "sitecustomize.py").exists():
        pytest.skip("this Python has one of its own, which comes first")
    return {"sitecustomize.py": f"{world.line}\n"}


def the_package_itself(world: Attacked) -> dict[str, str]:
    return {"torch.py": f"{world.line}\n"}


def another_configuration(world: Attacked) -> dict[str, str]:
    base = Path(getattr(sys, "_base_executable", sys.executable)).parent
    cfg = f"home = {base}\ninclude-system-site-packages = true\n"
    return {"evil-1.0.data/data/pyvenv.cfg": cfg, **pth(world)}


AS_THE_SERVER = pytest.mark.parametrize("attacked", ["as the server's user"], indirect=True)
"""For what the builder refuses or ignores, whoever it runs as."""
Wheel = Callable[[Attacked], dict[str, str]]
WHEELS: list[Wheel] = [
    pth,
    sitecustomize,
    the_package_itself,
    another_configuration,
]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.__name__)
def test_a_wheel_of_the_code_reaches_nothing_of_the_servers(attacked: Attacked, wheel: Wheel) -> None:
    """It runs when it is tried, not while it is installed: then there are passwords."""
    made = tiny_wheel(attacked.code, name="evil", more=wheel(attacked))
    found = attacked.until_known(attacked.job(attacked.requirements(f"./{made.name}\n")))
    assert reached(found) == []


@AS_THE_SERVER
def test_a_script_called_python_is_refused(attacked: Attacked) -> None:
    for name, more in {
        "third": {"third-1.0.data/data/bin/python": f"#!/usr/bin/env python3\n{attacked.planted}"},
        "first": {"first-1.0.data/scripts/python": f"#!/usr/bin/env python3\n{attacked.planted}"},
        "second": {"second-1.0.dist-info/entry_points.txt": "[console_scripts]\npython = second:ANSWER\n"},
    }.items():
        made = tiny_wheel(attacked.code, name=name, more=more)
        found = attacked.until_known(attacked.job(attacked.requirements(f"./{made.name}\n")))
        assert isinstance(found, Unpreparable)
        assert "must not use the reserved name `python`" in found.why
        assert "REACHED" not in found.why


def test_a_package_of_the_index_cannot_change_what_others_use(attacked: Attacked) -> None:
    tiny_wheel(attacked.wheels, name="evil", more=pth(attacked))
    found = attacked.until_known(attacked.job(attacked.requirements("evil\n")))
    assert reached(found) == []
    (folder,) = attacked.folders()
    assert not (folder / "venv" / "planted").exists()
    if attacked.user_of("ada") is not None:
        assert (folder / "venv").stat().st_uid == 60_901


@AS_THE_SERVER
def test_settings_in_the_code_folder_do_not_say_where_packages_come_from(attacked: Attacked, place: Path) -> None:
    tiny_wheel(place / "evil", version="9.0", more=pth(attacked))
    settings = f'no-index = true\nfind-links = ["{place / "evil"}"]\n'
    del attacked.env["UV_NO_CONFIG"]
    (attacked.code / "uv.toml").write_text(settings)
    (attacked.code / "pyproject.toml").write_text(f"[tool.uv]\n{settings}")
    (attacked.code / "pip.conf").write_text(f"[global]\nfind-links = {place / 'evil'}\n")
    attacked.builds.close()
    attacked.open()
    found = attacked.until_known(attacked.job(attacked.requirements("tinything\n")))
    assert isinstance(found, Prepared), found
    venv = attacked.folders()[0] / "venv"
    assert list(venv.rglob("tinything-1.0.dist-info"))
    assert not list(venv.rglob("evil.pth"))


def test_what_holds_files_of_a_person_is_theirs_alone(attacked: Attacked) -> None:
    own = tiny_wheel(attacked.code, name="ofthecode", more=able())
    asked = attacked.requirements(f"./{own.name}\n")
    ada, bob = attacked.job(asked), attacked.job(asked, owner="bob")
    first, second = attacked.until_known(ada), attacked.until_known(bob)
    assert isinstance(first, Prepared), first
    assert isinstance(second, Prepared), second
    assert first != second
    assert len(attacked.folders()) == 2
    if attacked.user_of("ada") is not None:
        owners = {Path(each.python).parents[1].stat().st_uid for each in (first, second)}
        assert owners == {60_902, 60_903}
        assert [folder.stat().st_uid for folder in attacked.folders()] == [0, 0]

    key = Path(first.python).parents[2].name
    named = replace(ada.spec, environment=f"requirements-{key[:12]}-ada")
    mine = attacked.until_known(replace(ada, id=JobId("job-8"), spec=named))
    assert mine == first
    others = attacked.until_known(replace(bob, id=JobId("job-9"), spec=named))
    assert isinstance(others, Unpreparable)
    assert "holds wheels of ada's code" in others.why


def test_what_is_left_of_a_build_is_removed_without_following_links(attacked: Attacked, place: Path) -> None:
    ready = attacked.until_known(attacked.job(attacked.requirements("tinything\n")))
    assert isinstance(ready, Prepared)
    (place / "precious").mkdir()
    (place / "precious" / "file").touch()
    venv = Path(ready.python).parents[1]
    (venv / "link").symlink_to(place / "precious")
    shutil.rmtree(venv / "lib")
    (venv / "lib").symlink_to(place / "precious")
    deep = os.open(venv, os.O_PATH)
    for _ in range(3000):  # deeper than a path can be, and than functions can call each other
        os.mkdir("d", dir_fd=deep)
        above, deep = deep, os.open("d", os.O_PATH, dir_fd=deep)
        os.close(above)
    os.close(deep)
    attacked.builds.forget(venv.parent.name)
    assert attacked.folders() == []
    assert (place / "precious" / "file").exists()


def test_nothing_is_left_of_the_homes_of_children(attacked: Attacked, place: Path) -> None:
    attacked.until_known(attacked.job(str(attacked.venv(place / "venv"))))
    attacked.until_known(attacked.job(attacked.requirements("tinything\n")))
    left = {path.name for path in (attacked.home / "environments").iterdir() if path.name.startswith(".")}
    assert left == {".cache"}
