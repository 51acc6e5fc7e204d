"""Tasks that run as another user of the operating system: what stands against it, what is opened to them, the change.

The state folder stays closed to everybody else: folders on the way are opened to one group that only such tasks have
(a number that no group of the machine has), for passing through and not for listing. What a job owns becomes the
user's. All of that is done by the task's process itself while it still is root; afterwards it cannot go back.

Knows no jobs. Invariant: nothing outside the folders that are named is touched, and no link is followed.
"""

import ctypes
import grp
import os
import pwd
import stat
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import pliant
from pliant.core.ports import Lodging

_FIRST_GATE: Final = 64_700
_NUM_GATES: Final = 100
_SET_DUMPABLE: Final = 4


def refusal(user: str, home: str | Path) -> str:
    """Return why no process can run as this user here, in words; empty if they can.

    Args:
        user: a name of the user database.
        home: the folder that holds the folders of all jobs.
    """
    if os.geteuid() != 0:
        return (
            f"processes cannot run as {user!r}: the server runs as {_name(os.geteuid())}, and only root can start "
            f"processes as somebody else; start the server as root, or leave run_as out"
        )
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        return f"there is no user {user!r} on this machine; make one, or give another"
    if found.pw_uid == 0:
        return f"{user!r} is root; give a user with fewer rights, or leave run_as out"
    groups = {found.pw_gid, *os.getgrouplist(user, found.pw_gid)}
    needed = (Path(pliant.__file__).parent, Path(sys.prefix), Path(sys.base_prefix), Path(home).absolute().parent)
    for path in needed:
        closed = _closed(path.resolve(), found.pw_uid, groups)
        if closed is not None:
            return (
                f"{user!r} cannot enter {closed}, which leads to {path}; open it (chmod o+x {closed}), or keep Pliant, "
                f"its Python and its state folder elsewhere"
            )
    return ""


def _closed(path: Path, uid: int, groups: Collection[int]) -> Path | None:
    """Return the first folder on the way to a path that somebody cannot pass through."""
    for folder in (*reversed(path.parents), path):
        facts = folder.stat()
        if facts.st_uid == uid:
            open_to_them = facts.st_mode & stat.S_IXUSR
        elif facts.st_gid in groups:
            open_to_them = facts.st_mode & stat.S_IXGRP
        else:
            open_to_them = facts.st_mode & stat.S_IXOTH
        if not open_to_them:
            return folder
    return None


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def gate_group() -> int:
    """Return the number of the group that opens the way to such tasks: one that no group of this machine has.

    Raises:
        OSError: there is none.
    """
    for number in range(_FIRST_GATE, _FIRST_GATE + _NUM_GATES):
        try:
            grp.getgrgid(number)
        except KeyError:
            return number
    raise OSError(f"groups {_FIRST_GATE} to {_FIRST_GATE + _NUM_GATES - 1} are all in use; Pliant needs one")


def open_up(lodging: Lodging) -> None:
    """Open what the task needs to its user.

    Raises:
        OSError: something cannot be opened, or there is no such user.
    """
    user = _user(lodging.user)
    gate = gate_group()
    if lodging.passes:
        _close(Path(lodging.passes[0]), gate)
    for folder in lodging.passes:
        _open_way(Path(folder), gate)
    home = Path(lodging.passes[0]) if lodging.passes else None
    for name in lodging.reads:
        if home is not None:
            _open_to_read(Path(name), home, gate)
    for folder in lodging.owns:
        _hand_over(Path(folder), user.pw_uid, user.pw_gid)


def move_in(lodging: Lodging) -> dict[str, str]:
    """Become the task's user for good; return the user's environment.

    Raises:
        OSError: that is refused, or there is no such user.
    """
    user = _user(lodging.user)
    os.setgroups([*os.getgrouplist(user.pw_name, user.pw_gid), gate_group()])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # or /proc/self would be root's
    return {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError as error:
        raise OSError(f"there is no user {name!r} on this machine any more") from error


def _close(home: Path, gate: int) -> None:
    """Take from others what lies openly in a folder that was closed, before a way leads into it."""
    for entry in os.scandir(home):
        facts = entry.stat(follow_symlinks=False)
        if facts.st_mode & 0o077 and facts.st_gid != gate and facts.st_uid == os.geteuid() and not entry.is_symlink():
            os.chmod(entry.path, stat.S_IMODE(facts.st_mode) & 0o700)


def _open_way(folder: Path, gate: int) -> None:
    """Let the gate's group pass through a folder of ours."""
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise OSError(f"{folder} is not a folder of the server's user")
    if facts.st_gid != gate:
        os.chown(folder, -1, gate, follow_symlinks=False)
    if stat.S_IMODE(facts.st_mode) & 0o077 != 0o010:
        folder.chmod(stat.S_IMODE(facts.st_mode) & 0o700 | 0o010)


def _open_to_read(path: Path, home: Path, gate: int) -> None:
    """Let the gate's group read something of ours inside `home`, and pass to it; anything else is left as it is."""
    real = path.resolve()
    if not real.is_relative_to(home.resolve()) or real == home.resolve() or not real.exists():
        return
    for folder in reversed([parent for parent in real.parents if parent.is_relative_to(home.resolve())]):
        _open_way(folder, gate)
    if real.stat().st_gid == gate:
        return
    if real.is_dir():
        for _, folders, files, at in os.fwalk(real, topdown=False, follow_symlinks=False):
            for name in (*folders, *files):
                _open_one(name, gate, at)
    _open_one(str(real), gate, None)


def _open_one(name: str, gate: int, at: int | None) -> None:
    facts = os.stat(name, dir_fd=at, follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.geteuid():
        return
    owners = stat.S_IMODE(facts.st_mode) & 0o700
    os.chmod(name, owners | (owners & 0o500) >> 3, dir_fd=at)
    os.chown(name, -1, gate, dir_fd=at, follow_symlinks=False)


def _hand_over(folder: Path, uid: int, gid: int) -> None:
    """Give a folder of ours to a user, with all that is in it; what is the user's already is not looked at again."""
    facts = folder.lstat()
    if facts.st_uid == uid:
        return
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise OSError(f"{folder} is neither the server's nor the user's folder")
    for _, folders, files, at in os.fwalk(folder, topdown=False, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, uid, gid, dir_fd=at, follow_symlinks=False)
    folder.chmod(0o700)
    os.chown(folder, uid, gid, follow_symlinks=False)


def with_memory(lodging: Lodging, memory: Path) -> Lodging:
    """Return a lodging in which a job also owns its folder in shared memory."""
    return Lodging(
        user=lodging.user,
        owns=_with(lodging.owns, [memory]),
        passes=_with(lodging.passes, [memory.parent.parent, memory.parent]),
        reads=lodging.reads,
    )


def _with(paths: Iterable[str], more: Iterable[Path]) -> tuple[str, ...]:
    return (*paths, *map(str, more))
