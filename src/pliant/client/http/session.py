"""Which server is meant, and who asks: as given, else as the environment says, a stored login, or this machine."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pliant.api.trust import Trust
from pliant.client.http.credentials import Credentials, Login, same_url
from pliant.client.http.home import SERVER_FILE, ServerRecord, read_record, read_token
from pliant.core.errors import InvalidInput, Unauthorized, Unavailable

DEFAULT_HOME: Final = "~/.pliant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which server is meant, and who asks, as far as it was said."""

    home: Path
    url: str | None
    token: str | None
    ca: Path | None = None
    """The certificate to know the server by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Which server is meant, and how it is known."""

    url: str
    trust: Trust
    is_ours: bool
    """The one that runs for the home folder."""
    login: Login | None
    """The one that is stored for it."""
    public_url: str
    """Where people on other machines reach it, as far as is known here."""


def choose(
    env: Mapping[str, str], *, url: str | None, token: str | None, ca: Path | str | None, home: Path | str | None
) -> Choice:
    """Return what was given, and from the environment what was not."""
    folder, certificate = home or env.get("PLIANT_HOME") or DEFAULT_HOME, ca or env.get("PLIANT_CA")
    return Choice(
        home=Path(folder).expanduser().absolute(),
        url=url or env.get("PLIANT_URL") or None,
        token=token or env.get("PLIANT_TOKEN") or None,
        ca=None if not certificate else Path(certificate).expanduser().absolute(),
    )


def server_of(choice: Choice) -> Server:
    """Return which server is meant.

    Raises:
        Unavailable: no server runs for the home folder, or the stored logins cannot be read.
    """
    record = read_record(choice.home) if choice.url is None else find_record(choice.home)
    url = choice.url or (record.url if record is not None else "")
    ours = record if record is not None and same_url(record.url) == same_url(url) else None
    login = None if choice.token is not None else credentials().find(url)
    trust = Trust()
    if choice.ca is not None:
        trust = Trust(certificate=choice.ca, server_name=None if ours is None else ours.server_name)
    elif ours is not None:
        trust = ours.trust
    elif login is not None:
        trust = login.trust
    public_url = ours.public_url if ours is not None and ours.public_url is not None else url
    return Server(url=url, trust=trust, is_ours=ours is not None, login=login, public_url=public_url)


def find_record(home: Path, file: str = SERVER_FILE) -> ServerRecord | None:
    """Return what the server of a home says of itself; None if none has."""
    try:
        return read_record(home, file)
    except Unavailable:
        return None


def credentials() -> Credentials:
    """Return the file of this person's logins."""
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Credentials(Path(config).expanduser() / "pliant" / "credentials.json")


def token_of(choice: Choice, server: Server) -> str:
    """Return the token given, else that of the stored login, else that of the home folder: told to no other machine.

    A login that has expired is not replaced by that: a person would unawares be the administrator.

    Raises:
        Unauthorized: there is none.
    """
    if choice.token is not None:
        return choice.token
    if server.login is not None:
        return server.login.token
    if not (server.is_ours or is_local(server.url)):
        raise Unauthorized(f"nobody is logged in at {server.url}; use `pliant login --url {server.url}`")
    try:
        return read_token(choice.home)
    except Unavailable as error:
        raise Unauthorized(f"{server.url} needs to know who you are: use `pliant login` ({error})") from error


def is_local(url: str) -> bool:
    """Tell whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_clear_text(url: str) -> None:
    """Refuse to send a password where others could read it on the way.

    Raises:
        InvalidInput: the URL leads to another machine, and not by https.
    """
    if urlsplit(url).scheme != "https" and not is_local(url):
        message = f"{url!r} does not begin with https, so that others could read your password; give one that does"
        raise InvalidInput.at("url", message)
