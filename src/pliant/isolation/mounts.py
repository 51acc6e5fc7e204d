"""What a process sees of the file system: folders covered, its own put back, /tmp and /dev/shm of its own.

Theory of operation
-------------------

The process gets a mount namespace of its own. A folder that it shall not see is covered by an empty file system in
memory; what it may see of it is mounted into that again, at its own place. An example, for a job of a server whose
state folder is /srv/ml/state, in a folder /srv/ml that is closed to the job's user:

    /srv/ml                       covered, since the user could not pass through it
    /srv/ml/state                 is covered with it
    /srv/ml/state/jobs/j/code     the job's own folder, mounted at its own place
    /srv/ml/env                   the packages of its interpreter, the same
    /tmp                          the job's own folder

All folders are opened before anything is covered, and all is done from the outside in. Where the empty file system is a
folder that the job can write to (/tmp), an earlier process of the job may have put links into it: the places are made
one name at a time, and a link in the way is refused.

The machine's own mounts still reach the process later; what it mounts reaches nobody. Invariant: nothing changes for
other processes than this one and those that it starts.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pliant.isolation import system_paths
from pliant.isolation.opening import names_of, open_plain
from pliant.isolation.system_calls import NEW_MOUNTS, NEW_USER, mount, set_read_only, unshare

_READ_ONLY: Final = 1  # the numbers are those of <sys/mount.h>
_NO_SUID: Final = 2
_NO_DEVICES: Final = 4
_NO_EXECUTION: Final = 8
_REMOUNT: Final = 32
_BIND: Final = 4096
_RECURSIVE: Final = 16384
_SLAVE: Final = 1 << 19
_KEPT: Final = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
"""What a mount says besides; a remount would forget it. These numbers are the same for statvfs(3) and mount(2)."""
_ESCAPE: Final = re.compile(rb"\\(\d{3})")
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_COVER: Final = "mode=0711,size=64k,nr_inodes=4k"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountView:
    """What is to be seen where."""

    shown: tuple[str, ...] = ()
    """Folders and files that stay visible, wherever they lie."""
    read_only: tuple[str, ...] = ()
    """The same, and nobody here can write to them."""
    plain: tuple[str, ...] = ()
    """The same, if no link is on the way."""
    covered: tuple[str, ...] = ()
    """Folders of which nothing else is seen."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Pairs: at the first path the second folder is seen."""
    writable: tuple[str, ...] = ()
    """Folders that stay writable when `make_rest_read_only` makes everything else read-only."""


@cache
def can_mount(*, as_user: bool) -> bool:
    """Tell whether this process may have mounts of its own: tried in a child, since half of it is worse than nothing.

    Some machines let a process have a user namespace and then give it no rights in there.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own_namespace(as_user=as_user)
            mount("tmpfs", "/proc/self/cwd", "tmpfs", _NO_SUID | _NO_DEVICES, _COVER)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def own_namespace(*, as_user: bool) -> None:
    """Give this process, which has one thread, mounts of its own.

    Args:
        as_user: it may not mount; make it the master of a user namespace in which it may.

    Raises:
        OSError: the machine refuses.
    """
    uid, gid = os.geteuid(), os.getegid()
    unshare(NEW_MOUNTS | (NEW_USER if as_user else 0), "a mount namespace of its own")
    if as_user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    mount("none", "/", None, _RECURSIVE | _SLAVE)  # before anything else, or the machine would see what follows


def show(view: MountView) -> None:
    """Change what this process sees, in a mount namespace of its own.

    Raises:
        OSError: the machine refuses, or a link stands where something is to be seen.
    """
    steps = sorted(
        (*_steps(view), *_plain_steps(view.plain)), key=lambda step: (len(names_of(step.path)), not step.is_cover)
    )
    links = {path: system_paths.real(path) for path in (*view.shown, *view.read_only)}
    umask = os.umask(0)
    try:
        for step in steps:
            _take(step)
        for path, real in links.items():
            if path != real and not os.path.lexists(path):
                _link(path, real)
    finally:
        os.umask(umask)
        for step in steps:
            if step.source is not None:
                os.close(step.source)


def make_rest_read_only(view: MountView) -> bool:
    """Make everything read-only that the view does not name as writable; tell whether this kernel can.

    That also keeps modes, times and attributes, of which Landlock knows nothing. Needs `show` before.

    Raises:
        OSError: the machine refuses.
    """
    own = tuple(map(system_paths.real, (*view.writable, *(place for place, _ in view.replaced))))
    table = {mounted.point: mounted for mounted in _mounts()}  # the last one at a place is the one that is seen
    kept = [
        mounted.point
        for mounted in table.values()
        if not mounted.is_read_only and any(_is_in(mounted.point, path) for path in own)
    ]
    if not _set_all_read_only("/"):
        return False
    for point in kept:
        _make_writable(point)
    return True


def _set_all_read_only(mounted: str) -> bool:
    """Make a mount and those within it read-only; tell whether this kernel can do that at once."""
    top = os.open(mounted, _LOOK)
    try:
        set_read_only(top, value=True, recursive=True)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM):  # before Linux 5.12, or a container refuses the call
            return False
        raise
    finally:
        os.close(top)
    return True


def _make_writable(point: str) -> None:
    try:
        place = open_plain(point)
    except FileNotFoundError:  # something was mounted over it
        return
    try:
        set_read_only(place, value=False)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the same: no mount is seen there
            raise
    finally:
        os.close(place)


def own_terminals() -> None:
    """Show no terminals but those that this process and its own open from now on.

    Raises:
        OSError: the machine refuses.
    """
    mount("devpts", "/dev/pts", "devpts", _NO_SUID | _NO_EXECUTION, "newinstance,ptmxmode=0666,mode=0620")


def hide_processes() -> None:
    """Show no processes but one's own and those of the same user.

    Raises:
        OSError: the machine refuses.
    """
    mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES, "hidepid=invisible")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    path: str
    source: int | None = None
    """What is mounted there, open; None: an empty file system."""
    is_read_only: bool = False

    @property
    def is_cover(self) -> bool:
        return self.source is None


def _steps(view: MountView) -> Iterator[_Step]:
    """Yield what is to be mounted; what is there anyway is left alone unless it is to be read-only."""
    for place in dict.fromkeys(view.covered):
        if os.path.isdir(place):
            yield _Step(path=place)
    for place, folder in view.replaced:
        if os.path.isdir(place):
            yield _Step(path=place, source=os.open(folder, os.O_PATH | os.O_CLOEXEC))
    replaced = frozenset(place for place, _ in view.replaced)
    over = (*view.covered, *replaced)
    read_only, writable = (frozenset(map(system_paths.real, paths)) for paths in (view.read_only, view.writable))
    for path in dict.fromkeys(map(system_paths.real, (*view.shown, *view.read_only))):
        is_read_only = path in read_only
        is_own = path in writable and path not in replaced
        if is_read_only or is_own or any(_is_within(path, place) for place in over):
            with suppress(FileNotFoundError, NotADirectoryError):
                yield _Step(path=path, source=os.open(path, os.O_PATH | os.O_CLOEXEC), is_read_only=is_read_only)


def _plain_steps(paths: Iterable[str]) -> Iterator[_Step]:
    for path in dict.fromkeys(paths):
        with suppress(OSError):  # it is not there, or a link is on the way
            yield _Step(path=path, source=open_plain(path), is_read_only=True)


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _is_in(path: str, folder: str) -> bool:
    return path == folder or _is_within(path, folder)


def _take(step: _Step) -> None:
    if step.source is None:
        if not os.path.isdir(step.path):
            return  # it lies in one that was covered before
        mount("tmpfs", step.path, "tmpfs", _NO_SUID | _NO_DEVICES, _COVER)
        return
    place = _place(step.path, is_folder=stat.S_ISDIR(os.fstat(step.source).st_mode))
    try:
        mount(f"/proc/self/fd/{step.source}", f"/proc/self/fd/{place}", None, _BIND | _RECURSIVE)
    finally:
        os.close(place)
    if step.is_read_only:
        make_read_only(step.path)


def _link(path: str, to: str) -> None:
    """Put a link back that led to something that is shown; its folder was covered."""
    folder, name = os.path.split(path)
    place = _place(folder, is_folder=True)
    try:
        os.symlink(to, name, dir_fd=place)
    finally:
        os.close(place)


def _place(path: str, *, is_folder: bool) -> int:
    """Open a path, made if missing, without following a link."""
    with suppress(OSError):  # a name is missing, or a link in the way: which one, the long way finds out
        return open_plain(path)
    names = names_of(path)
    here = os.open("/", _LOOK)
    for number, name in enumerate(names, start=1):
        above = here
        try:
            here = _open_or_make(name, above, is_folder=is_folder or number < len(names))
        finally:
            os.close(above)
    return here


def _open_or_make(name: str, at: int, *, is_folder: bool) -> int:
    try:
        here = os.open(name, _LOOK, dir_fd=at)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another task of the job has made it meanwhile
            if is_folder:
                os.mkdir(name, 0o711, dir_fd=at)
            else:
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=at))
        here = os.open(name, _LOOK, dir_fd=at)
    if stat.S_ISLNK(os.fstat(here).st_mode):
        os.close(here)
        raise OSError(f"a link called {name!r} stands where the process is to see something else; remove it")
    return here


def make_read_only(folder: str) -> None:
    """Make a mount, and those within it, read-only for this process and all that it starts.

    Raises:
        OSError: the machine refuses.
    """
    real = system_paths.real(folder)
    if _set_all_read_only(real):
        return
    for point in sorted({mounted.point for mounted in _mounts() if _is_in(mounted.point, real)}):
        kept = os.statvfs(point).f_flag & _KEPT
        mount(point, point, None, _REMOUNT | _BIND | _READ_ONLY | kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mounted:
    point: str
    is_read_only: bool


def _mounts() -> Iterator[_Mounted]:
    """Yield what is mounted where, in the order of mounting."""
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        fields = line.split(b" ")
        point = os.fsdecode(_ESCAPE.sub(_character, fields[4]))
        yield _Mounted(point=point, is_read_only=b"ro" in fields[5].split(b","))


def _character(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8)])
