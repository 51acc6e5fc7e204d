"""Tasks that run as another user of the operating system, with a state folder that is closed to everybody else."""

import fcntl
import grp
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.process_stage import ProcessStage, until
from tests.privileges import may_mount

from pliant.cluster.node import NodeCluster
from pliant.core.confinement import Confinement, RunAs
from pliant.core.job import TaskId
from pliant.isolation.users import Account, access_group, grant_access, refusal

Stage = ProcessStage[NodeCluster]

IS_ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
PROBE = """
import os
def tried(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return 'done'
note(folder / 'report', {
    'ids': [*os.getresuid(), *os.getresgid()],
    'groups': os.getgroups(),
    'home': os.environ['HOME'],
    'user': os.environ['USER'],
    'own': tried(lambda: (folder / 'made').write_text('x')),
    'memory': tried(lambda: open(os.environ['PLIANT_MEMORY_DIR'] + '/made', 'w').close()),
    'data': tried(lambda: open(os.environ['DATA'] + '/part/numbers').read()),
    'listed': tried(lambda: os.listdir(folder.parent)),
    'secret': tried(lambda: open(folder.parent / 'token').read()),
    'database': tried(lambda: open(folder.parent / 'pliant.db').read()),
    'other': tried(lambda: os.listdir(folder.parent / 'job-2.1')),
    'root again': tried(lambda: os.setuid(0)),
    'itself': tried(lambda: os.listdir('/proc/self/fd')),
})
"""


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that only we can enter, in one that everybody can."""
    folder = Path(tempfile.mkdtemp(prefix="pliant-run-as-", dir="/tmp"))
    folder.chmod(0o755)
    home = folder / "home"
    home.mkdir(mode=0o700)
    yield home
    shutil.rmtree(folder)


def as_root_or_refused(home: Path) -> bool:
    """Tell whether we can try it; if not, the refusal says so."""
    if not IS_ROOT:
        assert "only root can start processes as somebody else" in refusal("nobody")
    return IS_ROOT


def test_a_task_runs_as_its_user_and_sees_only_what_is_opened_to_it(
    closed: Path, bring_up: Callable[..., Stage]
) -> None:
    if not as_root_or_refused(closed):
        return
    memory = closed.parent / "memory"
    stage = bring_up(closed, preload=("tests.contracts.program",), memory_root=memory)
    (closed / "token").write_text("secret")
    (closed / "token").chmod(0o600)
    (closed / "pliant.db").write_text("everything")
    (closed / "pliant.db").chmod(0o644)
    data = closed / "data" / "digits"
    (data / "part").mkdir(parents=True, mode=0o700)
    (data / "part" / "numbers").write_text("1 2 3")
    data.chmod(0o500)
    stage.folder(TaskId("job-2.1")).chmod(0o700)
    order = stage.order(TaskId("job-1.1"), (0,), PROBE)
    folder = Path(order.cwd)
    confinement = Confinement(
        user=RunAs(name="nobody"),
        writes=(str(folder),),
        reads=(str(data), "/etc/hostname"),
        hides=(str(closed),),
    )
    env = {**order.env, "PLIANT_JOB_ID": "job-1", "DATA": str(data)}
    exits = stage.exits()

    stage.cluster.start(replace(order, confinement=confinement, env=env))
    ended = stage.exit_of(order.task_id, exits)

    said = (folder / "log" / "stderr").read_text()
    assert (ended.exit_code, ended.error) == (0, ""), said
    found = stage.read(order.task_id)
    assert found["ids"] == [NOBODY.pw_uid] * 3 + [NOBODY.pw_gid] * 3
    assert set(found["groups"]) == {*os.getgrouplist("nobody", NOBODY.pw_gid), access_group()}
    assert (found["home"], found["user"]) == (f"{closed}/agent/scratch/job-1/home", "nobody")
    assert {name: found[name] for name in ("own", "memory", "data", "itself")} == dict.fromkeys(
        ("own", "memory", "data", "itself"), "done"
    )
    assert (found["listed"], found["root again"]) == ("PermissionError", "PermissionError")
    refused = "FileNotFoundError" if may_mount() else "PermissionError"
    assert [found[name] for name in ("secret", "database", "other")] == [refused] * 3
    for path in (folder, folder / "made", folder / "log" / "stdout"):
        assert path.stat().st_uid == NOBODY.pw_uid
    assert stat.S_IMODE(closed.stat().st_mode) == 0o710
    assert stat.S_IMODE((closed / "token").stat().st_mode) == 0o600
    assert Path("/etc/hostname").stat().st_gid == 0


def test_the_way_is_closed_to_the_same_user_outside_of_tasks(closed: Path, bring_up: Callable[..., Stage]) -> None:
    if not as_root_or_refused(closed):
        return
    stage = bring_up(closed, preload=("tests.contracts.program",))
    order = stage.order(TaskId("job-1.1"), (0,))
    confinement = Confinement(user=RunAs(name="nobody"), writes=(order.cwd,), hides=(str(closed),))
    stage.cluster.start(replace(order, confinement=confinement))
    until(lambda: stage.running(order.task_id), "the program has begun")

    looked = subprocess.run(
        ["/bin/ls", order.cwd], user="nobody", group=NOBODY.pw_gid, extra_groups=[], capture_output=True, check=False
    )

    assert looked.returncode != 0
    assert b"ermission denied" in looked.stderr
    exits = stage.exits()
    stage.cluster.kill(order.task_id)
    assert stage.exit_of(order.task_id, exits).exit_code == -9


def test_a_user_that_is_gone_is_told(closed: Path, bring_up: Callable[..., Stage]) -> None:
    if not as_root_or_refused(closed):
        return
    stage = bring_up(closed)
    exits = stage.exits()
    order = replace(stage.order(TaskId("job-1.1"), (0,)), confinement=Confinement(user=RunAs(name="no-such-user")))

    stage.cluster.start(order)

    assert "there is no user 'no-such-user' on this machine any more" in stage.exit_of(order.task_id, exits).error


def test_who_cannot_be_is_refused_with_the_reason(closed: Path) -> None:
    if not as_root_or_refused(closed):
        return
    assert "there is no user 'no-such-user'" in refusal("no-such-user")
    assert "'root' is root" in refusal("root")


def test_a_server_that_is_not_root_refuses(closed: Path) -> None:
    if not as_root_or_refused(closed):
        return
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.seteuid(NOBODY.pw_uid)
        os.write(write, refusal("daemon").encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read().startswith("processes cannot run as 'daemon': the server runs as nobody, and only root can")


def test_the_gate_is_a_group_that_nobody_has() -> None:
    assert access_group() not in {group.gr_gid for group in grp.getgrall()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give access")
def test_a_second_name_of_a_file_of_ours_in_a_folder_of_somebody_elses_opens_nothing(tmp_path: Path) -> None:
    home, theirs = tmp_path / "home", tmp_path / "home" / "environment"
    theirs.mkdir(parents=True)
    (home / "token").touch(0o600)
    (theirs / "second-name").hardlink_to(home / "token")
    os.chown(theirs, 60_902, 60_902)
    grant_access(Confinement(reads=(str(theirs),), hides=(str(home),)), Account(uid=60_902, gid=60_902, name="ada"))
    facts = (home / "token").stat()
    assert (stat.S_IMODE(facts.st_mode), facts.st_gid) == (0o600, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give access")
def test_who_enters_does_not_close_what_another_has_just_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second enters at the moment when the first is about to close a folder that it has found open."""
    home, jobs = tmp_path / "home", tmp_path / "home" / "jobs"
    own = [jobs / f"job-{number}" / "code" for number in (1, 2)]
    for folder in own:
        folder.mkdir(parents=True)
    jobs.chmod(0o755)
    ada = Account(uid=60_902, gid=60_902, name="ada")
    first, second = (Confinement(writes=(str(folder),), hides=(str(home),)) for folder in own)
    chmod, flock = os.chmod, fcntl.flock
    waits_or_has, has = threading.Event(), threading.Event()
    left_open: list[bool] = []

    def enter_second() -> None:
        grant_access(second, ada)
        has.set()
        waits_or_has.set()

    entering = threading.Thread(target=enter_second)

    def lock(file: int, operation: int) -> None:
        if threading.current_thread() is entering:
            waits_or_has.set()
        flock(file, operation)

    def change_mode(path: Any, mode: int, **more: Any) -> None:
        if not entering.ident:
            entering.start()
            assert waits_or_has.wait(10.0)
            had = has.is_set()
            chmod(path, mode, **more)
            left_open.append(not had or bool(jobs.stat().st_mode & stat.S_IXGRP))
        else:
            chmod(path, mode, **more)

    monkeypatch.setattr(fcntl, "flock", lock)
    monkeypatch.setattr(os, "chmod", change_mode)
    grant_access(first, ada)
    entering.join(10.0)

    assert (left_open, has.is_set()) == ([True], True)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (home, jobs)] == [0o710, 0o710]
