"""Finds the server of a home folder: its address and the administrator's token."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pliant.api.trust import Trust
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.core.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """What a running server writes into `server.json`."""

    url: str
    pid: int
    started_at: float = 0.0
    certificate: Path | None = None
    """The certificate that it has, if its URL begins with https."""
    server_name: str | None = None
    """By which name to check that, if not by the host in the URL."""
    fingerprint: str | None = None
    """The certificate's SHA-256."""
    public_url: str | None = None
    """Where people on other machines reach it, if they do at another address than ours."""
    root_path: str = ""
    """Below which its pages lie, such as `/pliant`."""

    @property
    def console_url(self) -> str:
        """Where its console is."""
        return f"{self.public_url or self.url}{self.root_path}/"

    @property
    def trust(self) -> Trust:
        """How to check that it is this server."""
        return Trust(certificate=self.certificate, server_name=self.server_name)


SERVER_FILE: Final = "server.json"
_RECORD: Final = LazyAdapter(ServerRecord)


def read_record(home: Path, file: str = SERVER_FILE) -> ServerRecord:
    """Return what the server of this home says of itself; it may have died since.

    Raises:
        Unavailable: no server runs for this home.
    """
    try:
        return _RECORD.validate_json((home / file).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unavailable(f"no server runs for {home}; start one with `pliant up`") from error
    except (OSError, ValidationError) as error:
        raise Unavailable(
            f"{home / file} cannot be read ({type(error).__name__}); start the server again with `pliant up`"
        ) from error


def read_token(home: Path) -> str:
    """Return the administrator's token of this home.

    Raises:
        Unavailable: there is none, or it is another person's.
    """
    try:
        return (home / "token").read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise Unavailable(
            f"{home / 'token'} cannot be read ({error.strerror}); it is made by `pliant up`, for the person who ran it"
        ) from error
