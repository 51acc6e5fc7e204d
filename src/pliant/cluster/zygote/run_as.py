"""Tasks that run as another user of the operating system: whether they can, what they may read, and the switch.

The state folder stays closed to everybody else. The folders on the way to a job's files are opened to one group that
only such tasks are in (its number is one that no group of the machine has): they can pass through, not list. The
folders that the job owns become the user's. The task's own process does all this while it is still root, and then
gives up root for good.

Knows no jobs. Invariant: touches only the folders that are named, and follows no link.
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
from pliant.core.ports import RunAs

_FIRST_GROUP: Final = 64_700
_NUM_GROUPS: Final = 100
_SET_DUMPABLE: Final = 4


def refusal(user: str, home: str | Path) -> str:
    """Return why no process of this machine can run as this user, in words; empty if they can.

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
        closed = _find_closed_folder(path.resolve(), found.pw_uid, groups)
        if closed is not None:
            return (
                f"{user!r} cannot enter {closed}, which leads to {path}; open it (chmod o+x {closed}), or keep Pliant, "
                f"its Python and its state folder elsewhere"
            )
    return ""


def _find_closed_folder(path: Path, uid: int, groups: Collection[int]) -> Path | None:
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


def access_group() -> int:
    """Return the number of the group that opens the way to such tasks: one that no group of this machine has.

    Raises:
        OSError: there is none.
    """
    for number in range(_FIRST_GROUP, _FIRST_GROUP + _NUM_GROUPS):
        try:
            grp.getgrgid(number)
        except KeyError:
            return number
    raise OSError(f"groups {_FIRST_GROUP} to {_FIRST_GROUP + _NUM_GROUPS - 1} are all in use; Pliant needs one")


def grant_access(run_as: RunAs) -> None:
    """Give the user access to what the task needs.

    Raises:
        OSError: something cannot be opened, or there is no such user.
    """
    user = _user(run_as.user)
    group = access_group()
    if run_as.passes:
        _close_to_others(Path(run_as.passes[0]), group)
    for folder in run_as.passes:
        _let_pass(Path(folder), group)
    home = Path(run_as.passes[0]) if run_as.passes else None
    for name in run_as.reads:
        if home is not None:
            _let_read(Path(name), home, group)
    for folder in run_as.owns:
        _give_folder(Path(folder), user.pw_uid, user.pw_gid)


def switch_user(run_as: RunAs) -> dict[str, str]:
    """Become the task's user for good; return the user's environment.

    Raises:
        OSError: that is refused, or there is no such user.
    """
    user = _user(run_as.user)
    os.setgroups([*os.getgrouplist(user.pw_name, user.pw_gid), access_group()])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # or /proc/self would be root's
    return {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError as error:
        raise OSError(f"there is no user {name!r} on this machine any more") from error


def _close_to_others(home: Path, group: int) -> None:
    """Take from others what lies openly in a folder that was closed, before a way leads into it."""
    for entry in os.scandir(home):
        facts = entry.stat(follow_symlinks=False)
        if facts.st_mode & 0o077 and facts.st_gid != group and facts.st_uid == os.geteuid() and not entry.is_symlink():
            os.chmod(entry.path, stat.S_IMODE(facts.st_mode) & 0o700)


def _let_pass(folder: Path, group: int) -> None:
    """Let the tasks' group pass through a folder of ours, without listing it."""
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise OSError(f"{folder} is not a folder of the server's user")
    if facts.st_gid != group:
        os.chown(folder, -1, group, follow_symlinks=False)
    if stat.S_IMODE(facts.st_mode) & 0o077 != 0o010:
        folder.chmod(stat.S_IMODE(facts.st_mode) & 0o700 | 0o010)


def _let_read(path: Path, home: Path, group: int) -> None:
    """Let the tasks' group read a file or folder of ours inside `home`, and the way to it; leave anything else."""
    real = path.resolve()
    if not real.is_relative_to(home.resolve()) or real == home.resolve() or not real.exists():
        return
    for folder in reversed([parent for parent in real.parents if parent.is_relative_to(home.resolve())]):
        _let_pass(folder, group)
    if real.stat().st_gid == group:
        return
    if real.is_dir():
        for _, folders, files, at in os.fwalk(real, topdown=False, follow_symlinks=False):
            for name in (*folders, *files):
                _let_read_one(name, group, at)
    _let_read_one(str(real), group, None)


def _let_read_one(name: str, group: int, at: int | None) -> None:
    facts = os.stat(name, dir_fd=at, follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.geteuid():
        return
    owners = stat.S_IMODE(facts.st_mode) & 0o700
    os.chmod(name, owners | (owners & 0o500) >> 3, dir_fd=at)
    os.chown(name, -1, group, dir_fd=at, follow_symlinks=False)


def _give_folder(folder: Path, uid: int, gid: int) -> None:
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


def with_memory(run_as: RunAs, memory: Path) -> RunAs:
    """Return `run_as`, with the job's folder in shared memory among the folders that the user owns."""
    return RunAs(
        user=run_as.user,
        owns=_with(run_as.owns, [memory]),
        passes=_with(run_as.passes, [memory.parent.parent, memory.parent]),
        reads=run_as.reads,
    )


def _with(paths: Iterable[str], more: Iterable[Path]) -> tuple[str, ...]:
    return (*paths, *map(str, more))
