"""What everybody may read of a machine: the system, this Python with what it imports from, and the name servers."""

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

import pliant

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/nix")
_RESOLVERS: Final = (
    *("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/nscd", "/run/nslcd"),
    *("/var/lib/sss/pipes", "/var/lib/sss/mc"),
)
"""Names of machines and of users."""
DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"))
KERNEL: Final = ("/sys",)
PROCESSES: Final = "/proc"
DEVICE_FOLDER: Final = "/dev"
SOCKETS: Final = (
    "/run/user",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/dbus",
    "/var/run/docker.sock",
)
"""Where services listen that would do for a script what it may not do itself."""


def others(*, but: Iterable[str]) -> tuple[str, ...]:
    """Return the folders at the top in which nobody needs anything but what they are given.

    Args:
        but: what they are given; a folder that is given whole is none of them.
    """
    given = {real(path) for path in but} | {*_SYSTEM, PROCESSES, *KERNEL, DEVICE_FOLDER}
    return tuple(
        entry.path for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False) and entry.path not in given
    )


def readable(*, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders that everybody may read.

    A folder of Python's path that one of the hidden lies in is left out: it would show that.
    """
    return tuple(dict.fromkeys((*_SYSTEM, *_RESOLVERS, *python(hidden=hidden))))


def python(*, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of them that this Python imports from."""
    covered = [f"{real(path)}/" for path in hidden]
    return tuple(path for path, leads_to in _python() if not any(one.startswith(f"{leads_to}/") for one in covered))


def find_out() -> None:
    """Find out where all this leads to; who forks many processes that enter walls does it once for all of them."""
    for path in readable(hidden=()):
        real(path)


@cache
def real(path: str) -> str:
    """Return where a path leads. It is looked up once, in this process or in the one that forked it."""
    return os.path.realpath(path)


@cache
def _python() -> tuple[tuple[str, str], ...]:
    """Return the folders that this Python imports from, each with where it leads."""
    prefix = os.path.dirname(os.path.dirname(sys.executable))  # sys.prefix is another one where site was not imported
    package = str(Path(pliant.__file__).parent)
    paths = (prefix, sys.prefix, sys.base_prefix, package, *(os.path.abspath(path) for path in sys.path if path))
    return tuple((path, real(path)) for path in dict.fromkeys(paths) if os.path.exists(path))
