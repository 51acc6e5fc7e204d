"""Environments are built once, by the real uv, from wheels that the tests make; what cannot be built says so itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest
from tests.catalog.environments.wheels import tiny_wheel
from tests.catalog.environments.world import ADA, BOB, PATIENCE_S, World, a_builder
from tests.catalog.unconfined import Unconfined
from tests.catalog.waiting import until

from pliant import __version__
from pliant.catalog.children.child import Child, ChildProgram
from pliant.catalog.children.reach import AsPerson, ChildReach
from pliant.catalog.environments import build_program
from pliant.catalog.environments.build_program import BuildSpec, MaskedLog, note_installed, secrets_of
from pliant.catalog.environments.builds import BuildRequest
from pliant.catalog.environments.environment import Build, BuildState
from pliant.catalog.environments.interpreters import EnvironmentNotFound
from pliant.catalog.environments.look_program import Place
from pliant.catalog.environments.package_index import PackageIndex, index_variables, read_index
from pliant.cluster import process
from pliant.core.access import VisibleJobs
from pliant.core.environment import Environment, EnvironmentKind
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale, Unavailable
from pliant.core.job import JobId
from pliant.core.preparation import Preparation, Prepared, Preparing, Unpreparable
from pliant.sim.clock import VirtualClock

PROGRAM = """
import importlib.util, iniconfig, ofthecode, prething, tinything
print(tinything.ANSWER, ofthecode.ANSWER, iniconfig.ANSWER, prething.ANSWER, importlib.util.find_spec("torch").origin)
"""

pytestmark = pytest.mark.timeout(4 * PATIENCE_S)  # environments are really built


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(**more: Any) -> World:
        made.append(World(tmp_path, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def able_python(prefix: Path, *, version: str = __version__) -> str:
    """Make an interpreter that says that it has Pliant and torch, in no time."""
    python = prefix / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    (prefix / "pyvenv.cfg").touch()
    python.write_text(f"""#!/bin/sh\necho '["{version}", "2"]'\n""")
    python.chmod(0o755)
    return str(python)


def output_of(python: str, program: str) -> str:
    command = [python, "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=True, cwd="/"
    ).stdout.strip()


def test_requirements_are_built_once_and_see_torch_and_pliant(world: World) -> None:
    environment = world.requirements("tinything  >=1.0  # ours\nprething\ntorch\n")
    first, second = world.job(environment), world.job(environment, owner="bob")
    assert world.environments.problems(first.spec, str(world.code)) == ()
    assert world.status(first) == Preparing(why="its requirements are being read")
    waits = world.until_begun(first)
    assert isinstance(waits, Preparing)
    assert waits.why.startswith("building since ")
    assert isinstance(world.until_begun(second), Preparing)
    ready = world.until_known(first)
    assert isinstance(ready, Prepared), ready
    assert world.status(second) == ready, "both waited for one build"
    assert len(world.folders()) == 1

    program = "import tinything, prething, torch, pliant, sys; print(tinything.ANSWER, prething.ANSWER, sys.prefix)"
    ran = subprocess.run(
        [ready.python, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True, cwd="/"
    )
    assert ran.stdout.split() == ["1.0", "1.0", str(world.folders()[0] / "venv")]

    compiled = {path.name.partition(".")[0] for path in world.folders()[0].rglob("*.pyc")}
    assert compiled >= {"tinything", "prething"}, "tasks cannot write there"

    lock = (world.folders()[0] / "lock.txt").read_text().splitlines()
    assert {"tinything==1.0", "prething==1.0", f"pytest=={metadata.version('pytest')}"} <= set(lock)
    assert not [line for line in lock if line.partition("==")[0] in ("pliant", "torch", "filelock")], "of each machine"

    third = world.job(world.requirements("torch\n\ntinything>=1.0\nprething", "again.txt"))
    assert world.until_begun(third) == ready, "what means the same is the same"
    ((view,), _) = world.environments.page(ADA, "", 10)
    assert (view.owner, view.state, view.python, view.why) == ("ada", "ready", ready.python, "")
    assert view.name == f"requirements-{view.key[:12]}-ada"
    assert view.builder == f"uv {metadata.version('uv')}"
    assert view.num_bytes > 1000
    assert view.last_used_at is not None
    assert [v.name for v in world.environments.page(BOB, "", 10)[0]] == [f"requirements-{view.key[:12]}-bob"]
    assert "the environment is built" in world.environments.log(view.name, ADA)

    with pytest.raises(Conflict, match="is used by job-1, job-2"):
        world.environments.rebuild(view.name, ADA, (first, second))
    with pytest.raises(Conflict, match="is used by the algorithm dice; remove what uses it first"):
        world.environments.remove(view.name, None, ADA, (), ["the algorithm dice"])
    world.environments.remove(view.name, None, ADA, ())
    assert Path(ready.python).exists(), "Bob's is the same"
    world.environments.remove(f"requirements-{view.key[:12]}-bob", None, BOB, ())
    assert world.folders() == []
    assert world.store.registry.get(Build, view.key) is None


def test_what_requirements_replace_is_replaced_for_this_environment_alone(world: World) -> None:
    """`iniconfig` is a package of the server's. uv ignores `--pre` in a file, as pip does not, and has to be told."""
    servers_torch = util.find_spec("torch")
    assert servers_torch is not None
    servers_own = output_of(sys.executable, "import iniconfig; print(iniconfig.__file__)")
    own = tiny_wheel(world.code, name="ofthecode", version="3")
    other = tiny_wheel(world.code, name="iniconfig", version="99")

    names = ("--pre", "--prefer-binary", "tinything >=1.0", "prething", "otherthing", "torch")
    requirements = world.requirements("\n".join([*names, f"./{own.name}", f"./{other.name}"]))
    ready = world.until_known(world.job(requirements))

    assert isinstance(ready, Prepared), ready
    assert output_of(ready.python, PROGRAM) == f"1.0 3 99 2.0rc1 {servers_torch.origin}"
    (view,) = [v for v in world.environments.page(ADA, "", 10)[0] if v.python == ready.python]
    assert "Installed 5 packages" in world.environments.log(view.name, ADA), "torch is there"
    assert output_of(sys.executable, "import iniconfig; print(iniconfig.__file__)") == servers_own


@pytest.mark.parametrize(
    ("requirements", "headline", "said"),
    [
        ("numpyy", "Because numpyy was not found in the provided package locations", "No solution found"),
        ("torch==1.0", "torch==1.0", "your requirements are unsatisfiable"),
        (f"tinything==1.0 --hash=sha256:{0:064d}", "Hash mismatch for `tinything==1.0`", "Computed:"),
    ],
    ids=["no such package", "another torch", "another file"],
)
def test_what_cannot_be_built_is_told_in_the_words_of_uv(
    world: World, requirements: str, headline: str, said: str
) -> None:
    broken = world.until_known(world.job(world.requirements(requirements, "broken.txt")))
    assert isinstance(broken, Unpreparable)
    first, *output = broken.why.splitlines()
    assert headline in first
    assert "no slot was taken" in first
    assert said in "\n".join(output)


def test_a_broken_one_tells_what_the_builder_said_and_is_tried_again_for_the_next_job(world: World) -> None:
    environment = world.requirements("tinything==7\n", "broken.txt")
    job = world.job(environment)
    broken = world.until_known(job)
    assert isinstance(broken, Unpreparable)
    headline, *said = broken.why.splitlines()
    assert "Because there is no version of tinything==7" in headline
    assert "no slot was taken" in headline
    assert any("tinything==7" in line for line in said)
    assert isinstance(world.status(job), Unpreparable), "the same job is not built for again"
    assert isinstance(world.until_begun(world.job(environment)), Preparing), "but for a later one it is"


def test_a_build_can_be_begun_anew_as_soon_as_it_is_told_what_came_of_it(world: World, tmp_path: Path) -> None:
    able_python(tmp_path / "python")
    source = str(tmp_path / "python")
    key, seen = "k" * 64, list[BuildState]()

    def begin_anew() -> None:
        build = world.builds.get(key)
        if build is None or build.state is BuildState.BUILDING or seen:
            return  # it was told of another build: what earlier tests began may still be going on
        seen.append(build.state)
        seen.append(world.builds.again(work).state)

    work = BuildRequest(key=key, kind=EnvironmentKind.VENV, source=source, path=source, person="ada")
    world.builds.watch(begin_anew)
    world.builds.ask(work, first=True)
    until(lambda: len(seen) == 2)
    assert seen == [BuildState.READY, BuildState.BUILDING]
    until(lambda: (build := world.builds.get(key)) is not None and build.state is BuildState.READY)
    until(lambda: not world.builds.is_active(key))
    world.builds.forget(key)


def test_an_environment_of_others_is_tried(world: World, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=PATIENCE_S)
    job = world.job(str(venv))
    assert world.environments.problems(job.spec, "") == ()
    broken = world.until_known(job)
    assert isinstance(broken, Unpreparable)
    assert "cannot import Pliant and torch: ModuleNotFoundError: No module named 'torch'" in broken.why.splitlines()[0]
    assert f"{venv}/bin/python -m pip install pliant==" in broken.why

    other = world.until_known(world.job("/bin/true"))
    assert isinstance(other, Unpreparable)
    assert "'/usr' has no pyvenv.cfg" in other.why
    (venv / "bin" / "python").unlink()
    (problem,) = world.environments.problems(job.spec, "")
    assert problem.field == "environment"
    assert "has no bin/python" in problem.message
    gone = world.until_known(world.job(str(venv)))
    assert isinstance(gone, Unpreparable)

    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    python = able_python(conda)
    assert world.until_known(world.job(f"conda:{conda}")) == Prepared(python=python)
    able_python(tmp_path / "old", version="0.0.1")
    old = world.until_known(world.job(str(tmp_path / "old")))
    assert isinstance(old, Unpreparable)
    assert f"has Pliant 0.0.1, but this server is {__version__}" in old.why
    able_python(tmp_path / "old")
    assert isinstance(world.until_known(world.job(str(tmp_path / "old"))), Prepared), "mended, and tried again"


def test_one_that_was_tried_is_tried_again_only_if_it_has_changed(make_world: Callable[..., World]) -> None:
    world = make_world(clock=(clock := VirtualClock(1000.0)))
    venv = world.folder / "venv"
    python = able_python(venv)

    def submit() -> Preparation:
        job = world.job(str(venv))
        assert world.environments.problems(job.spec, "") == ()
        return world.status(job)

    assert isinstance(submit(), Preparing)
    assert world.until_known(world.job(str(venv))) == Prepared(python=python)
    clock.advance(3600)
    assert submit() == Prepared(python=python), "nothing has changed"
    able_python(venv, version="0.0.1")
    clock.advance(3600)
    assert isinstance(submit(), Preparing), "it is another interpreter now"
    job = world.job(str(venv))
    broken = world.until_known(job)
    assert isinstance(broken, Unpreparable)
    assert "has Pliant 0.0.1" in broken.why
    able_python(venv)
    assert world.until_known(world.job(str(venv))) == Prepared(python=python)
    clock.advance(3600)
    assert isinstance(world.status(world.job(str(venv))), Preparing), "nobody has looked"


def environment(name: str, kind: EnvironmentKind, source: str) -> Environment:
    return Environment(name=name, owner="", kind=kind, source=source, key="")


def test_names_are_registered_shared_used_and_removed(world: World, tmp_path: Path) -> None:
    python = able_python(tmp_path)
    asked = environment("mine", EnvironmentKind.VENV, str(tmp_path))
    view = world.environments.add(asked, ADA)
    assert (view.shared_with, view.kind) == ((), "venv")
    with pytest.raises(Conflict):
        world.environments.add(asked, BOB)
    job = world.job("mine")
    assert world.environments.problems(job.spec, "", visible=VisibleJobs(owner="ada")) == ()
    (hidden,) = world.environments.problems(job.spec, "", visible=VisibleJobs(owner="bob"))
    assert "there is no environment 'mine'" in hidden.message
    with pytest.raises(NotFound):
        world.environments.show("mine", BOB)
    changed = world.environments.share("mine", ("bob",), view.revision, ADA)
    assert world.environments.problems(job.spec, "", visible=VisibleJobs(owner="bob")) == ()
    assert world.environments.show("mine", BOB).shared_with == ("bob",)
    with pytest.raises(Forbidden):
        world.environments.remove("mine", None, BOB, ())
    with pytest.raises(InvalidInput, match="no user is named 'nobody'"):
        world.environments.share("mine", ("nobody",), None, ADA)
    with pytest.raises(Stale):
        world.environments.remove("mine", view.revision, ADA, ())

    assert world.until_known(job) == Prepared(python=python)
    assert world.environments.show("mine", ADA).state == "ready"
    with pytest.raises(Conflict, match=rf"used by {job.id}"):
        world.environments.remove("mine", None, ADA, (job,))
    world.environments.rebuild("mine", ADA, ())
    until(lambda: world.environments.show("mine", ADA).state == "ready")
    world.environments.remove("mine", changed.revision, ADA, ())
    gone_ = world.status(world.job("mine"))
    assert isinstance(gone_, Unpreparable)
    assert "it may have been removed" in gone_.why


def test_everything_wrong_with_a_registration_is_told_at_once(world: World) -> None:
    wrong = environment("wrong", EnvironmentKind.REQUIREMENTS, "-e .\n--index-url x\n")
    with pytest.raises(InvalidInput) as error:
        world.environments.add(replace(wrong, shared_with=("nobody",)), ADA)
    assert [problem.field for problem in error.value.problems] == ["shared_with.0", "requirements", "requirements"]
    with pytest.raises(InvalidInput, match="is not there"):
        world.environments.add(environment("wrong", EnvironmentKind.VENV, "/nowhere"), ADA)
    assert world.store.registry.get(Environment, "wrong") is None


def test_what_a_killed_server_was_building_is_built_by_the_next(make_world: Callable[..., World]) -> None:
    world = make_world()
    job = world.job(world.requirements("tinything\n"))
    assert isinstance(world.until_begun(job), Preparing)
    world.builds.close()
    (build,) = (kept.noun for kept in world.store.registry.list(Build))
    assert build.state is BuildState.BUILDING
    (world.home / "environments" / "left-over" / "venv").mkdir(parents=True)
    world.open()
    assert isinstance(world.until_begun(job), Preparing), "somebody works on it again"
    assert [folder.name for folder in world.folders()] == [build.name]
    assert isinstance(world.until_known(job), Prepared)

    world.builds.close()
    world.open()
    assert isinstance(world.until_begun(job), Prepared), "what is ready stays ready"
    assert isinstance(world.until_known(replace(job, id=JobId("job-9"))), Prepared)
    (world.folders()[0] / "venv" / "bin" / "python").unlink()
    gone = world.until_begun(world.job("requirements:requirements.txt"))
    assert isinstance(gone, Preparing), "unless it is gone"


def test_what_an_interpreter_does_not_say_in_time_is_not_awaited(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nsleep 600\n")
    python.chmod(0o755)
    builder = a_builder(tmp_path, os.environ, probe_s=0.3)
    outcome = builder.prober.probe(Child(), str(python), (str(python),), "ada")
    assert outcome.reason == f"{python} did not import Pliant and torch in 0.3 s; try it there"


def test_a_build_program_whose_server_was_killed_ends_itself(tmp_path: Path) -> None:
    """It waits for a program that sleeps; its standard input closes, as it does when the server is gone."""
    (tmp_path / "uv").write_text(
        f"#!/bin/sh\n[ $1 = --version ] && echo uv 1 && exit\necho $$ > {tmp_path}/pid\nsleep 600\n"
    )
    (tmp_path / "uv").chmod(0o755)
    (tmp_path / "requirements.txt").write_text("x\n")
    (tmp_path / "constraints.txt").write_text("")
    spec = BuildSpec(folder=str(tmp_path), site=[], constraints=[], uv=str(tmp_path / "uv"))
    program = subprocess.Popen(
        [sys.executable, "-I", build_program.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert program.stdin is not None
    program.stdin.write(json.dumps(spec).encode() + b"\n")
    program.stdin.flush()
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    program.stdin.close()
    assert program.wait(20) == -signal.SIGKILL
    until(lambda: process.stamp(int((tmp_path / "pid").read_text())) is None)


def test_a_server_without_uv_says_so(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, os.environ, uv="/nowhere/uv")
    folder = builder.folder / "k"
    folder.mkdir()
    (folder / "requirements.txt").write_text("x\n")
    (folder / "constraints.txt").write_text("")
    outcome = builder.build(Child(), "k", "ada")
    assert "error: uv cannot be run" in outcome.reason
    assert "pip install uv" in outcome.reason


class Unenterable(Unconfined):
    """Walls that no process can get into."""

    def confine(self, program: ChildProgram, reach: ChildReach) -> ChildProgram:
        failing = ["sh", "-c", "echo 'cannot be isolated: a wall is missing' >&2; exit 126"]
        return super().confine(replace(program, command=failing), reach)


def test_the_servers_own_path_does_not_come_before_an_environments(tmp_path: Path) -> None:
    """Or the interpreter that is tried would be another one than its own packages make it."""
    (tmp_path / "python").write_text('#!/bin/sh\necho "path $PYTHONPATH$PYTHONHOME." >&2; exit 1\n')
    (tmp_path / "python").chmod(0o755)
    builder = a_builder(tmp_path, {**os.environ, "PYTHONPATH": "/servers", "PYTHONHOME": "/servers"})
    outcome = builder.prober.probe(Child(), str(tmp_path / "python"), (str(tmp_path / "python"),), "ada")
    assert outcome.output == ("path .",)


def test_what_cannot_be_kept_within_walls_is_neither_built_nor_tried(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, os.environ, isolation=Unenterable())
    folder = builder.folder / "k"
    folder.mkdir()
    (folder / "requirements.txt").write_text("")
    built = builder.build(Child(), "k", "ada")
    assert built.reason == (
        "it could not be built: cannot be isolated: a wall is missing; tell the server's administrator"
    )
    tried = builder.prober.probe(Child(), "/usr/bin/python3", (), "ada")
    assert tried.reason.startswith("/usr/bin/python3 cannot be run (cannot be isolated: a wall is missing)")
    with pytest.raises(EnvironmentNotFound, match="at: cannot be isolated: a wall is missing; tell the server's admin"):
        builder.prober.look(Child(), Place(path="/opt/env", kind="venv"), AsPerson("ada"))


def test_a_look_for_which_there_is_no_room_can_be_tried_again(make_world: Callable[..., World]) -> None:
    world = make_world()
    shutil.rmtree(world.home / "environments")
    with pytest.raises(Unavailable, match="could not be looked at"):
        world.environments.problems(world.job("/nowhere").spec, "")


def test_what_the_disk_refuses_is_told_without_the_servers_path(make_world: Callable[..., World]) -> None:
    world = make_world()
    shutil.rmtree(world.home / "environments")
    told = world.until_known(world.job(sys.executable))
    assert isinstance(told, Unpreparable)
    assert "could not be made (No such file or directory)" in told.why
    assert str(world.home) not in told.why


def test_secrets_of_the_servers_environment_never_reach_a_log() -> None:
    env = {
        "PIP_INDEX_URL": "https://user:p%40ssword@pypi.example/simple",
        "HTTPS_PROXY": "http://token-1234@proxy:3128",
        "PLAIN": "https://pypi.example/simple",
    }
    log = MaskedLog(env)
    assert log.mask("Looking in indexes: https://user:p%40ssword@pypi.example/simple") == (
        "Looking in indexes: https://****@pypi.example/simple"
    )
    assert log.mask("401 for p@ssword and user:p%40ssword via token-1234") == "401 for **** and **** via ****"
    assert log.mask("https://other:secret@host/x") == "https://****@host/x"
    assert log.mask("https://pypi.example/simple") == "https://pypi.example/simple"
    assert secrets_of({"A": "x", "B": "https://host"}) == set()


def test_builders_get_what_says_where_packages_come_from_and_nothing_else() -> None:
    given = {
        "PATH": "/bin",
        "PIP_INDEX_URL": "https://a",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels https://b",
        "https_proxy": "http://proxy:3128",
        "SSL_CERT_FILE": "/certificates/own.pem",
        "UV_COMPILE_BYTECODE": "1",
        "UV_CACHE_DIR": "/cache",
        "PIP_TARGET": "/x",
        "PYTHONPATH": "/y",
        "PLIANT_HOME": "/z",
        "VIRTUAL_ENV": "/v",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LD_PRELOAD": "/evil.so",
    }
    found = index_variables(given)
    assert found == {
        "PIP_INDEX_URL": "https://a",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels https://b",
        "UV_FIND_LINKS": "/wheels,https://b",
        "UV_DEFAULT_INDEX": "https://a",
        "https_proxy": "http://proxy:3128",
        "SSL_CERT_FILE": "/certificates/own.pem",
    }
    assert PackageIndex(variables=found, files={}).places == ("/wheels", "/certificates/own.pem")
    named = {"UV_INDEX": "ours=file:///srv/my%20index /more / //host/x"}
    assert PackageIndex(variables=named, files={}).places == ("/srv/my index", "/more")


def test_builders_get_the_files_that_the_servers_user_keeps_for_uv(tmp_path: Path) -> None:
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").write_text("offline = true")
    (tmp_path / "passwords").write_text("machine index")
    env = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "passwords")}
    assert read_index(env).files == {".netrc": b"machine index", ".config/uv/uv.toml": b"offline = true"}
    assert read_index({"HOME": str(tmp_path / "other")}).files == {}


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
