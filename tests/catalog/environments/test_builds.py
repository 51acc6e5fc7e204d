"""Environments are built once, by real builders, from wheels that the tests make; what is broken says so."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.catalog.environments.wheels import tiny_wheel
from tests.catalog.house import ADA, BOB, PATIENCE_S, House

from pliant import __version__
from pliant.api.environments import EnvironmentRequest
from pliant.catalog.environments.builder import Log, note_installed, secrets_of
from pliant.catalog.environments.builds import Work
from pliant.catalog.environments.environment import Build, BuildState, Environment, EnvironmentKind
from pliant.catalog.environments.workshop import Limits, Workshop, builder_env
from pliant.cluster import process
from pliant.core.access import Sight
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from pliant.core.job import JobId
from pliant.core.preparation import Prepared, Preparing, Unpreparable
from pliant.entry.environments import shared

pytestmark = pytest.mark.timeout(4 * PATIENCE_S)  # environments are really built


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("house"))
    yield made
    made.close()


@pytest.fixture
def make_house(tmp_path: Path) -> Iterator[Callable[..., House]]:
    made: list[House] = []

    def make() -> House:
        made.append(House(tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


def able_python(prefix: Path, *, version: str = __version__) -> str:
    """Make an interpreter that says that it has Pliant and torch, in no time."""
    python = prefix / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f"""#!/bin/sh\necho '["{version}", "2"]'\n""")
    python.chmod(0o755)
    return str(python)


def until(condition: Callable[[], object], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def test_requirements_are_built_once_and_see_torch_and_pliant(house: House) -> None:
    own = tiny_wheel(house.code, name="ofthecode", version="3")
    environment = house.requirements(f"tinything  >=1.0  # ours\n./{own.name}\ntorch\n")
    first, second = house.job(environment), house.job(environment, owner="bob")
    assert house.environments.problems(first.spec, str(house.code)) == ()
    waits = house.status(first)
    assert isinstance(waits, Preparing)
    assert waits.why.startswith("building since ")
    assert isinstance(house.status(second), Preparing)
    ready = house.until_known(first)
    assert isinstance(ready, Prepared), ready
    assert house.status(second) == ready, "both waited for one build"
    assert len(house.folders()) == 1

    program = "import tinything, ofthecode, torch, pliant, sys; print(tinything.ANSWER, ofthecode.ANSWER, sys.prefix)"
    ran = subprocess.run(
        [ready.python, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True, cwd="/"
    )
    assert ran.stdout.split() == ["1.0", "3", str(house.folders()[0] / "venv")]

    third = house.job(house.requirements(f"torch\n\ntinything>=1.0\n./{own.name}", "again.txt"))
    assert house.status(third) == ready, "what means the same is the same"
    (view,) = house.environments.page(ADA, "", 10).environments
    assert (view.owner, view.state, view.python, view.why) == ("ada", "ready", ready.python, "")
    assert view.name == f"requirements-{view.key[:12]}-ada"
    assert view.builder.split()[0] == "pip"
    assert view.num_bytes > 1000
    assert view.last_used_at is not None
    assert [v.name for v in house.environments.page(BOB, "", 10).environments] == [f"requirements-{view.key[:12]}-bob"]
    assert "the environment is built" in house.environments.log(view.name, ADA)

    with pytest.raises(Conflict, match="is used by job-1, job-2"):
        house.environments.rebuild(view.name, ADA, (first, second))
    house.environments.remove(view.name, None, ADA, ())
    assert Path(ready.python).exists(), "Bob's is the same"
    house.environments.remove(f"requirements-{view.key[:12]}-bob", None, BOB, ())
    assert house.folders() == []
    assert house.store.registry.get(Build, view.key) is None


def test_a_broken_one_tells_what_the_builder_said_and_is_tried_again_for_the_next_job(house: House) -> None:
    environment = house.requirements("tinything==7\n", "broken.txt")
    job = house.job(environment)
    broken = house.until_known(job)
    assert isinstance(broken, Unpreparable)
    headline, *said = broken.why.splitlines()
    assert "No matching distribution found for tinything==7" in headline
    assert "no slot was taken" in headline
    assert any("tinything==7" in line for line in said)
    assert isinstance(house.status(job), Unpreparable), "the same job is not built for again"
    assert isinstance(house.status(house.job(environment)), Preparing), "but for a later one it is"


def test_a_build_can_be_begun_anew_as_soon_as_it_is_told_what_came_of_it(house: House, tmp_path: Path) -> None:
    source = able_python(tmp_path / "python")
    key, seen = "k" * 64, list[BuildState]()

    def begin_anew() -> None:
        build = house.builds.get(key)
        if build is not None and not seen:
            seen.append(build.state)
            seen.append(house.builds.again(work).state)

    work = Work(key=key, kind=EnvironmentKind.VENV, source=source, python=source)
    house.builds.watch(begin_anew)
    house.builds.ask(work, first=True)
    until(lambda: len(seen) == 2)
    assert seen == [BuildState.READY, BuildState.BUILDING]
    until(lambda: (build := house.builds.get(key)) is not None and build.state is BuildState.READY)
    until(lambda: not house.builds._workshop.works_on(key))
    house.builds.forget(key)


def test_torch_and_pliant_cannot_be_replaced(house: House) -> None:
    broken = house.until_known(house.job(house.requirements("torch==1.0\n", "torch.txt")))
    assert isinstance(broken, Unpreparable)
    assert "torch==1.0" in broken.why


def test_an_environment_of_others_is_tried(house: House, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=PATIENCE_S)
    job = house.job(str(venv))
    assert house.environments.problems(job.spec, "") == ()
    broken = house.until_known(job)
    assert isinstance(broken, Unpreparable)
    assert "cannot import Pliant and torch: ModuleNotFoundError: No module named 'torch'" in broken.why.splitlines()[0]
    assert f"{venv}/bin/python -m pip install pliant==" in broken.why

    assert isinstance(house.until_known(house.job("/bin/true")), Unpreparable)
    (venv / "bin" / "python").unlink()
    (problem,) = house.environments.problems(job.spec, "")
    assert problem.field == "environment"
    assert "has no bin/python" in problem.message
    gone = house.status(house.job(str(venv)))
    assert isinstance(gone, Unpreparable)

    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    python = able_python(conda)
    assert house.until_known(house.job(f"conda:{conda}")) == Prepared(python=python)
    able_python(tmp_path / "old", version="0.0.1")
    old = house.until_known(house.job(str(tmp_path / "old")))
    assert isinstance(old, Unpreparable)
    assert f"has Pliant 0.0.1, but this server is {__version__}" in old.why
    able_python(tmp_path / "old")
    assert isinstance(house.until_known(house.job(str(tmp_path / "old"))), Prepared), "mended, and tried again"


def test_names_are_registered_shared_used_and_removed(house: House, tmp_path: Path) -> None:
    python = able_python(tmp_path)
    asked = EnvironmentRequest(name="mine", venv=str(tmp_path))
    view = house.environments.add(asked, ADA)
    assert (view.shared_with, view.kind) == ((), "venv")
    with pytest.raises(Conflict):
        house.environments.add(asked, BOB)
    job = house.job("mine")
    assert house.environments.problems(job.spec, "", sight=Sight(owner="ada")) == ()
    (hidden,) = house.environments.problems(job.spec, "", sight=Sight(owner="bob"))
    assert "there is no environment 'mine'" in hidden.message
    with pytest.raises(NotFound):
        house.environments.show("mine", BOB)
    changed = house.environments.share("mine", ("bob",), view.revision, ADA)
    assert house.environments.problems(job.spec, "", sight=Sight(owner="bob")) == ()
    assert house.environments.show("mine", BOB).shared_with == ("bob",)
    with pytest.raises(Forbidden):
        house.environments.remove("mine", None, BOB, ())
    with pytest.raises(InvalidInput, match="no user is named 'nobody'"):
        house.environments.share("mine", ("nobody",), None, ADA)
    with pytest.raises(Stale):
        house.environments.remove("mine", view.revision, ADA, ())

    assert house.until_known(job) == Prepared(python=python)
    assert house.environments.show("mine", ADA).state == "ready"
    with pytest.raises(Conflict, match=rf"used by {job.id}"):
        house.environments.remove("mine", None, ADA, (job,))
    house.environments.rebuild("mine", ADA, ())
    until(lambda: house.environments.show("mine", ADA).state == "ready")
    house.environments.remove("mine", changed.revision, ADA, ())
    gone_ = house.status(house.job("mine"))
    assert isinstance(gone_, Unpreparable)
    assert "it may have been removed" in gone_.why


def test_everything_wrong_with_a_registration_is_told_at_once(house: House) -> None:
    with pytest.raises(InvalidInput) as error:
        house.environments.add(
            EnvironmentRequest(name="wrong", requirements="-e .\n--index-url x\n", shared_with=("nobody",)), ADA
        )
    assert [problem.field for problem in error.value.problems] == ["shared_with.0", "requirements", "requirements"]
    with pytest.raises(InvalidInput, match="is not there"):
        house.environments.add(EnvironmentRequest(name="wrong", venv="/nowhere"), ADA)
    assert house.store.registry.get(Environment, "wrong") is None


def test_what_a_killed_server_was_building_is_built_by_the_next(make_house: Callable[..., House]) -> None:
    house = make_house()
    job = house.job(house.requirements("tinything\n"))
    assert isinstance(house.status(job), Preparing)
    house.builds.close()
    (build,) = (kept.noun for kept in house.store.registry.list(Build))
    assert build.state is BuildState.BUILDING
    (house.folder / "environments" / "left-over" / "venv").mkdir(parents=True)
    house.open()
    assert isinstance(house.status(job), Preparing), "somebody works on it again"
    assert [folder.name for folder in house.folders()] == [build.name]
    assert isinstance(house.until_known(job), Prepared)

    house.builds.close()
    house.open()
    assert isinstance(house.status(job), Prepared), "what is ready stays ready"
    assert isinstance(house.until_known(replace(job, id=JobId("job-9"))), Prepared)
    (house.folders()[0] / "venv" / "bin" / "python").unlink()
    assert isinstance(house.status(house.job("requirements:requirements.txt")), Preparing), "unless it is gone"


def a_workshop(folder: Path, told: list[str], **limits: float) -> Workshop:
    return Workshop(
        folder=folder,
        env=dict(os.environ),
        shared=shared(),
        limits=Limits(**limits),  # type: ignore[arg-type]
        done=lambda key, outcome: told.append(f"{key}: {outcome.reason}"),
    )


def slow_python(folder: Path) -> str:
    """Return an interpreter that starts another process, writes its number down, and is not done for ten minutes."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {folder}/pid\nwait\n")
    python.chmod(0o755)
    return str(python)


def noted(folder: Path) -> str:
    """Return the number that was written down; empty if none was, or not yet."""
    return (folder / "pid").read_text() if (folder / "pid").exists() else ""


def gone(folder: Path) -> bool:
    return process.stamp(int(noted(folder))) is None


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    told: list[str] = []
    workshop = a_workshop(tmp_path, told, probe_s=0.3)
    python = slow_python(tmp_path)

    def ended_after_it_began() -> bool:
        """Try it; where little time is to be had it is ended before it has written anything."""
        told.clear()
        until(lambda: not workshop.works_on("slow"))
        workshop.probe("slow", python)
        until(lambda: told)
        return noted(tmp_path) != ""

    until(ended_after_it_began)
    assert told == [f"slow: {tmp_path}/python did not import Pliant and torch in 0.3 s; try it there"]
    until(lambda: gone(tmp_path))
    workshop.close()


def test_an_end_of_the_server_ends_what_it_has_started_at_once(tmp_path: Path) -> None:
    told: list[str] = []
    workshop = a_workshop(tmp_path, told)
    workshop.probe("slow", slow_python(tmp_path))
    until(lambda: noted(tmp_path))
    began = time.monotonic()
    workshop.close()
    assert time.monotonic() - began < 5
    until(lambda: gone(tmp_path))
    assert told == []


def test_a_builder_whose_server_was_killed_ends_itself(tmp_path: Path) -> None:
    """The builder waits for a program that sleeps; its standard input closes, as it does when the server is gone."""
    (tmp_path / "uv").write_text(
        f"#!/bin/sh\n[ $1 = --version ] && echo uv 1 && exit\necho $$ > {tmp_path}/pid\nsleep 600\n"
    )
    (tmp_path / "uv").chmod(0o755)
    (tmp_path / "requirements.txt").write_text("x\n")
    (tmp_path / "constraints.txt").write_text("")
    order = f'{{"folder": "{tmp_path}", "site": [], "constraints": [], "uv": "{tmp_path}/uv"}}\n'
    builder = subprocess.Popen(
        [sys.executable, "-I", sys.modules["pliant.catalog.environments.builder"].__file__ or ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert builder.stdin is not None
    builder.stdin.write(order.encode())
    builder.stdin.flush()
    until(lambda: noted(tmp_path))
    builder.stdin.close()
    assert builder.wait(20) == -signal.SIGKILL
    until(lambda: gone(tmp_path))


def test_so_many_are_built_at_a_time(tmp_path: Path) -> None:
    told: list[str] = []
    workshop = a_workshop(tmp_path, told)
    for number in range(4):
        folder = tmp_path / f"p{number}"
        folder.mkdir()
        workshop.probe(f"k{number}", slow_python(folder))
    until(lambda: workshop.num_ahead("k3") == 2)
    assert workshop.num_ahead("k0") == 0
    assert sum((tmp_path / f"p{number}" / "pid").exists() for number in range(4)) <= 2
    assert workshop.works_on("k3")
    workshop.close()


def test_secrets_of_the_servers_environment_never_reach_a_log() -> None:
    env = {
        "PIP_INDEX_URL": "https://user:p%40ssword@pypi.example/simple",
        "HTTPS_PROXY": "http://token-1234@proxy:3128",
        "PLAIN": "https://pypi.example/simple",
    }
    log = Log(env)
    assert log.masked("Looking in indexes: https://user:p%40ssword@pypi.example/simple") == (
        "Looking in indexes: https://****@pypi.example/simple"
    )
    assert log.masked("401 for p@ssword and user:p%40ssword via token-1234") == "401 for **** and **** via ****"
    assert log.masked("https://other:secret@host/x") == "https://****@host/x"
    assert log.masked("https://pypi.example/simple") == "https://pypi.example/simple"
    assert secrets_of({"A": "x", "B": "https://host"}) == set()


def test_builders_get_what_says_where_packages_come_from_and_nothing_that_leads_astray() -> None:
    given = {
        "PATH": "/bin",
        "PIP_INDEX_URL": "https://a",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels https://b",
        "PIP_TARGET": "/x",
        "PYTHONPATH": "/y",
        "PLIANT_HOME": "/z",
        "VIRTUAL_ENV": "/v",
    }
    assert builder_env(given) == {
        "PATH": "/bin",
        "PIP_INDEX_URL": "https://a",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels https://b",
        "UV_FIND_LINKS": "/wheels,https://b",
        "UV_DEFAULT_INDEX": "https://a",
        "PYTHONUNBUFFERED": "1",
    }


def test_uv_is_told_what_the_server_has_and_can_remove_no_file_of_it(tmp_path: Path) -> None:
    info = tmp_path / "server" / "thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: thing\nVersion: 1.0\n")
    (info / "RECORD").write_text("thing.py,,\n")
    packages = tmp_path / "own"
    packages.mkdir()
    note_installed(packages, [str(tmp_path / "server")])
    note = packages / info.name
    assert (note / "METADATA").read_text() == (info / "METADATA").read_text()
    listed = [line.partition(",")[0] for line in (note / "RECORD").read_text().splitlines()]
    assert sorted(listed) == sorted(f"{info.name}/{path.name}" for path in note.iterdir())
