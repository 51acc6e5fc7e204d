"""The state folder of a server: one server at a time, its secrets, and the file that says where it listens."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pliant.core.errors import Conflict, Unavailable

SERVER_FILE = "server.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A state folder that this process holds."""

    path: Path
    token: str
    secret: bytes

    @property
    def uploads(self) -> Path:
        return self.path / "uploads"

    def announce(self, url: str, started_at: float) -> None:
        """Say where the server listens."""
        text = json.dumps({"url": url, "pid": os.getpid(), "started_at": started_at})
        _write(self.path / SERVER_FILE, text.encode())


@contextmanager
def held_home(path: Path) -> Iterator[Home]:
    """Make the folder if it is missing, and hold it until the end of the block.

    Raises:
        Conflict: another server holds it.
        Unavailable: it cannot be made or written.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"the state folder {path} cannot be used: {error.strerror}; give another --home") from error
    try:
        _lock(lock, path)
        yield _opened(path)
        (path / SERVER_FILE).unlink(missing_ok=True)
    finally:
        os.close(lock)


def _lock(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise Conflict(
            f"another Pliant server (pid {pid}) uses this state folder: {path}; end it with `pliant down`, or give "
            f"another --home"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _opened(path: Path) -> Home:
    (path / SERVER_FILE).unlink(missing_ok=True)
    home = Home(
        path=path,
        token=_kept(path / "token", lambda: secrets.token_urlsafe(32).encode()).decode().strip(),
        secret=_kept(path / "secret", lambda: secrets.token_bytes(32)),
    )
    home.uploads.mkdir(mode=0o700, exist_ok=True)
    for left_over in home.uploads.iterdir():
        left_over.unlink()
    (path / "jobs").mkdir(mode=0o700, exist_ok=True)
    return home


def _kept(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return what is in the file; make it at the first start."""
    if not path.exists():
        _write(path, make())
    content = path.read_bytes()
    if not content.strip():
        raise Unavailable(f"{path} is empty; remove it, and the next start makes a new one")
    return content


def _write(path: Path, content: bytes) -> None:
    """Write a file of mode 600, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
