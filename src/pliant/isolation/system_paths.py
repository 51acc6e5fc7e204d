"""What everybody may read of a machine: the system, this Python with what it imports from, and the name servers."""

import os
import sys
from collections.abc import Iterator
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
    prefix = os.path.dirname(os.path.dirname(sys.executable))  # sys.prefix is another one where site was not imported
    python = (prefix, sys.prefix, sys.base_prefix, str(Path(pliant.__file__).parent), *_python_path())
    own = (path for path in python if os.path.exists(path) and not _holds(path, hidden))
    return tuple(dict.fromkeys((*_SYSTEM, *_RESOLVERS, *own)))


def _python_path() -> Iterator[str]:
    return (os.path.abspath(path) for path in sys.path if path)


def _holds(folder: str, hidden: tuple[str, ...]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(Path(os.path.realpath(path)).is_relative_to(real) for path in hidden)
