"""A process enters its confinement, for good: it and all that it starts can reach nothing else from then on.

The order of the steps matters; the process has one thread.

1. As the server's user: its own folders are given to its user, the way to them is opened.
2. A mount namespace of its own: the server's folder is covered, /tmp and /dev/shm are its own. Who is not root needs a
   user namespace for that, which some machines refuse.
3. Its user. Root is given up, all capabilities are.
4. No new privileges, and Landlock, after which nothing can be mounted any more.

A wall that this machine does not have is left out, unless it is required; `missing` names them.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pliant.core.confinement import Confinement
from pliant.isolation import landlock, mounts, system_paths
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """What a process has after it has entered."""

    account: Account | None
    """Who it became; None: it stayed who it was."""
    has_mounts: bool
    """It sees its own /tmp and /dev/shm, and nothing of what is hidden."""
    landlock: int
    """The version of Landlock that holds it; 0: none does."""


def enter(confinement: Confinement) -> Entered:
    """Confine this process.

    Raises:
        OSError: it cannot be what it was to be, or a wall is missing that is required. The process is to end then.
    """
    account = None if confinement.user is None else account_of(confinement.user)
    if account is not None:
        grant_access(confinement, account)
    has_mounts = _mount(confinement, account)
    bound_capabilities()
    if account is not None:
        become(account)
    if effective_capabilities():
        drop_capabilities()
    if effective_capabilities():
        raise PermissionError("it would keep rights of root")
    _limit(own_user=account is not None)
    refuse_new_privileges()
    version = landlock.abi()
    if version > 1:  # the first version forbids every rename between two folders
        landlock.restrict(_rules(confinement, has_mounts=has_mounts), version, reach_sockets=bool(confinement.devices))
    entered = Entered(account=account, has_mounts=has_mounts, landlock=version if version > 1 else 0)
    if confinement.required and (lacks := missing(entered)):
        raise PermissionError(f"{'; '.join(lacks)}, and isolation is required")
    return entered


def prepare() -> None:
    """Find out what is the same for all processes that are forked from this one and enter."""
    system_paths.find_python()
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
    return tuple(lacks)


def _mount(confinement: Confinement, account: Account | None) -> bool:
    """Change what the process sees; tell whether this machine lets it."""
    system = system_paths.readable(hidden=confinement.hides)
    shown = (*system, *confinement.writes, *confinement.shares)
    closed = () if account is None else tuple(closed_folders((*shown, *confinement.reads, *confinement.named), account))
    replaced = [(place, confinement.temporary) for place in _TEMPORARY if confinement.temporary is not None]
    if confinement.memory is not None:
        replaced.append((_SHARED_MEMORY, confinement.memory))
    as_user = os.geteuid() != 0
    if not mounts.can_mount(as_user=as_user):
        if account is not None and closed:
            raise PermissionError(f"user {account.name} cannot pass through {closed[0]}; open it (chmod o+x)")
        return False
    # Landlock lets a user change the modes of their own files, and those may be this Python's
    ours = () if account is not None else system_paths.python(hidden=confinement.hides)
    view = MountView(
        shown=shown,
        read_only=(*confinement.reads, *ours),
        plain=confinement.named,
        covered=(*map(os.path.realpath, confinement.hides), *closed, *_sockets()),
        replaced=tuple(replaced),
    )
    mounts.own_namespace(as_user=as_user)
    mounts.show(view)
    if account is not None:
        with suppress(OSError):  # an old kernel: the modes of /proc keep all but the command lines
            mounts.hide_processes()
    return True


def _sockets() -> Iterator[str]:
    return (path for path in system_paths.SOCKETS if os.path.isdir(path) and not os.path.islink(path))


def _limit(*, own_user: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if own_user:  # the limit is one of the user, not of the process
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = _MAX_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MAX_PROCESSES)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _rules(confinement: Confinement, *, has_mounts: bool) -> Iterator[LandlockRule]:
    for path in (*system_paths.readable(hidden=confinement.hides), *system_paths.KERNEL, *confinement.reads):
        yield LandlockRule(path=path, rights=landlock.READ)
    for path in confinement.named:
        yield LandlockRule(path=path, rights=landlock.READ, is_plain=True)
    yield LandlockRule(path=system_paths.PROCESSES, rights=landlock.LIST)
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
