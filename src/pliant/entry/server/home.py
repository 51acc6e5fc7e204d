"""A server's state folder: its lock, its secrets, and the files that say where servers listen.

One server at a time uses a folder whose database is a file in it. Servers of one PostgreSQL database may share a
folder: the database says which of them leads.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pliant.core.errors import Conflict, Unavailable
from pliant.core.link_proof import NUM_BYTES
from pliant.files.folder import write_whole
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove

SERVER_FILE = "server.json"
STANDBY_FILE = "standby.json"
ADDRESS = "address"
"""Folder of what tasks read again when their server is gone: where the next one is, and its certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A state folder that this process may use as the one server that leads."""

    path: Path
    token: str
    secret: bytes
    challenge: str
    """Of this server; see `pliant.core.link_proof`."""
    also: Path | None = None
    """Another folder whose clients shall find this server."""

    @property
    def uploads(self) -> Path:
        return self.path / "uploads"

    def announce(self, url: str, started_at: float, **more: str) -> None:
        """Say where the server listens, and more about it."""
        more = {"challenge": self.challenge, **more}
        for folder in self._folders():
            is_for_tasks = folder.name == ADDRESS  # which may be other users; the state folder is closed around it
            announce(folder / SERVER_FILE, url, started_at, more, mode=0o644 if is_for_tasks else 0o600)

    def withdraw(self) -> None:
        """Say no more where the server listens."""
        for folder in self._folders():
            withdraw(folder / SERVER_FILE)

    def _folders(self) -> tuple[Path, ...]:
        """Return the folders that say where the server listens; the one of tasks first."""
        own = (self.path / ADDRESS, self.path)
        return own if self.also is None else (*own, self.also)


class FolderLock:
    """The lock on a state folder, which is made if it is missing. Nobody holds it at first.

    Raises:
        Unavailable: the folder cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700 | path.stat().st_mode & 0o010)  # tasks of other users may be on their way through it
            self._file = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(
                f"the state folder {path} cannot be used: {error.strerror}; give another --home"
            ) from error

    def take(self, *, shared: bool = False) -> bool:
        """Take the lock, alone or with others who share it; tell whether we have it now."""
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        return True

    def refusal(self) -> Conflict:
        """Return the error that says who has it."""
        pid = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
        return Conflict(
            f"another Pliant server (pid {pid}) uses this state folder: {self.path}; end it with `pliant down`, give "
            f"another --home, or --standby to take its place when it is gone"
        )

    def close(self) -> None:
        """Let go."""
        os.close(self._file)


def open_home(path: Path, *, also: Path | None = None) -> Home:
    """Return a state folder put in order; only the server that leads may do that.

    Raises:
        Unavailable: a file of it is empty.
    """
    home = Home(
        path=path,
        token=_read_or_make(path / "token", lambda: secrets.token_urlsafe(32).encode()).decode().strip(),
        secret=_read_or_make(path / "secret", lambda: secrets.token_bytes(32)),
        challenge=secrets.token_hex(NUM_BYTES),
        also=also,
    )
    if also is not None:
        write_whole(also / "token", home.token.encode())
    home.uploads.mkdir(mode=0o700, exist_ok=True)
    for left_over in list(home.uploads.iterdir()):
        remove(UntrustedPath(home.uploads, left_over.name))
    (path / "jobs").mkdir(mode=0o700, exist_ok=True)
    (path / ADDRESS).mkdir(mode=0o700, exist_ok=True)
    return home


def announce(path: Path, url: str, started_at: float, more: Mapping[str, str], *, mode: int = 0o600) -> None:
    """Write the file that says where this process listens, and more about it."""
    text = json.dumps({"url": url, "pid": os.getpid(), "started_at": started_at, **more})
    write_whole(path, text.encode(), mode=mode)


def withdraw(path: Path) -> None:
    """Remove such a file if it is this process's."""
    try:
        ours = json.loads(path.read_text())["pid"] == os.getpid()
    except (OSError, ValueError, KeyError):
        return
    if ours:
        path.unlink(missing_ok=True)


def read_url(path: Path) -> str | None:
    """Return the URL in such a file; None if there is none."""
    try:
        return str(json.loads(path.read_text())["url"])
    except (OSError, ValueError, KeyError):
        return None


def _read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return what is in the file; make it at the first start."""
    if not path.exists():
        write_whole(path, make())
    content = path.read_bytes()
    if not content.strip():
        raise Unavailable(f"{path} is empty; remove it, and the next start makes a new one")
    return content
