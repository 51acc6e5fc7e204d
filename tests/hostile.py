"""What somebody else's program may put in the place of a file that we are going to read, list, pack or remove."""

import ctypes
import fcntl
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

Plant = Callable[[Path, Path], None]
"""Puts something at a path (first), perhaps so that it leads to a secret (second)."""

_RENAME_EXCHANGE: Final = 2
_RENAMEAT2: Final = 316 if os.uname().machine == "x86_64" else 276
_AT_FDCWD: Final = -100


def pipe(path: Path, _secret: Path) -> None:
    os.mkfifo(path)


def link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def relative_link(path: Path, secret: Path) -> None:
    path.symlink_to(os.path.relpath(secret, path.parent))


def link_to_itself(path: Path, _secret: Path) -> None:
    path.symlink_to(path.name)


def second_name(path: Path, secret: Path) -> None:
    os.link(secret, path)


def unix_socket(path: Path, _secret: Path) -> None:
    here = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{here}/{path.name}")  # the whole path may be too long for a socket
    os.close(here)


def folder(path: Path, _secret: Path) -> None:
    path.mkdir()


def device(path: Path, _secret: Path) -> None:
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero has no end


PLANTS: Final[Mapping[str, Plant]] = {
    "pipe": pipe,
    "link": link,
    "relative link": relative_link,
    "link to itself": link_to_itself,
    "second name": second_name,
    "socket": unix_socket,
    "folder": folder,
    **({"device": device} if os.geteuid() == 0 else {}),
}
"""None of these is ever read."""


def petabyte(path: Path) -> None:
    """Make the largest file without content that the disk takes, up to a petabyte."""
    with path.open("wb") as file:
        for power in range(50, 30, -1):
            try:
                file.truncate(1 << power)
            except OSError:
                continue
            return


def deep_tree(top: Path, depth: int = 1100) -> None:
    """Make folders in one another, deeper than a path can name and than Python calls itself; the test removes them."""
    top.mkdir(parents=True, exist_ok=True)
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("one-deeper", dir_fd=here)
        below = os.open("one-deeper", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@contextmanager
def leased(path: Path) -> Iterator[None]:
    """Hold a lease of a file: who opens it plainly waits until the lease is given back."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the holder gets it when somebody opens the file
    file = os.open(path, os.O_RDWR)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    try:
        yield
    finally:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(file)
        signal.signal(signal.SIGIO, before)


@contextmanager
def exchanged(one: Path, other: Path) -> Iterator[None]:
    """Swap two names again and again, as fast as it goes, while the block runs."""
    call = ctypes.CDLL(None).syscall
    end = threading.Event()

    def swap() -> None:
        names = (os.fsencode(one), os.fsencode(other))
        while not end.is_set():
            call(_RENAMEAT2, _AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
