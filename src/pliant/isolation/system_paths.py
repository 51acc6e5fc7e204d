"""What everybody may read of a machine: the system, this Python with what it imports from, and the name servers."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

import pliant

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/nix")
_RESOLVERS: Final = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/nscd")
DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"))
KERNEL: Final = ("/sys",)
PROCESSES: Final = "/proc"
SOCKETS: Final = (
    "/run/user",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/dbus",
    "/var/run/docker.sock",
)
"""Where services listen that would do for a script what it may not do itself."""


def readable(*, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders that everybody may read.

    A folder of Python's path that one of the hidden lies in is left out: it would show that.
    """
    return tuple(dict.fromkeys((*_SYSTEM, *_RESOLVERS, *python(hidden=hidden))))


def python(*, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of them that this Python imports from."""
    covered = [Path(os.path.realpath(path)) for path in hidden]
    return tuple(path for path, real in _python() if not any(folder.is_relative_to(real) for folder in covered))


def find_python() -> None:
    """Find out where this Python is; who forks many processes that enter walls does it once for all of them."""
    _python()


@cache
def _python() -> tuple[tuple[str, str], ...]:
    """Return the folders that this Python imports from, each with where it leads."""
    prefix = os.path.dirname(os.path.dirname(sys.executable))  # sys.prefix is another one where site was not imported
    package = str(Path(pliant.__file__).parent)
    paths = (prefix, sys.prefix, sys.base_prefix, package, *(os.path.abspath(path) for path in sys.path if path))
    return tuple((path, os.path.realpath(path)) for path in dict.fromkeys(paths) if os.path.exists(path))
