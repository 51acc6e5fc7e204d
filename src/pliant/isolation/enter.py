"""A process enters its confinement, for good: it and all that it starts can reach nothing else from then on.

The order of the steps matters; the process has one thread.

1. As the server's user: its own folders are given to its user, the way to them is opened.
2. A mount namespace of its own: the server's folder is covered, /tmp and /dev/shm are its own. Who is not root needs a
   user namespace for that, which some machines refuse.
3. Its user. Root is given up, all capabilities are.
4. No new privileges, and Landlock, after which nothing can be mounted any more.
5. A filter of system calls.

A wall that this machine does not have is left out, unless it is required; `missing` names them.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pliant.core.confinement import Confinement
from pliant.isolation import call_filter, landlock, mounts, system_paths
from pliant.isolation.landlock import LandlockRule
from pliant.isolation.mounts import MountView
from pliant.isolation.system_calls import (
    bound_capabilities,
    drop_capabilities,
    effective_capabilities,
    refuse_new_privileges,
)
from pliant.isolation.users import Account, access_group, account_of, become, closed_folders, grant_access

_TEMPORARY: Final = ("/tmp", "/var/tmp")
_SHARED_MEMORY: Final = "/dev/shm"
_MAX_PROCESSES: Final = 32_768
_MAX_OPEN_FILES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """What a process has after it has entered."""

    account: Account | None
    """Who it became; None: it stayed who it was."""
    has_mounts: bool
    """It sees its own /tmp and /dev/shm, and nothing of what is hidden."""
    is_read_only: bool
    """What is not its own is read-only, with its modes and times."""
    landlock: int
    """The version of Landlock that holds it; 0: none does."""
    shares_user: bool
    """Processes that are not its own have the same user: the server, or another person's."""
    is_filtered: bool
    """System calls that lead past the other walls are refused."""


def enter(confinement: Confinement) -> Entered:
    """Confine this process.

    Raises:
        OSError: it cannot be what it was to be, or a wall is missing that is required. The process is to end then.
    """
    account = None if confinement.user is None else account_of(confinement.user)
    if account is not None:
        grant_access(confinement, account)
    shares_user = confinement.user is None or confinement.user.uid is None
    view = _view(confinement, account, shares_user=shares_user) if _may_mount(confinement, account) else None
    is_read_only = view is not None and _mount(view, account, shares_user=shares_user)
    bound_capabilities()
    if account is not None:
        become(account)
    if effective_capabilities():
        drop_capabilities()
    if effective_capabilities():
        raise PermissionError("it would keep rights of root")
    _limit(confinement, own_user=account is not None)
    refuse_new_privileges()
    version = landlock.abi()
    if version > 1:  # the first version forbids every rename between two folders
        rules = _rules(confinement, has_mounts=view is not None, shares_user=shares_user)
        landlock.restrict(rules, version, reach_sockets=bool(confinement.devices))
    entered = Entered(
        account=account,
        has_mounts=view is not None,
        is_read_only=is_read_only,
        landlock=version if version > 1 else 0,
        shares_user=shares_user,
        is_filtered=call_filter.refuse_calls(
            shares_user=shares_user,
            leads_session=os.getsid(0) == os.getpid(),
            has_network=confinement.has_network,
        ),
    )
    lacks = missing(entered)
    if not entered.is_filtered and not confinement.has_network:
        lacks = (*lacks, "this machine has no filter of system calls, so the network can be reached")
    if confinement.required and lacks:
        raise PermissionError(f"{'; '.join(lacks)}, and isolation is required")
    return entered


def prepare() -> None:
    """Find out what is the same for all processes that are forked from this one and enter."""
    system_paths.find_out()
    mounts.can_mount(as_user=os.geteuid() != 0)
    access_group()


def missing(entered: Entered) -> tuple[str, ...]:
    """Return which walls a process lacks, in words."""
    lacks = []
    if entered.account is None and os.geteuid() == 0:
        lacks.append("scripts run as root itself")
    if not entered.has_mounts:
        lacks.append("this machine refuses a mount namespace, so /tmp and /dev/shm are shared")
    if not entered.landlock and (entered.account is None or not entered.has_mounts):
        lacks.append("this kernel has no Landlock, so files of the same user can be read")
    elif entered.account is None and not landlock.scopes_signals(entered.landlock):
        lacks.append("this kernel's Landlock does not keep signals in (Linux 6.12 does)")
    if entered.shares_user and entered.has_mounts and not entered.is_read_only:
        lacks.append("this kernel cannot make a view of the disk read-only (Linux 5.12 can), so modes can be changed")
    if entered.shares_user and not entered.is_filtered:
        lacks.append(
            "this machine has no filter of system calls, so priorities and limits of the same user can be changed"
        )
    return tuple(lacks)


def _may_mount(confinement: Confinement, account: Account | None) -> bool:
    """Tell whether this machine lets the process change what it sees.

    Raises:
        PermissionError: it does not, and without that the user cannot reach what it needs.
    """
    if mounts.can_mount(as_user=os.geteuid() != 0):
        return True
    if account is not None:
        needed = (*system_paths.readable(hidden=confinement.hides), *_given(confinement))
        for closed in closed_folders(needed, account):
            raise PermissionError(f"user {account.name} cannot pass through {closed}; open it (chmod o+x)")
    return False


def _given(confinement: Confinement) -> tuple[str, ...]:
    return (*confinement.writes, *confinement.shares, *confinement.reads, *confinement.named)


def _view(confinement: Confinement, account: Account | None, *, shares_user: bool) -> MountView:
    """Return what the process is to see."""
    system = system_paths.readable(hidden=confinement.hides)
    needed = (*system, *_given(confinement))
    closed = () if account is None else tuple(closed_folders(needed, account))
    replaced = [(place, confinement.temporary) for place in _TEMPORARY if confinement.temporary is not None]
    if confinement.memory is not None:
        replaced.append((_SHARED_MEMORY, confinement.memory))
    if shares_user and not confinement.sees_all:  # services of that user may listen anywhere, and its files lie there
        foreign = list(system_paths.others(but=(*needed, *(place for place, _ in replaced))))
    else:
        foreign = list(_sockets())
    if account is None and confinement.memory is None:
        foreign.append(_SHARED_MEMORY)
    # Landlock lets a user change the modes of their own files, and those may be this Python's
    ours = () if account is not None else system_paths.python(hidden=confinement.hides)
    kept = (system_paths.PROCESSES, system_paths.DEVICE_FOLDER)
    return MountView(
        shown=(*confinement.writes, *(path for path in (*system, *confinement.shares) if path not in closed)),
        read_only=(*confinement.reads, *ours),
        plain=confinement.named,
        covered=(*map(system_paths.real, confinement.hides), *closed, *foreign),
        replaced=tuple(replaced),
        writable=(*confinement.writes, *confinement.shares, *kept) if shares_user else (),
    )


def _mount(view: MountView, account: Account | None, *, shares_user: bool) -> bool:
    """Change what the process sees; tell whether the rest is read-only."""
    mounts.own_namespace(as_user=os.geteuid() != 0)
    mounts.show(view)
    if account is not None:
        with suppress(OSError):  # an old kernel: the modes of /proc keep all but the command lines
            mounts.hide_processes()
    if not shares_user:
        return False
    with suppress(OSError):  # there is no /dev/pts, or a container's walls forbid it
        mounts.own_terminals()
    return mounts.make_rest_read_only(view)


def _sockets() -> Iterator[str]:
    return (path for path in system_paths.SOCKETS if os.path.isdir(path) and not os.path.islink(path))


def _limit(confinement: Confinement, *, own_user: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _bound(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    if confinement.max_file_bytes is not None:  # Python ignores SIGXFSZ, so that a longer file is an OSError there
        _bound(resource.RLIMIT_FSIZE, confinement.max_file_bytes)
    if own_user:  # the limit is one of the user, not of the process
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = _MAX_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MAX_PROCESSES)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _bound(what: int, most: int) -> None:
    """Let a limit of this process be so high at most, for good."""
    limits = resource.getrlimit(what)
    soft, hard = (most if limit == resource.RLIM_INFINITY else min(limit, most) for limit in limits)
    resource.setrlimit(what, (soft, hard))


def _rules(confinement: Confinement, *, has_mounts: bool, shares_user: bool) -> Iterator[LandlockRule]:
    for path in (*system_paths.readable(hidden=confinement.hides), *system_paths.KERNEL, *confinement.reads):
        yield LandlockRule(path=path, rights=landlock.READ)
    for path in confinement.named:
        yield LandlockRule(path=path, rights=landlock.READ, is_plain=True)
    yield LandlockRule(path=system_paths.PROCESSES, rights=landlock.LIST)
    # who has the same user may write there which process the kernel ends first when memory runs out
    own = f"{system_paths.PROCESSES}/{os.getpid()}" if shares_user else system_paths.PROCESSES
    yield LandlockRule(path=own, rights=landlock.CHANGE)
    for path in (*system_paths.DEVICES, *confinement.devices):
        yield LandlockRule(path=path, rights=landlock.DEVICE)
    for path in (*confinement.writes, *confinement.shares):
        yield LandlockRule(path=path, rights=landlock.WRITE)
    if has_mounts and confinement.temporary is not None:
        for place in _TEMPORARY:
            yield LandlockRule(path=place, rights=landlock.WRITE)
    elif confinement.temporary is not None:
        yield LandlockRule(path=confinement.temporary, rights=landlock.WRITE)
    if not has_mounts and confinement.memory is not None:
        yield LandlockRule(path=confinement.memory, rights=landlock.WRITE)
    # semaphores of multiprocessing are made there and nowhere else; where it is shared, names of others stay unknown
    yield LandlockRule(path=_SHARED_MEMORY, rights=landlock.WRITE if has_mounts else landlock.WRITE_UNLISTED)
