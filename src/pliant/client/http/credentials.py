"""The logins that a person has stored on their machine, one per server: a file that nobody else can read."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import httpx
from pydantic import ValidationError

from pliant.api.trust import Trust
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.core.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A session with a server that was begun here."""

    url: str
    name: str
    token: str = field(repr=False)
    expires_at: float
    trust: Trust = field(default_factory=Trust)
    """How the server was known, and will be."""


_LOGINS: Final = LazyAdapter(tuple[Login, ...])


class Credentials:
    """The file of logins; it need not exist yet.

    Every method raises `Unavailable` if the file cannot be read or written, or if others can read it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def folder(self) -> Path:
        """Where the file is; made if it is missing, and nobody else's."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"{self._path.parent} cannot be made: {error.strerror}") from error
        return self._path.parent

    def find(self, url: str) -> Login | None:
        """Return the login at a server, also one that has expired."""
        return next((login for login in self._read() if login.url == same_url(url)), None)

    def keep(self, login: Login) -> None:
        """Store a login in the place of the one before at this server."""
        new = replace(login, url=same_url(login.url))
        self._change(lambda logins: [*(other for other in logins if other.url != new.url), new])

    def forget(self, url: str) -> None:
        """Remove the login at a server, if there is one."""
        self._change(lambda logins: [login for login in logins if login.url != same_url(url)])

    def _read(self) -> tuple[Login, ...]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise Unavailable(f"others can read {self._path}, which holds your logins; `chmod 600` it")
                return _LOGINS.validate_json(file.read())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise Unavailable(f"{self._path} is damaged; remove it and log in again") from error

    def _change(self, changed: Callable[[Sequence[Login]], Sequence[Login]]) -> None:
        from pliant.files.folder import write_whole  # most commands only read
        from pliant.files.lock import hold_lock

        try:
            with hold_lock(self.folder / f".{self._path.name}.lock"):  # against our other commands
                logins = tuple(changed(self._read()))
                write_whole(self._path, _LOGINS.dump_json(logins, indent=2))
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written: {error.strerror}") from error


def same_url(url: str) -> str:
    """Return a server's URL in the one form that it is stored under."""
    try:
        return str(httpx.URL(url.strip())).rstrip("/")
    except httpx.InvalidURL:
        return url
