"""Processes that run as another user of the operating system: whether they can, what they may read, and the switch.

The state folder stays closed to everybody else. The folders on the way to what a process needs are opened to one group
that only such processes are in (its number is one that no group of the machine has): they can pass through, not list.
Folders of its own become the user's. The process does all this while it is still root, and then gives up root for good.

Knows no jobs. Invariant: touches only the folders that are named, and follows no link.
"""

import fcntl
import grp
import os
import pwd
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pliant.core.confinement import Confinement, RunAs
from pliant.isolation.system_calls import allow_looking_in
from pliant.isolation.system_paths import real

FIRST_UID: Final = 60_706
LAST_UID: Final = 61_183
"""Ids that no system gives to anybody. Source: https://systemd.io/UIDS-GIDS."""
_FIRST_GROUP: Final = 60_600
_NUM_GROUPS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who a process becomes."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    name: str


def account_of(run_as: RunAs) -> Account:
    """Return the ids of a user.

    Raises:
        OSError: there is no user of that name.
    """
    if run_as.uid is not None:
        return Account(uid=run_as.uid, gid=run_as.uid, name=run_as.name or f"pliant-{run_as.uid}")
    try:
        found = pwd.getpwnam(run_as.name)
    except KeyError as error:
        raise OSError(f"there is no user {run_as.name!r} on this machine any more") from error
    groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
    return Account(uid=found.pw_uid, gid=found.pw_gid, groups=groups, name=found.pw_name)


def refusal(user: str) -> str:
    """Return why no process of this machine can run as this user of its user database, in words; empty if they can."""
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
    return ""


def closed_folders(paths: Iterable[str], account: Account) -> Iterator[str]:
    """Yield the folders on the way to some paths that a user cannot pass through."""
    groups = {account.gid, *account.groups}
    for folder in dict.fromkeys(parent for path in dict.fromkeys(paths) for parent in _parents(real(path))):
        if _is_closed(folder, account.uid, groups):
            yield folder


def _parents(path: str) -> Iterator[str]:
    while path != (path := os.path.dirname(path)):
        yield path


def _is_closed(folder: str, uid: int, groups: Collection[int]) -> bool:
    try:
        facts = os.stat(folder)
    except FileNotFoundError:
        return False
    if facts.st_uid == uid:
        return not facts.st_mode & stat.S_IXUSR
    return not facts.st_mode & (stat.S_IXGRP if facts.st_gid in groups else stat.S_IXOTH)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@cache
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


def grant_access(confinement: Confinement, account: Account) -> None:
    """Give a user access to what a process needs of the server's own folder, the first that it hides.

    Raises:
        OSError: something cannot be opened.
    """
    if confinement.hides:
        _open_way(Path(confinement.hides[0]), confinement, access_group())
    for own in (*confinement.writes, *filter(None, (confinement.temporary, confinement.memory))):
        give_folder(Path(own), account)


def _open_way(home: Path, confinement: Confinement, group: int) -> None:
    reads = [Path(path) for path in (*confinement.reads, *confinement.named)]
    with _one_at_a_time(home):  # or one would close what another has just opened
        _close_to_others(home, group)
        inside = [Path(path) for path in confinement.writes if Path(path).is_relative_to(home)]
        for folder in dict.fromkeys(parent for path in inside for parent in _between(path, home)):
            _let_pass(folder, group)
        reached = [path for path in reads if _let_reach(path, home, group)]
    for path in reached:  # data of a million files: nobody has to wait for that
        _let_read(path, group)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait for the lock of a folder of ours, which nobody else may open."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _between(path: Path, home: Path) -> list[Path]:
    """Return the folders on the way to a path, from `home` on."""
    return [parent for parent in reversed(path.parents) if parent.is_relative_to(home)]


def become(account: Account) -> None:
    """Become another user for good.

    Raises:
        OSError: that is refused.
    """
    os.setgroups([*account.groups, access_group()])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    if os.getresuid() != (account.uid,) * 3 or os.getresgid() != (account.gid,) * 3:
        raise PermissionError(f"the change to user {account.uid} did not hold")
    allow_looking_in()


def _close_to_others(home: Path, group: int) -> None:
    """Take from others what lies openly in a folder that was closed, before a way leads into it."""
    for entry in os.scandir(home):
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # one of the server's files, which are replaced now and then
            continue
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


def _let_reach(path: Path, home: Path, group: int) -> bool:
    """Let the tasks' group pass to what lies inside `home`; tell whether it is ours alone to open.

    As soon as something on the way is not ours, its owner may have put a link there, or another name of a file of ours.
    """
    if not path.is_relative_to(home) or path == home:
        return False
    for folder in _between(path, home):
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            return False
        _let_pass(folder, group)
    return True


def _let_read(path: Path, group: int) -> None:
    """Let the tasks' group read a file or folder of ours; leave anything else."""
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(facts.st_mode) or facts.st_gid == group or facts.st_uid != os.geteuid():
        return
    if stat.S_ISDIR(facts.st_mode):
        for _, folders, files, at in os.fwalk(path, topdown=False, follow_symlinks=False):
            for name in (*folders, *files):
                _let_read_one(name, group, at)
    _let_read_one(str(path), group, None)


def _let_read_one(name: str, group: int, at: int | None) -> None:
    facts = os.stat(name, dir_fd=at, follow_symlinks=False)
    if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)) or facts.st_uid != os.geteuid():
        return  # a socket's mode says who may connect, and is its maker's business
    owners = stat.S_IMODE(facts.st_mode) & 0o700
    os.chmod(name, owners | (owners & 0o500) >> 3, dir_fd=at)
    os.chown(name, -1, group, dir_fd=at, follow_symlinks=False)


def give_folder(folder: Path, account: Account) -> None:
    """Give a folder of ours to a user, with all that is in it; what is the user's already is not looked at again.

    Only the server has written in it until then. A file with a second name stays ours, since that may be one elsewhere.

    Raises:
        OSError: it is somebody else's, or cannot be given away.
    """
    if _is_users(folder, account):
        return
    with _one_at_a_time(folder):
        if not _is_users(folder, account):  # another task of the job has given it meanwhile, and may have begun
            _give(folder, account.uid, account.gid)


def _is_users(folder: Path, account: Account) -> bool:
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid not in (account.uid, os.geteuid()):
        raise OSError(f"{folder} is neither the server's nor the user's folder")
    return facts.st_uid == account.uid


def _give(folder: Path, uid: int, gid: int) -> None:
    for _, folders, files, at in os.fwalk(folder, topdown=False, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=at, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
                os.chown(name, uid, gid, dir_fd=at, follow_symlinks=False)
    folder.chmod(0o700)
    os.chown(folder, uid, gid, follow_symlinks=False)
