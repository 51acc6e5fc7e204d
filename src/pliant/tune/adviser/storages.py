"""Optuna's storages by the text that names one: a URL of a database, or a file.

    sqlite:///studies.db    postgresql://me:secret@host/db    studies.db    studies.journal    studies.log

What is read is never made, and its tables are never changed. Nothing that is said holds a password.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from pliant.core.errors import InvalidInput, PliantError

_JOURNALS: Final = (".journal", ".log")
_SQLITE: Final = (".db", ".sqlite", ".sqlite3")
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
"""The driver that is there where a URL names none."""
_PASSWORD: Final = re.compile(r"(://[^:/@\s]*:).*@", re.DOTALL)
_FIELD: Final = "storage"


def shown(storage: str) -> str:
    """Return a storage's name without its password."""
    return _PASSWORD.sub(r"\1***@", storage)


@contextmanager
def opened(storage: str, *, make: bool) -> Iterator[BaseStorage]:
    """Open a storage for the block; whatever goes wrong with it there is said without its password.

    Args:
        storage: what names it.
        make: make it if there is none.

    Raises:
        InvalidInput: there is none, or it cannot be opened, read or written.
    """
    found = None
    try:
        found = _open(storage, make=make)
        yield found
    except PliantError:
        raise
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        message = f"{shown(storage)!r} cannot be used: {type(error).__name__}: {_without(storage, said[0])[:300]}"
        raise InvalidInput.at(_FIELD, f"{message}; check its name and that it is Optuna's") from error
    finally:
        if isinstance(found, RDBStorage):
            found.remove_session()
            found.engine.dispose()


def _open(storage: str, *, make: bool) -> BaseStorage:
    scheme, separator, rest = storage.partition("://")
    if not separator and Path(storage).suffix in _SQLITE:
        scheme, separator, rest = "sqlite", "://", f"/{storage}"
    if separator:
        if scheme.startswith("sqlite") and not make:
            _require_file(rest.partition("?")[0].removeprefix("/"))
        return RDBStorage(f"{_DRIVERS.get(scheme, scheme)}://{rest}", skip_table_creation=not make)
    if Path(storage).suffix not in _JOURNALS:
        message = f"{storage!r} names no storage; give a URL (sqlite:///x.db, postgresql://…) or a file x.journal"
        raise InvalidInput.at(_FIELD, message)
    if not make:
        _require_file(storage)
    return JournalStorage(JournalFileBackend(storage))


def _require_file(path: str) -> None:
    if not Path(path).is_file():
        raise InvalidInput.at(_FIELD, f"there is no file {path!r}; check the path")


def _without(storage: str, text: str) -> str:
    """Return what was said of a storage without its password."""
    found = re.search(r"://[^:/@\s]*:(.*)@", storage, re.DOTALL)
    secret = found[1] if found is not None else ""
    return shown(text.replace(secret, "***") if secret else text)
