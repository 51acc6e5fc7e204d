"""What a process within walls can do, and what it cannot; each attack is seen to succeed without them."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.privileges import may_mount

import pliant
from pliant.core.confinement import Confinement, RunAs
from pliant.isolation import mounts
from pliant.isolation.enter import enter
from pliant.isolation.landlock import abi, scopes_signals
from pliant.isolation.launcher import CANNOT_ENTER, confined
from pliant.isolation.report import report
from pliant.isolation.users import FIRST_UID, account_of

IS_ROOT: Final = os.geteuid() == 0
TRIES: Final = """
import ctypes, json, multiprocessing, os, signal, socket, subprocess, sys
home, own, data, victim = sys.argv[1:]
mine = "pliant-enter-" + victim
libc = ctypes.CDLL(None, use_errno=True)

def tried(act):
    try:
        act()
    except OSError as error:
        return "refused"
    return "done"

def traced():
    if libc.ptrace(16, int(victim), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    libc.ptrace(17, int(victim), 0, 0)

def moved():
    os.rename(home + "/token", own + "/token")

print(json.dumps({
    "token": tried(lambda: open(home + "/token").read()),
    "token by link": tried(lambda: (os.symlink(home + "/token", own + "/link"), open(own + "/link").read())),
    "token by hard link": tried(lambda: os.link(home + "/token", own + "/hard")),
    "token upwards": tried(lambda: open(own + "/../../../token").read()),
    "mode of the home": tried(lambda: os.chmod(home, 0o777)) if os.path.isdir(home + "/secret") else "refused",
    "moving the token": tried(moved),
    "the data, changed": tried(lambda: open(data + "/numbers", "a")),
    "memory": tried(lambda: open(f"/proc/{victim}/mem", "rb").read(1)),
    "environment": tried(lambda: open(f"/proc/{victim}/environ").read()),
    "a signal": tried(lambda: os.kill(int(victim), 0)),
    "tracing": tried(traced),
    "own": tried(lambda: open(own + "/mine", "w").write("x")),
    "the data": tried(lambda: open(data + "/numbers").read()),
    "temporary": tried(lambda: open("/tmp/" + mine, "w").write("x")),
    "shared memory": tried(lambda: open("/dev/shm/" + mine, "w").write("x")),
    "a semaphore": tried(lambda: multiprocessing.Lock()),
    "between own folders": tried(lambda: os.rename(own + "/mine", own + "/other")),
    "a program": tried(lambda: subprocess.run(["/bin/true"], check=True)),
    "capabilities": [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")],
    "no new privileges": [line.split()[1] for line in open("/proc/self/status") if line.startswith("NoNewPrivs")],
    "ids": [*os.getresuid(), *os.getresgid()],
}))
"""
FORBIDDEN: Final = (
    *("token", "token by link", "token by hard link", "token upwards", "moving the token", "the data, changed"),
    *("memory", "environment", "a signal", "tracing", "mode of the home"),
)
ALLOWED: Final = (
    *("own", "the data", "temporary", "shared memory", "a semaphore", "between own folders", "a program"),
)


@dataclass(frozen=True)
class World:
    """A server's folder with a secret, a process of the server's, and what one job may reach."""

    home: Path
    victim: int
    confinement: Confinement

    def run(self, confinement: Confinement | None, *command: str) -> "subprocess.CompletedProcess[str]":
        whole: Sequence[str] = command if confinement is None else confined(command, confinement)
        env = {"PATH": os.environ["PATH"]}
        return subprocess.run(whole, capture_output=True, text=True, env=env, cwd="/", timeout=60, check=False)

    def tries(self, confinement: Confinement | None) -> dict[str, Any]:
        (own,), (data,) = self.confinement.writes, self.confinement.reads
        ran = self.run(confinement, sys.executable, "-c", TRIES, str(self.home), own, data, str(self.victim))
        assert ran.returncode == 0, ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout)
        return found


@pytest.fixture
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="pliant-enter-", dir="/var/tmp") as name:
        home = Path(name) / "home"
        folders = {part: home / "jobs" / "job-1" / part for part in ("code", "tmp", "shm")}
        data = home / "datasets" / "digits"
        for folder in (*folders.values(), data, home / "secret"):
            folder.mkdir(mode=0o700, parents=True)
        home.chmod(0o700)
        (home / "token").write_text("secret")
        (home / "token").chmod(0o600)
        (data / "numbers").write_text("1 2 3")
        victim = subprocess.Popen([sys.executable, "-c", "import signal; print(flush=True); signal.pause()"], stdout=-1)
        assert victim.stdout is not None
        victim.stdout.readline()
        yield World(
            home=home,
            victim=victim.pid,
            confinement=Confinement(
                writes=(str(folders["code"]),),
                reads=(str(data),),
                hides=(str(home),),
                temporary=str(folders["tmp"]),
                memory=str(folders["shm"]),
            ),
        )
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        victim.stdout.close()


def users() -> list[RunAs | None]:
    return [RunAs(uid=FIRST_UID)] if IS_ROOT else [None]


@pytest.mark.parametrize("user", users(), ids=str)
def test_what_is_its_own_works_and_nothing_else_can_be_reached(world: World, user: RunAs | None) -> None:
    if not (may_mount() or report(None).missing == ()):
        pytest.skip(f"this machine lacks walls: {report(None).missing}")
    found = world.tries(replace(world.confinement, user=user))

    assert {name: found[name] for name in ALLOWED} == dict.fromkeys(ALLOWED, "done")
    assert {name: found[name] for name in FORBIDDEN} == dict.fromkeys(FORBIDDEN, "refused")
    assert set(found["capabilities"]) == {"0000000000000000"}
    assert found["no new privileges"] == ["1"]
    assert found["ids"] == [FIRST_UID if user is not None else os.getuid()] * 6


@pytest.mark.skipif(not IS_ROOT, reason="only root can have users that a folder is closed to")
def test_a_shared_folder_that_its_user_cannot_enter_is_no_wall_around_its_own(world: World) -> None:
    """An administrator allowed a folder, did not open it, and the server's own lies in it."""
    above = str(world.home.parent)
    found = world.tries(replace(world.confinement, user=RunAs(uid=FIRST_UID), shares=(above,)))

    assert {name: found[name] for name in ALLOWED} == dict.fromkeys(ALLOWED, "done")
    assert {name: found[name] for name in FORBIDDEN} == dict.fromkeys(FORBIDDEN, "refused")


def test_without_walls_the_same_attacks_succeed(world: World) -> None:
    found = world.tries(None)
    for left in ("/tmp", "/dev/shm"):
        Path(left, f"pliant-enter-{world.victim}").unlink(missing_ok=True)

    assert {name for name in FORBIDDEN if found[name] == "done"} >= {
        "token",
        "token by link",
        "a signal",
        "environment",
    }


def test_a_process_of_the_same_user_is_kept_in_by_landlock_alone(world: World) -> None:
    if not scopes_signals(abi()):
        pytest.skip("this kernel's Landlock is too old for it")
    found = world.tries(world.confinement)

    for name in ("token", "token by link", "token upwards", "moving the token", "memory", "a signal", "tracing"):
        assert found[name] == "refused", name


def test_a_process_of_the_same_user_cannot_change_the_modes_of_its_packages(world: World) -> None:
    if report(None).missing and not may_mount():
        pytest.skip("this machine refuses a mount namespace")
    if os.stat(pliant.__file__).st_uid != os.geteuid():
        pytest.skip("the packages are another user's")
    change = "import os, sys; os.chmod(sys.argv[1], os.stat(sys.argv[1]).st_mode)"
    command = (sys.executable, "-c", change, pliant.__file__)
    assert world.run(None, *command).returncode == 0

    ran = world.run(world.confinement, *command)

    assert ran.returncode == 1
    assert "Read-only file system" in ran.stderr


SHARED_USER: Final = """
import errno, json, os, resource, socket, sys
own, share, listener, terminal, victim = sys.argv[1:]

def tried(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def connected():
    with socket.socket(socket.AF_UNIX) as service:
        service.connect(listener)

def changed(folder):
    open(folder + "/mine", "w").close()
    os.chmod(folder + "/mine", 0o600)
    os.utime(folder + "/mine", (0, 0))

print(json.dumps({
    "a socket": tried(connected),
    "a terminal": tried(lambda: os.open(terminal, os.O_RDWR | os.O_NOCTTY)),
    "its end when memory runs out": tried(lambda: open(f"/proc/{victim}/oom_score_adj", "w").write("1")),
    "its limits": tried(lambda: resource.prlimit(int(victim), resource.RLIMIT_CORE, (0, 0))),
    "the mode of /etc": tried(lambda: os.chmod("/etc", os.stat("/etc").st_mode & 0o7777)),
    "own end when memory runs out": tried(lambda: open("/proc/self/oom_score_adj", "w").write("1")),
    "own terminal": tried(os.openpty),
    "own": tried(lambda: changed(own)),
    "shared": tried(lambda: changed(share)),
    "temporary": tried(lambda: changed("/tmp")),
    "memory": tried(lambda: changed("/dev/shm")),
    "a device": tried(lambda: open("/dev/null", "w").write("x")),
    "writable": [path for path in ("/", "/etc", "/usr", "/sys", own) if not os.statvfs(path).f_flag & os.ST_RDONLY],
}))
"""


@pytest.mark.parametrize("user", [None, *([RunAs(name="nobody")] if IS_ROOT else [])], ids=str)
def test_who_shares_a_user_reaches_none_of_the_services_and_processes_of_that_user(
    world: World, user: RunAs | None
) -> None:
    if not may_mount() and report(None).missing:
        pytest.skip(f"this machine lacks walls: {report(None).missing}")
    uid = os.geteuid() if user is None else account_of(user).uid
    (own,) = world.confinement.writes
    near, far = os.openpty()
    os.fchown(far, uid, -1)
    with (
        tempfile.TemporaryDirectory(prefix="pliant-share-", dir="/dev/shm") as share,
        socket.socket(socket.AF_UNIX) as service,
        subprocess.Popen(["sleep", "100"], user=uid if IS_ROOT else None) as victim,
    ):
        service.bind(f"{share}/service")
        service.listen()
        for path in (share, f"{share}/service"):
            os.chown(path, uid, -1)
        (shared := Path(share, "shared")).mkdir()
        os.chown(shared, uid, -1)
        facts = (own, str(shared), f"{share}/service", os.ttyname(far), str(victim.pid))
        confinement = replace(world.confinement, user=user, shares=(str(shared),))
        ran = world.run(confinement, sys.executable, "-c", SHARED_USER, *facts)
        victim.kill()
    os.close(near)
    os.close(far)

    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("writable") == [own]
    assert (found.pop("a socket"), found.pop("a terminal")) == ("ENOENT", "ENOENT")
    assert found.pop("its end when memory runs out") in ("EACCES", "ENOENT"), "it may not even see the process"
    assert found.pop("its limits") == "EPERM"
    assert found.pop("the mode of /etc") == "EROFS"
    assert {name: what for name, what in found.items() if what != "done"} == {}


def test_where_shared_memory_is_shared_names_of_others_stay_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if abi() < 2:
        pytest.skip("this kernel has no Landlock to speak of")

    def refuse(*, as_user: bool) -> None:
        raise PermissionError(f"no namespace, as a user: {as_user}")

    monkeypatch.setattr(mounts, "own_namespace", refuse)
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            entered = enter(world.confinement)
            listed = "listed" if _tried(lambda: os.listdir("/dev/shm")) else "unknown"
            made = "made" if _tried(lambda: multiprocessing.Lock()) else "refused"
            os.write(write, f"{entered.has_mounts} {listed} {made}".encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "False unknown made"


def _tried(act: Callable[[], object]) -> bool:
    try:
        act()
    except PermissionError:
        return False
    return True


def test_a_link_that_an_earlier_process_of_the_job_left_leads_the_next_one_nowhere(world: World) -> None:
    if not may_mount():
        pytest.skip("this process may not mount")
    temporary = Path(world.confinement.temporary or "")
    top = temporary.parts[1:3]  # /var/tmp/…: the folders on the way are made in the job's own /tmp
    (temporary / world.home.parent.name).symlink_to("/etc")
    before = sorted(os.listdir("/etc"))

    ran = world.run(replace(world.confinement, user=users()[0]), "/bin/true")

    assert ran.returncode == CANNOT_ENTER
    assert "a link called" in ran.stderr, (ran.stderr, top)
    assert sorted(os.listdir("/etc")) == before


@pytest.mark.parametrize("user", dict.fromkeys((None, *users())), ids=str)
def test_what_a_person_named_is_read_unless_they_put_a_link_there_meanwhile(world: World, user: RunAs | None) -> None:
    (own,) = world.confinement.writes
    result = world.home / "jobs" / "job-2" / "result"
    result.mkdir(parents=True)
    (result / "model.pt").write_text("weights")
    if user is not None:
        for path in (result, result / "model.pt"):
            os.chown(path, user.uid or 0, user.uid or 0)
    confinement = replace(world.confinement, user=user, named=(str(result / "model.pt"),))
    assert world.run(confinement, "/bin/cat", str(result / "model.pt")).stdout == "weights"
    secret = (world.home / "token").stat()

    for plant in (os.symlink, os.link) if user is not None else (os.symlink,):
        (result / "model.pt").unlink()
        plant(world.home / "token", result / "model.pt")
        for shown in (str(result / "model.pt"), str(world.home / "token")):
            assert world.run(confinement, "/bin/cat", shown).stdout == ""
    (result / "model.pt").unlink()
    found = (world.home / "token").stat()
    assert (found.st_mode, found.st_uid, found.st_gid) == (secret.st_mode, secret.st_uid, secret.st_gid)
    assert Path(own).is_dir()


def test_what_cannot_be_entered_is_not_run(world: World) -> None:
    ran = world.run(replace(world.confinement, user=RunAs(name="no-such-user")), "/bin/echo", "it ran")

    assert (ran.returncode, ran.stdout) == (CANNOT_ENTER, "")
    assert "no user 'no-such-user'" in ran.stderr
