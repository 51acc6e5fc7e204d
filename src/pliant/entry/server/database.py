"""Which database a server uses. A URL may hold a password, so it never comes over a command line and is never shown.

In this order: `--database` (without a password), the environment's PLIANT_DATABASE, the file `database` of the home
(mode 600), SQLite in the home. Opens nothing.
"""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from pliant.core.errors import InvalidInput

VARIABLE: Final = "PLIANT_DATABASE"
FILE: Final = "database"
_SECRETS: Final = frozenset({"password", "sslpassword", "passfile"})
_SCHEMES: Final = frozenset({"sqlite", "postgresql", "postgres", "postgresql+psycopg"})


def database_url(home: Path, given: str | None, env: Mapping[str, str]) -> str:
    """Return the URL of the database.

    Raises:
        InvalidInput: the command line holds a password, the file can be read by others, or it is no URL that we know.
    """
    if given is not None:
        refuse_secret(given)
        return _check_url(given, "--database")
    if env.get(VARIABLE):
        return _check_url(env[VARIABLE], VARIABLE)
    return _from_file(home / FILE) or f"sqlite:///{home / 'pliant.db'}"


def refuse_secret(url: str) -> None:
    """Refuse a URL with a password, which came over a command line.

    Raises:
        InvalidInput: it holds one.
    """
    try:
        parts = urlsplit(url)
        asked = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
        secret = parts.password is not None or bool(asked & _SECRETS)
    except ValueError:
        secret = True  # it cannot be read, so nobody can tell
    if secret or "password" in url.lower().partition("?")[0].rpartition("@")[2]:
        message = (
            f"a password on a command line is seen by everybody who lists processes; put the URL into the environment "
            f"variable {VARIABLE}, or into the file {FILE!r} of the home folder (mode 600)"
        )
        raise InvalidInput.at("--database", message)


def is_server(url: str) -> bool:
    """Tell whether several servers can share this database: it is no file of one home."""
    return not url.startswith("sqlite")


def display_url(url: str) -> str:
    """Return the URL without what may be secret."""
    if not is_server(url):
        return "sqlite in the home folder"
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{parts.netloc.rpartition('@')[2]}{parts.path}"


def _from_file(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
        content = path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.at(
            str(path), f"it cannot be read ({error}); it shall hold one line, the database's URL"
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise InvalidInput.at(str(path), f"others can read it (mode {stat.S_IMODE(mode):o}); run: chmod 600 {path}")
    return _check_url(content, str(path))


def _check_url(url: str, field: str) -> str:
    if url.partition("://")[0] in _SCHEMES and "://" in url and len(url.splitlines()) == 1:
        return url
    message = "this is no database URL that can be used; give postgresql://user@host:5432/database"
    raise InvalidInput.at(field, message)
